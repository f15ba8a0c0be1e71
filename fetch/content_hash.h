#pragma once

#include <filesystem>
#include <string>

namespace evald::fetch {

/// The name that git gives the content of an open file: SHA-1 of "blob <bytes>\0" and the content,
/// 40 lower-case hexadecimal digits (git-hash-object(1)). `path` names the file in errors. Throws
/// Error(kInfrastructure) if reading fails.
std::string GitBlobOfFile(int fd, const std::filesystem::path& path);

}  // namespace evald::fetch
