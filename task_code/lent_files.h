#pragma once

#include <string_view>

namespace evald {

/// Folders that task code sees although no host has them: the files of the run's tokenizer, and of
/// its data folder.
inline constexpr const char* kLentTokenizer = "/evald/tokenizer";
inline constexpr const char* kLentData = "/evald/data";

/// Whether a path lies in one of them.
inline bool IsLentFile(std::string_view path) {
  return path.starts_with("/evald/tokenizer/") || path.starts_with("/evald/data/");
}

}  // namespace evald
