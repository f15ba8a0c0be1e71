#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// The last lines of a log that are not blank, at most `count`, as far as they lie in its last
/// 4 KiB. None if the file cannot be read.
std::vector<std::string> LastLines(const std::filesystem::path& file, size_t count);

}  // namespace evald
