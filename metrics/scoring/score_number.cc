#include "metrics/scoring/score_number.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {

double NumberFromScore(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value.is_boolean()) return value.get<bool>() ? 1 : 0;
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw Error(ErrorKind::kInput, fmt::format("found {}, expected a number", ToLine(value)));
}

Json NumberToScore(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return value;
}

bool IsScoreNumber(const Json& value) {
  return value.is_number() || value.is_boolean() || value == "-inf" || value == "inf" ||
         value == "nan";
}

}  // namespace evald
