#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "evald/json.h"

namespace evald {

/// The date for chat templates that ask for one: the key `chat_date` of eval.yaml.
struct ChatDate {
  int64_t seconds = 0;    ///< since 1970 (UTC); for a day without a time, its beginning
  bool has_time = false;  ///< false: only the day is known

  bool operator==(const ChatDate&) const = default;
};

/// Reads "2026-01-31", or with a time of day "2026-01-31T14:05:09"; a space may replace the T.
/// Nothing for any other text, and for days that no calendar has.
std::optional<ChatDate> ReadChatDate(const std::string& text);

/// A day becomes its seconds. A moment with a time of day becomes text, "2026-01-31T14:05:09".
/// Nothing becomes null.
Json ToJson(const std::optional<ChatDate>& date);
/// Throws Error(kInput) for JSON that ToJson does not make.
std::optional<ChatDate> ChatDateFromJson(const Json& json);

}  // namespace evald
