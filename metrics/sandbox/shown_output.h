#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "metrics/sandbox/wire.h"

namespace evald::sandbox {

/// A program's output for people: valid UTF-8 that cannot control a terminal or a page. Of an
/// output of more than kOutputBytes bytes only its beginning and its end, half of these bytes each,
/// and between them a line that says how many bytes are left out. Characters that are spelled out
/// (Printable) can make the text up to six times as long.
std::string ShownOutput(std::string_view output);
/// The same of an output of `bytes` bytes. `kept` has all of it, or its beginning and its end.
std::string ShownOutput(std::string_view kept, uint64_t bytes);

}  // namespace evald::sandbox
