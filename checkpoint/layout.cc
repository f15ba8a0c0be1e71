#include "checkpoint/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/weight_index.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kEntriesMax = 100'000;
constexpr const char* kTemplatesFolder = "additional_chat_templates";

[[noreturn]] void Refuse(const std::string& what, const std::string& remedy) {
  throw Error(ErrorKind::kInput, what, remedy);
}

bool IsRegular(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

bool IsFolder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Names of all entries of a folder, sorted.
std::vector<std::string> EntriesOf(const fs::path& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    names.push_back(it->path().filename().string());
    if (names.size() > kEntriesMax) {
      Refuse(fmt::format("{}: holds more than {} files", folder.string(), kEntriesMax),
             "give the folder of one checkpoint");
    }
  }
  if (error) {
    Refuse(fmt::format("{}: {}", folder.string(), error.message()), "check its permissions");
  }
  std::sort(names.begin(), names.end());
  return names;
}

void CheckFolder(const fs::path& root) {
  std::error_code error;
  if (!fs::exists(root, error)) {
    Refuse(fmt::format("{}: this checkpoint folder does not exist", root.string()),
           "check the path given as checkpoint");
  }
  if (!IsFolder(root)) {
    Refuse(fmt::format("{}: is not a folder", root.string()),
           "give the folder that holds config.json, tokenizer.json and *.safetensors");
  }
}

void CheckConfigAndTokenizer(const fs::path& root) {
  if (!IsRegular(root / "config.json")) {
    Refuse(fmt::format("{}: has no config.json", root.string()),
           "give a checkpoint in Hugging Face layout, as save_pretrained() writes it");
  }
  if (IsRegular(root / "tokenizer.json")) return;
  for (const char* slow : {"tokenizer.model", "vocab.json", "spiece.model"}) {
    if (!IsRegular(root / slow)) continue;
    Refuse(fmt::format("{}: has {} but no tokenizer.json", root.string(), slow),
           fmt::format("convert it once: python3 -c \"from transformers import AutoTokenizer as T; "
                       "T.from_pretrained('{0}').save_pretrained('{0}')\"",
                       root.string()));
  }
  Refuse(fmt::format("{}: has no tokenizer.json", root.string()),
         "copy the tokenizer that the model was trained with into this folder");
}

std::vector<std::string> IndexedShards(const fs::path& root) {
  std::vector<std::string> shards;
  for (const IndexEntry& entry : ReadWeightIndex(root / kWeightIndexFile)) {
    if (shards.empty() || shards.back() != entry.shard) shards.push_back(entry.shard);
  }
  for (const std::string& shard : shards) {
    if (!IsRegular(root / shard)) {
      Refuse(fmt::format("{}: {} names {}, which is not there", root.string(), kWeightIndexFile,
                         shard),
             "copy the whole checkpoint again");
    }
  }
  return shards;
}

// Which safetensors files are the model. Where transformers and other engines would not choose the
// same ones, the checkpoint is refused.
std::vector<std::string> FindShards(const fs::path& root, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    if (name.ends_with(".safetensors") && IsRegular(root / name)) found.push_back(name);
  }
  const bool single = std::binary_search(found.begin(), found.end(), kSingleShardFile);
  if (IsRegular(root / kWeightIndexFile)) {
    std::vector<std::string> shards = IndexedShards(root);
    if (single && !std::binary_search(shards.begin(), shards.end(), kSingleShardFile)) {
      Refuse(
          fmt::format("{}: has {} and an index that does not name it, so that it is unclear which "
                      "is the model",
                      root.string(), kSingleShardFile),
          "remove the one that is not");
    }
    return shards;
  }
  if (single) return {kSingleShardFile};
  if (found.empty()) {
    Refuse(fmt::format("{}: has no *.safetensors", root.string()),
           "save the model with save_pretrained(..., safe_serialization=True)");
  }
  if (found.size() > 1) {
    Refuse(fmt::format("{}: has {} safetensors files ({}, ...) and no {}", root.string(),
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

std::set<std::string> SideFiles(const fs::path& root, const std::vector<std::string>& entries) {
  std::set<std::string> chosen;
  for (const std::string& name : entries) {
    if (IsSideFile(name) && IsRegular(root / name)) chosen.insert(name);
  }
  const fs::path templates = root / kTemplatesFolder;
  if (IsFolder(templates)) {
    for (const std::string& name : EntriesOf(templates)) {
      if (name.ends_with(".jinja") && IsRegular(templates / name)) {
        chosen.insert(std::string(kTemplatesFolder) + "/" + name);
      }
    }
  }
  return chosen;
}

// A folder counts as skipped when nothing in it was chosen. evald's own files are not mentioned.
void FindSkipped(CheckpointLayout* layout, const std::vector<std::string>& entries,
                 const std::set<std::string>& chosen) {
  for (const std::string& name : entries) {
    if (name.starts_with(".evald-") || chosen.contains(name)) continue;
    if (!IsFolder(layout->root / name)) {
      layout->skipped.push_back(name);
      continue;
    }
    const std::string prefix = name + "/";
    const auto first = chosen.lower_bound(prefix);
    if (first == chosen.end() || !first->starts_with(prefix)) layout->skipped.push_back(prefix);
  }
}

}  // namespace

CheckpointLayout ReadCheckpointLayout(const fs::path& root) {
  CheckFolder(root);
  CheckpointLayout layout;
  layout.root = root;
  const std::vector<std::string> entries = EntriesOf(root);
  if (entries.empty()) {
    Refuse(fmt::format("{}: this checkpoint folder is empty", root.string()),
           "give the folder that holds config.json, tokenizer.json and *.safetensors");
  }
  CheckConfigAndTokenizer(root);
  layout.shards = FindShards(root, entries);
  std::set<std::string> chosen = SideFiles(root, entries);
  chosen.insert(layout.shards.begin(), layout.shards.end());
  for (const std::string& name : chosen) {
    std::error_code error;
    const uintmax_t bytes = fs::file_size(root / name, error);
    if (error) {
      Refuse(fmt::format("{}: {}", (root / name).string(), error.message()), "check this file");
    }
    layout.files.push_back({name, bytes});
    layout.total_bytes += bytes;
  }
  FindSkipped(&layout, entries, chosen);
  return layout;
}

std::vector<std::string> CandidateNames(const fs::path& root) {
  CheckFolder(root);
  const std::vector<std::string> entries = EntriesOf(root);
  std::set<std::string> names = SideFiles(root, entries);
  for (const std::string& name : entries) {
    if (name.ends_with(".safetensors") && IsRegular(root / name)) names.insert(name);
  }
  return {names.begin(), names.end()};
}

void CheckShards(const CheckpointLayout& layout) {
  std::vector<IndexEntry> index;
  if (IsRegular(layout.root / kWeightIndexFile))
    index = ReadWeightIndex(layout.root / kWeightIndexFile);
  auto entry = index.begin();
  for (const std::string& shard : layout.shards) {
    const SafetensorsHeader header = ReadSafetensorsHeader(layout.root / shard);
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
