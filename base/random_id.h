#pragma once

#include <string>

namespace evald {

/// Unique hexadecimal digits. Each of `words` gives eight, from 32 bits of the kernel's randomness.
std::string RandomId(int words = 4);

}  // namespace evald
