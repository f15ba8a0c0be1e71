#include "orchestrator/prepare/lent_files.h"

#include <algorithm>
#include <iterator>

#include "task_code/lent_files.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kBytesMax = uint64_t{128} << 20;
// The files from which transformers' AutoTokenizer makes a tokenizer, and none with code.
constexpr const char* kTokenizerFiles[] = {"tokenizer.json",
                                           "tokenizer_config.json",
                                           "special_tokens_map.json",
                                           "added_tokens.json",
                                           "tokenizer.model",
                                           "vocab.json",
                                           "merges.txt",
                                           "vocab.txt",
                                           "spiece.model",
                                           "chat_template.jinja",
                                           "config.json"};

ReadFolder FolderOf(const fs::path& path, const ReadRoots& roots) {
  return path.empty() ? ReadFolder() : ReadFolder(path, roots);
}

// The name below `folder`, "/evald/data"; "" for a path that is not inside.
std::string Below(const std::string& folder, const std::string& path) {
  if (!path.starts_with(folder + "/")) return "";
  const std::string inside = path.substr(folder.size() + 1);
  const bool plain = !inside.starts_with('/') && !inside.starts_with("..") &&
                     fs::path(inside).lexically_normal().string() == inside;
  return plain ? inside : "";
}

WantedFile FileIn(const ReadFolder& folder, const std::string& name) {
  if (!folder.exists() || name.empty() || !folder.HasFile(name)) return {};
  return {WantedFile::Kind::kFile, folder.Read(name, kBytesMax)};
}

}  // namespace

LentFiles::LentFiles(const fs::path& checkpoint, const fs::path& data_dir, const ReadRoots& roots)
    : checkpoint_(FolderOf(checkpoint, roots)), data_(FolderOf(data_dir, roots)) {}

std::vector<std::string> LentFiles::TokenizerFiles() const {
  std::vector<std::string> files;
  for (const char* name : kTokenizerFiles) {
    if (checkpoint_.exists() && checkpoint_.HasFile(name))
      files.push_back(std::string(kLentTokenizer) + "/" + name);
  }
  return files;
}

std::optional<WantedFile> LentFiles::Wanted(const std::string& path) const {
  if (!IsLentFile(path)) return std::nullopt;
  const std::string name = Below(kLentTokenizer, path);
  if (name.empty()) return FileIn(data_, Below(kLentData, path));
  const bool known = std::find(std::begin(kTokenizerFiles), std::end(kTokenizerFiles), name) !=
                     std::end(kTokenizerFiles);
  return known ? FileIn(checkpoint_, name) : WantedFile();
}

}  // namespace evald
