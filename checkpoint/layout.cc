#include "checkpoint/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/text.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_index.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kEntriesMax = 100'000;
constexpr const char* kTemplatesFolder = "additional_chat_templates";

[[noreturn]] void Refuse(const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::kInput, what, remedy);
}

// Throws if `root` is not a folder.
void CheckFolder(const ReadFolder& root) {
  if (root.exists()) return;
  if (!root.roots().anywhere()) root.roots().Refuse(root.path(), root.failure());
  if (root.failure() == ENOTDIR) {
    Refuse(fmt::format("{}: is not a folder", root.path().string()),
           "give the folder that holds config.json, tokenizer.json and *.safetensors");
  }
  if (root.failure() != ENOENT) root.roots().Refuse(root.path(), root.failure());
  Refuse(fmt::format("{}: this checkpoint folder does not exist", root.path().string()),
         "check the path given as checkpoint");
}

void CheckConfigAndTokenizer(const ReadFolder& root) {
  if (!root.HasFile("config.json")) {
    Refuse(fmt::format("{}: has no config.json", root.path().string()),
           "give a checkpoint in Hugging Face layout, as save_pretrained() writes it");
  }
  if (root.HasFile("tokenizer.json")) return;
  for (const char* slow : {"tokenizer.model", "vocab.json", "spiece.model"}) {
    if (!root.HasFile(slow)) continue;
    Refuse(fmt::format("{}: has {} but no tokenizer.json", root.path().string(), slow),
           fmt::format("convert it once: python3 -c \"from transformers import AutoTokenizer as T; "
                       "T.from_pretrained('{0}').save_pretrained('{0}')\"",
                       root.path().string()));
  }
  Refuse(fmt::format("{}: has no tokenizer.json", root.path().string()),
         "copy the tokenizer that the model was trained with into this folder");
}

// The files that the index names. An empty weight_map names none.
std::vector<std::string> IndexedShards(const ReadFolder& root) {
  std::vector<std::string> shards;
  for (const IndexEntry& entry :
       ReadWeightIndex(root.OpenFile(kWeightIndexFile), root / kWeightIndexFile)) {
    if (shards.empty() || shards.back() != entry.shard) shards.push_back(entry.shard);
  }
  for (const std::string& shard : shards) {
    if (!root.HasFile(shard)) {
      Refuse(fmt::format("{}: {} names {}, which is not there", root.path().string(),
                         kWeightIndexFile, shard),
             "copy the whole checkpoint again");
    }
  }
  return shards;
}

// The safetensors files that hold the model. A checkpoint is refused if transformers and other
// engines would not choose the same files.
std::vector<std::string> FindShards(const ReadFolder& root, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name.ends_with(".safetensors") && root.HasFile(name)) found.push_back(name);
  }
  const bool single = std::binary_search(found.begin(), found.end(), kSingleShardFile);
  if (root.HasFile(kWeightIndexFile)) {
    std::vector<std::string> shards = IndexedShards(root);
    if (shards.empty()) {  // an empty index contradicts nothing
      if (single) return {kSingleShardFile};
      Refuse(fmt::format("{}: {} has an empty weight_map", root.path().string(), kWeightIndexFile),
             "save the checkpoint again, or copy it again from where it came");
    }
    if (single && !std::binary_search(shards.begin(), shards.end(), kSingleShardFile)) {
      Refuse(
          fmt::format("{}: has {} and an index that does not name it, so that it is unclear which "
                      "is the model",
                      root.path().string(), kSingleShardFile),
          "remove the one that is not");
    }
    return shards;
  }
  if (single) return {kSingleShardFile};
  if (found.empty()) {
    Refuse(fmt::format("{}: has no *.safetensors", root.path().string()),
           "save the model with save_pretrained(..., safe_serialization=True)");
  }
  if (found.size() > 1) {
    Refuse(fmt::format("{}: has {} safetensors files ({}, ...) and no {}", root.path().string(),
                       found.size(), found.front(), kWeightIndexFile),
           "copy the whole checkpoint again");
  }
  return found;
}

bool IsSideFile(const std::string& name) {
  static const std::vector<std::string> kEndings = {".json", ".txt", ".model", ".jinja"};
  return name.front() != '.' && std::any_of(kEndings.begin(), kEndings.end(),
                                            [&](const auto& end) { return name.ends_with(end); });
}

std::set<std::string> SideFiles(const ReadFolder& root, const std::vector<std::string>& entries) {
  std::set<std::string> chosen;
  for (const std::string& name : entries) {
    if (IsSideFile(name) && root.HasFile(name)) chosen.insert(name);
  }
  if (root.HasFolder(kTemplatesFolder)) {
    for (const std::string& name : root.Names(kTemplatesFolder, kEntriesMax)) {
      const std::string inside = std::string(kTemplatesFolder) + "/" + name;
      if (name.ends_with(".jinja") && root.HasFile(inside)) chosen.insert(inside);
    }
  }
  return chosen;
}

// Messages, records and answers are JSON, which could not name such a file.
void CheckNamesAreText(const ReadFolder& root, const std::set<std::string>& chosen) {
  for (const std::string& name : chosen) {
    if (IsUtf8(name)) continue;
    Refuse(fmt::format("{}: holds the file '{}', whose name is not UTF-8", root.path().string(),
                       PrintableLine(name)),
           "rename this file, or remove it if the model does without");
  }
}

// A folder counts as skipped if no file in it was chosen. evald's own files are not mentioned.
void FindSkipped(CheckpointLayout* layout, const std::vector<std::string>& entries,
                 const std::set<std::string>& chosen) {
  for (const std::string& name : entries) {
    if (name.starts_with(".evald-") || chosen.contains(name)) continue;
    if (!layout->folder.HasFolder(name)) {
      layout->skipped.push_back(name);
      continue;
    }
    const std::string prefix = name + "/";
    const auto first = chosen.lower_bound(prefix);
    if (first == chosen.end() || !first->starts_with(prefix)) layout->skipped.push_back(prefix);
  }
}

}  // namespace

CheckpointLayout ReadCheckpointLayout(const ReadFolder& root) {
  CheckFolder(root);
  CheckpointLayout layout;
  layout.folder = root;
  layout.root = root.path();
  const std::vector<std::string> entries = root.Names(".", kEntriesMax);
  if (entries.empty()) {
    Refuse(fmt::format("{}: this checkpoint folder is empty", root.path().string()),
           "give the folder that holds config.json, tokenizer.json and *.safetensors");
  }
  CheckConfigAndTokenizer(root);
  layout.shards = FindShards(root, entries);
  std::set<std::string> chosen = SideFiles(root, entries);
  chosen.insert(layout.shards.begin(), layout.shards.end());
  CheckNamesAreText(root, chosen);
  for (const std::string& name : chosen) {
    struct stat info{};
    if (!root.Stat(name, &info))
      Refuse(fmt::format("{}: is not there any more", (root / name).string()), "check this file");
    layout.files.push_back({name, static_cast<uint64_t>(info.st_size)});
    layout.total_bytes += layout.files.back().bytes;
  }
  FindSkipped(&layout, entries, chosen);
  return layout;
}

std::vector<std::string> CandidateNames(const ReadFolder& root) {
  CheckFolder(root);
  const std::vector<std::string> entries = root.Names(".", kEntriesMax);
  std::set<std::string> names = SideFiles(root, entries);
  for (const std::string& name : entries) {
    if (name.ends_with(".safetensors") && root.HasFile(name)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

void CheckShards(const CheckpointLayout& layout) {
  std::vector<IndexEntry> index;
  const ReadFolder& folder = layout.folder;
  if (folder.HasFile(kWeightIndexFile)) {
    index = ReadWeightIndex(folder.OpenFile(kWeightIndexFile), folder / kWeightIndexFile);
  }
  auto entry = index.begin();
  for (const std::string& shard : layout.shards) {
    const SafetensorsHeader header = ReadSafetensorsHeader(folder.OpenFile(shard), folder / shard);
    if (header.tensors.empty()) {
      Refuse(fmt::format("{}: holds no tensors", (layout.root / shard).string()),
             "copy the whole checkpoint again");
    }
    for (; entry != index.end() && entry->shard == shard; ++entry) {
      if (header.tensors.contains(entry->tensor)) continue;
      Refuse(fmt::format("{}: has no tensor '{}', which {} says is in it",
                         (layout.root / shard).string(), entry->tensor, kWeightIndexFile),
             "copy the whole checkpoint again");
    }
  }
  if (entry != index.end()) {
    Refuse(fmt::format("{}: {} changed while it was read", layout.root.string(), kWeightIndexFile),
           "try again once the checkpoint is complete");
  }
}

}  // namespace evald
