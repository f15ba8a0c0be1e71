#include "base/chat_date.h"

#include <fmt/format.h>

#include <cstdio>
#include <ctime>

#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kDayLength = 10;
constexpr size_t kMomentLength = 19;

std::string MomentText(int64_t seconds) {
  const auto time = static_cast<time_t>(seconds);
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

std::optional<ChatDate> ReadChatDate(const std::string& text) {
  if (text.size() != kDayLength && text.size() != kMomentLength) return std::nullopt;
  const bool has_time = text.size() == kMomentLength;
  std::tm parts{};
  const char* end = ::strptime(text.c_str(), "%Y-%m-%d", &parts);
  if (end != text.c_str() + kDayLength) return std::nullopt;
  if (has_time) {
    if (*end != 'T' && *end != ' ') return std::nullopt;
    end = ::strptime(end + 1, "%H:%M:%S", &parts);
    if (end != text.c_str() + kMomentLength || parts.tm_sec > 59) return std::nullopt;
  }
  const int day = parts.tm_mday;
  const int64_t seconds = ::timegm(&parts);
  if (parts.tm_mday != day) return std::nullopt;  // such as June 31
  return ChatDate{seconds, has_time};
}

Json ToJson(const std::optional<ChatDate>& date) {
  if (!date) return nullptr;
  return date->has_time ? Json(MomentText(date->seconds)) : Json(date->seconds);
}

std::optional<ChatDate> ChatDateFromJson(const Json& json) {
  if (json.is_null()) return std::nullopt;
  if (json.is_number_integer()) return ChatDate{json.get<int64_t>(), false};
  const auto date = json.is_string() ? ReadChatDate(json.get<std::string>()) : std::nullopt;
  if (!date)
    throw Error(ErrorKind::kInput, fmt::format("found {}, expected a chat date", json.dump()));
  return date;
}

}  // namespace evald
