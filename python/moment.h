#pragma once

#include <cstdint>
#include <string>

#include "evald/json.h"

namespace evald::python {

/// A date and time of day without a zone, to the second: Python's datetime.datetime, as the
/// `datasets` library gives it for a column of dates. Templates may print and compare it; anything
/// else is refused.
struct Moment {
  int64_t seconds = 0;  ///< since 1970-01-01 00:00:00; of a year from 1 to 9999

  /// str(value): "2020-01-31 10:00:00".
  std::string Str() const;
  /// repr(value): "datetime.datetime(2020, 1, 31, 10, 0)".
  std::string Repr() const;
};

/// A moment as a value of a document: JSON has no such type, so it is a binary value of a subtype
/// of its own. It never leaves the process: PlainDates makes text of it.
Json MomentToJson(const Moment& moment);
bool IsMoment(const Json& value);
Moment MomentFromJson(const Json& value);

/// The value with each moment in it as its text, as lm-evaluation-harness writes documents to
/// files.
Json PlainDates(Json value);
/// Whether a moment is in it.
bool HoldsMoment(const Json& value);

}  // namespace evald::python
