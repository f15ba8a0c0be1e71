#pragma once

#include "evald/json.h"

namespace evald {

/// A number in the form of scores files, which also write "-inf", "inf" and "nan", since JSON has
/// none of these. Throws Error(kInput) for anything else.
double NumberFromScore(const Json& value);
Json NumberToScore(double value);
/// Whether NumberFromScore takes the value.
bool IsScoreNumber(const Json& value);

}  // namespace evald
