#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "evald/json.h"

namespace evald {

// The numbers of pandas' ujson (pandas 3, _libs/src/vendored/ujson), through which the `datasets`
// library passes rows of JSON with different shapes. ujson keeps ten decimals.

/// The text that ujson_dumps writes for a finite number that ujson_loads read from a file. The
/// file's own text is lost: it is taken to be the shortest text of the number.
std::string UjsonText(double value);

/// The number that ujson_loads reads from such a text. It may differ from the nearest one in the
/// last bit.
double UjsonNumber(std::string_view text);

/// The value that ujson_loads reads from `text`; nothing if it refuses the text. Throws
/// Error(kInput) for texts whose reading is not implemented here: arrays, objects, `NaN`, and
/// numbers that JSON does not allow.
std::optional<Json> UjsonScalar(const std::string& text);

}  // namespace evald
