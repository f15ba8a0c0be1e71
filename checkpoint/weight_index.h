#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"

namespace evald {

inline constexpr const char* kWeightIndexFile = "model.safetensors.index.json";
inline constexpr const char* kSingleShardFile = "model.safetensors";

/// The place of a tensor according to the index of a sharded checkpoint.
struct IndexEntry {
  std::string tensor;
  std::string shard;  ///< relative to the checkpoint's folder
};

/// The "weight_map" of a `model.safetensors.index.json`, sorted by shard, then tensor. Other
/// members are passed over. Throws Error(kInput), which names the file, if the file is not JSON,
/// has no weight map, maps a tensor twice, or names a shard that is not a plain relative name
/// ending in ".safetensors". Reads at most 64 MiB.
std::vector<IndexEntry> ReadWeightIndex(const std::filesystem::path& path);
/// The same for an open file. `path` names it in errors.
std::vector<IndexEntry> ReadWeightIndex(const UniqueFd& fd, const std::filesystem::path& path);

/// Whether `name` is relative, without empty, "." or ".." parts.
bool StaysInside(const std::string& name);

}  // namespace evald
