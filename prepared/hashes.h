#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace evald::prepared {

/// The file of a prepared task that holds the XXH3-128 of the other files: {"requests.jsonl":
/// "5e0b...", ...}.
inline constexpr const char* kHashesFile = "hashes.json";

/// Hash by file name.
using Hashes = std::map<std::string, std::string>;

void WriteHashes(const std::filesystem::path& directory, const Hashes& hashes);

/// The content of hashes.json. Nothing if an earlier version of evald prepared the task: it wrote
/// no such file. Throws Error(kInput) for a damaged file.
Hashes ReadHashes(const std::filesystem::path& directory);

/// Throws Error(kInput), which names the file, if `bytes` do not have the file's hash. It also
/// throws if the file has no hash although other files have one.
void CheckBytes(const Hashes& hashes, const std::filesystem::path& file, std::string_view bytes);

}  // namespace evald::prepared
