#pragma once

namespace evald {

/// evald's version: the project's, by CMakeLists.txt.
extern const char* const kEvaldVersion;

}  // namespace evald
