#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace evald::prepared {

/// The file of a prepared task that holds the XXH3-128 of the others: {"requests.jsonl": "5e0b...",
/// ...}.
inline constexpr const char* kHashesFile = "hashes.json";

/// Hash by file name.
using Hashes = std::map<std::string, std::string>;

void WriteHashes(const std::filesystem::path& directory, const Hashes& hashes);

/// What hashes.json says; nothing where an earlier version prepared the task, which wrote none.
/// Throws Error(kInput) for one that is damaged.
Hashes ReadHashes(const std::filesystem::path& directory);

/// Throws Error(kInput) naming the file when `bytes` are not what its hash says, or it has none
/// though others have.
void CheckBytes(const Hashes& hashes, const std::filesystem::path& file, std::string_view bytes);

}  // namespace evald::prepared
