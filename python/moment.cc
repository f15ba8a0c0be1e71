#include "python/moment.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace evald::python {
namespace {

constexpr uint64_t kMomentSubtype = 1;
constexpr int64_t kDaySeconds = 86'400;

struct Parts {
  int year;
  unsigned month;
  unsigned day;
  int64_t hour;
  int64_t minute;
  int64_t second;
};

Parts PartsOf(int64_t seconds) {
  const auto days = std::chrono::floor<std::chrono::days>(std::chrono::seconds(seconds));
  const std::chrono::year_month_day date{std::chrono::sys_days(days)};
  const int64_t rest = seconds - days.count() * kDaySeconds;
  return {static_cast<int>(date.year()),
          static_cast<unsigned>(date.month()),
          static_cast<unsigned>(date.day()),
          rest / 3600,
          rest / 60 % 60,
          rest % 60};
}

}  // namespace

std::string Moment::Str() const {
  const Parts p = PartsOf(seconds);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}", p.year, p.month, p.day, p.hour,
                     p.minute, p.second);
}

std::string Moment::Repr() const {
  const Parts p = PartsOf(seconds);
  const std::string second = p.second == 0 ? "" : fmt::format(", {}", p.second);
  return fmt::format("datetime.datetime({}, {}, {}, {}, {}{})", p.year, p.month, p.day, p.hour,
                     p.minute, second);
}

Json MomentToJson(const Moment& moment) {
  std::vector<uint8_t> bytes(sizeof(moment.seconds));
  std::memcpy(bytes.data(), &moment.seconds, bytes.size());
  return Json::binary(std::move(bytes), kMomentSubtype);
}

bool IsMoment(const Json& value) {
  return value.is_binary() && value.get_binary().has_subtype() &&
         value.get_binary().subtype() == kMomentSubtype &&
         value.get_binary().size() == sizeof(Moment::seconds);
}

Moment MomentFromJson(const Json& value) {
  Moment moment;
  std::memcpy(&moment.seconds, value.get_binary().data(), sizeof(moment.seconds));
  return moment;
}

Json PlainDates(Json value) {
  if (IsMoment(value)) return MomentFromJson(value).Str();
  if (value.is_structured()) {
    for (Json& item : value) item = PlainDates(std::move(item));
  }
  return value;
}

bool HoldsMoment(const Json& value) {
  if (!value.is_structured()) return IsMoment(value);
  return std::any_of(value.begin(), value.end(),
                     [](const Json& item) { return HoldsMoment(item); });
}

}  // namespace evald::python
