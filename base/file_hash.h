#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace evald {

/// What a file holds, in brief.
struct FileHash {
  uint64_t bytes = 0;
  std::string hash;  ///< XXH3-128 of all of it, as HashHex() gives it
};

/// Reads the file piece by piece: memory does not grow with its size. Throws Error(kInput) when it
/// cannot be opened, Error(kInfrastructure) when reading fails.
FileHash HashOfFile(const std::filesystem::path& path);
/// The same of an open file, from its beginning; `path` names it in errors.
FileHash HashOfFile(int fd, const std::filesystem::path& path);

}  // namespace evald
