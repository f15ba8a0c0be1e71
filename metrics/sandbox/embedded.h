#pragma once

#include <string_view>

namespace evald::sandbox {

/// The guest library (guest/*.cc), which is built beside this one and embedded in it.
std::string_view GuestLibrary();

/// The keeper (keeper/*.cc), a static program that is built beside this one and embedded in it.
std::string_view KeeperProgram();

/// guest/zygote.py
std::string_view ZygoteScript();

/// discover.py
std::string_view DiscoverScript();

}  // namespace evald::sandbox
