#pragma once

#include <string>

namespace evald {

/// 32 hexadecimal digits that nothing else has: 128 bits of the kernel's randomness.
std::string RandomId();

}  // namespace evald
