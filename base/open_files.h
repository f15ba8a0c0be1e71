#pragma once

#include <cstdint>

namespace evald {

/// Raises this process's limit of open files (RLIMIT_NOFILE) to the hard limit, at most 65,536; its
/// children inherit the limit. Gives the limit then in force. Throws Error(kUsage) that says both
/// numbers when it is below `needed`.
uint64_t RaiseOpenFiles(uint64_t needed);

}  // namespace evald
