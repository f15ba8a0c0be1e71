#pragma once

#include <string>

namespace evald {

/// Hexadecimal digits that nothing else has, eight for each of `words`: 32 bits of the kernel's
/// randomness each.
std::string RandomId(int words = 4);

}  // namespace evald
