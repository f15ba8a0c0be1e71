#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace evald {

/// The size and hash of a file. (The file_hash of docs/staging.md is another hash, over chunks.)
struct FileHash {
  uint64_t bytes = 0;
  std::string hash;  ///< XXH3-128 of the whole file, written like HashHex(): 32 hexadecimal digits
};

/// Reads the file in pieces, so memory does not grow with its size. Throws Error(kInput) if it
/// cannot be opened, and Error(kInfrastructure) if reading fails.
FileHash HashOfFile(const std::filesystem::path& path);
/// The same for an open file, from its beginning; `path` names it in errors.
FileHash HashOfFile(int fd, const std::filesystem::path& path);

}  // namespace evald
