#pragma once

namespace evald {

/// evald's version: the project's version in CMakeLists.txt.
extern const char* const kEvaldVersion;

}  // namespace evald
