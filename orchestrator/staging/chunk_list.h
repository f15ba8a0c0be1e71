#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/staging/fingerprint.h"

/// The list of a staged checkpoint's chunks with their hashes, kept in the staged folder. Whoever
/// has the list can check each chunk by itself as it arrives, whoever sent it: the list belongs to
/// a checkpoint if the tree hash of it is the checkpoint's fingerprint.
namespace evald {

/// Hidden, and so no part of the checkpoint. The file is
/// {"files":[{"name":"config.json","bytes":612,"chunks":["<32 hexadecimal digits>"]}]}
/// (docs/staging.md).
inline constexpr const char* kChunkListFile = ".evald-chunks.json";

/// Writes the list into `folder`. Throws Error(kInfrastructure).
void WriteChunkList(const std::filesystem::path& folder, const std::vector<HashedFile>& files);

/// The member "files" of such a list. Throws Error(kInput) "<where>: …" if a member is absent or
/// wrong, or if a name is not one of a file inside of the checkpoint's folder.
std::vector<HashedFile> ChunkListFromJson(const Json& files, const std::string& where);

/// The list in `folder`. Throws Error if there is none, or a broken one.
std::vector<HashedFile> ReadChunkList(const std::filesystem::path& folder);

}  // namespace evald
