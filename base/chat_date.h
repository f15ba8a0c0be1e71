#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "evald/json.h"

namespace evald {

/// The moment that templates see which ask for the date: the key `chat_date` of eval.yaml.
struct ChatDate {
  int64_t seconds = 0;    ///< since 1970 (UTC); of a day without a time, its beginning
  bool has_time = false;  ///< false: only the day was named, so nothing finer is known

  bool operator==(const ChatDate&) const = default;
};

/// Reads "2026-01-31", or with a time of day "2026-01-31T14:05:09"; a space may stand for the T.
/// Nothing for other texts and for days that no calendar has.
std::optional<ChatDate> ReadChatDate(const std::string& text);

/// A day is its seconds; a moment with a time of day is that time as text, "2026-01-31T14:05:09";
/// null for nothing.
Json ToJson(const std::optional<ChatDate>& date);
/// Throws Error(kInput) for what ToJson does not give.
std::optional<ChatDate> ChatDateFromJson(const Json& json);

}  // namespace evald
