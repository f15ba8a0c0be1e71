#include "orchestrator/staging/chunk_list.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "checkpoint/weight_index.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;

void WriteChunkList(const fs::path& folder, const std::vector<HashedFile>& files) {
  Json list = Json::array();
  for (const HashedFile& file : files)
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"chunks", file.chunks}});
  WriteFileAtomic(folder / kChunkListFile, ToLine({{"files", std::move(list)}}) + "\n");
}

std::vector<HashedFile> ChunkListFromJson(const Json& files, const std::string& where) {
  std::vector<HashedFile> list;
  for (const Json& file : files) {
    HashedFile hashed{Field<std::string>(file, "name", where),
                      Field<uint64_t>(file, "bytes", where),
                      Field<std::vector<std::string>>(file, "chunks", where)};
    if (!StaysInside(hashed.name)) {
      throw Error(ErrorKind::kInput, fmt::format("{}: '{}' is no name for a file of a checkpoint",
                                                 where, hashed.name));
    }
    if (hashed.chunks.size() != HashChunksOf(hashed.bytes)) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: {} has {} chunks, expected {} for {} bytes", where, hashed.name,
                              hashed.chunks.size(), HashChunksOf(hashed.bytes), hashed.bytes));
    }
    list.push_back(std::move(hashed));
  }
  return list;
}

std::vector<HashedFile> ReadChunkList(const fs::path& folder) {
  const std::string path = folder / kChunkListFile;
  return ChunkListFromJson(Field<Json>(ParseJson(ReadFile(path), path), "files", path), path);
}

}  // namespace evald
