#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file.h"

namespace evald::api {

/// A file of a run's folder, open for reading.
struct RunFile {
  UniqueFd fd;
  uint64_t bytes = 0;
  std::string version;  ///< changes with the file: device, inode, size, time of change
};

/// A file that is open already. Throws Error(kInfrastructure).
RunFile RunFileOf(UniqueFd fd);

/// Opens `name` directly inside `directory`: a regular file, no symbolic link, and a name without
/// "/". The fd is empty if there is none. Throws Error(kInfrastructure).
RunFile OpenRunFile(const std::filesystem::path& directory, const std::string& name);

}  // namespace evald::api
