#include "datasets/task_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "datasets/builtin_files.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFilesMax = 20'000;

std::vector<std::string> YamlFilesUnder(const fs::path& root) {
  std::error_code failed;
  if (!fs::is_directory(root, failed)) {
    throw Error(ErrorKind::kInput, fmt::format("the task folder {} is not there", root.string()));
  }
  std::vector<std::string> files;
  for (fs::recursive_directory_iterator it(root, failed), end; it != end; it.increment(failed)) {
    if (failed) break;
    const std::string name = it->path().filename().string();
    if (it->is_directory() && (name == "__pycache__" || name == ".ipynb_checkpoints")) {
      it.disable_recursion_pending();
    } else if (it->is_regular_file() && it->path().extension() == ".yaml") {
      files.push_back(it->path().generic_string());
      if (files.size() > kFilesMax) {
        throw Error(ErrorKind::kInput, fmt::format("the task folder {} has more than {} YAML files",
                                                   root.string(), kFilesMax));
      }
    }
  }
  if (failed) {
    throw Error(ErrorKind::kInput, fmt::format("the task folder {} cannot be read: {}",
                                               root.string(), failed.message()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> TagsOf(const YamlMapping& yaml) {
  const auto found = yaml.value.find("tag");
  if (found == yaml.value.end() || found->is_null()) return {};
  std::vector<std::string> tags;
  for (const Json& tag : found->is_array() ? *found : Json::array({*found})) {
    if (!tag.is_string())
      throw Error(ErrorKind::kInput, yaml.Where("/tag") + ": a tag is not text");
    tags.push_back(tag.get<std::string>());
  }
  return tags;
}

}  // namespace

std::string SourceOf(const TaskEntry& entry) {
  if (entry.kind == EntryKind::kTag) return "built in";
  return entry.path.rfind(kBuiltinPrefix, 0) == 0 ? "built in" : entry.path;
}

TaskIndex::TaskIndex(const std::vector<fs::path>& task_dirs) {
  Entries builtin;
  for (size_t i = 0; i < kBuiltinFileCount; ++i) {
    if (kBuiltinFiles[i].path == "sources.yaml") continue;
    AddFile(std::string(kBuiltinPrefix) + std::string(kBuiltinFiles[i].path), &builtin);
  }
  Merge(std::move(builtin));
  for (const fs::path& root : task_dirs) {
    Entries own;
    for (const std::string& file : YamlFilesUnder(root)) AddFile(file, &own);
    Merge(std::move(own));
  }
}

void TaskIndex::AddFile(const std::string& path, Entries* entries) {
  TaskEntry entry;
  entry.path = path;
  entry.yaml = LoadTaskYaml(path);
  const Json& value = entry.yaml.value;
  if (value.contains("group")) {
    entry.kind = EntryKind::kGroup;
  } else if (!value.contains("task")) {
    return;
  }
  const std::string key = entry.kind == EntryKind::kGroup ? "group" : "task";
  const std::string where = entry.yaml.Where("/" + key);
  if (!value.at(key).is_string() || value.at(key) == "") {
    throw Error(ErrorKind::kInput, fmt::format("{}: the name of a {} is text", where, key));
  }
  entry.name = value.at(key).get<std::string>();
  const std::vector<std::string> tags =
      entry.kind == EntryKind::kTask ? TagsOf(entry.yaml) : std::vector<std::string>();
  const std::string name = entry.name;
  const auto existing = entries->find(name);
  if (existing != entries->end() && existing->second.kind != EntryKind::kTag) {
    throw Error(ErrorKind::kInput, fmt::format("{}: the name '{}' is already defined by {}", where,
                                               name, existing->second.path));
  }
  (*entries)[name] = std::move(entry);
  for (const std::string& tag : tags) {
    TaskEntry& tagged = (*entries)[tag];
    if (tagged.name.empty()) {
      tagged.name = tag;
      tagged.kind = EntryKind::kTag;
    }
    tagged.tagged.insert(name);
  }
}

void TaskIndex::Merge(Entries entries) {
  for (auto& [name, entry] : entries) {
    const auto existing = entries_.find(name);
    if (existing != entries_.end()) {
      log::Warn("'{}' of {} takes the place of the one {}", name, SourceOf(entry),
                   SourceOf(existing->second));
    }
    entries_[name] = std::move(entry);
  }
}

const TaskEntry* TaskIndex::Find(const std::string& name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<std::string> TaskIndex::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.first);
  return names;
}

}  // namespace evald
