#pragma once

#include <cstdint>

namespace evald {

/// Raises this process's limit of open files (RLIMIT_NOFILE) to the hard limit, at most 65,536.
/// Children inherit the limit. Returns the limit then in force. Throws Error(kUsage) with both
/// numbers if it is below `needed`.
uint64_t RaiseOpenFiles(uint64_t needed);

}  // namespace evald
