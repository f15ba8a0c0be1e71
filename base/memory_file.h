#pragma once

#include <string_view>

#include "base/file.h"

namespace evald {

/// A file without a name (memfd_create(2)) that holds `content`, to be read from its beginning. It
/// hands a program text that no one else may see, since every user may read a process's command
/// line. Closed on exec. Throws Error(kInfrastructure).
UniqueFd MemoryFile(std::string_view content);

}  // namespace evald
