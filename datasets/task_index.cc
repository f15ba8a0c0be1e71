#include "datasets/task_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/cores.h"
#include "base/file.h"
#include "base/log.h"
#include "base/names.h"
#include "base/parallel.h"
#include "base/text.h"
#include "datasets/builtin_files.h"
#include "datasets/task_yaml_cache.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFilesMax = 20'000;
constexpr size_t kEntriesMax = 100'000;  // of one folder
constexpr int kDepthMax = 50;
constexpr int kThreadsMax = 8;
constexpr size_t kFilesPerThread = 64;  // fewer are read sooner than a thread is started
constexpr size_t kLinesMax = 3;         // of one kind in the log, for each folder
constexpr size_t kSoughtBytesMax = 1 << 20;

// Adds the task files of `folder` and of its subfolders. Links to folders are not followed.
void FindYamlFiles(const ReadFolder& folder, int depth, std::vector<std::string>* files) {
  if (depth > kDepthMax) {
    throw Error(ErrorKind::kInput, fmt::format("{}: folders of tasks are nested more than {} deep",
                                               folder.path().string(), kDepthMax));
  }
  for (const std::string& name : folder.Names(".", kEntriesMax)) {
    const fs::path path = folder / name;
    if (path.extension() == ".yaml" && folder.HasFile(name)) {
      files->push_back(path.generic_string());
    } else if (name != "__pycache__" && name != ".ipynb_checkpoints" && !folder.IsLink(name)) {
      const ReadFolder inner = folder.Folder(name);
      if (inner.exists()) FindYamlFiles(inner, depth + 1, files);
    }
    if (files->size() > kFilesMax) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: more than {} task files", path.string(), kFilesMax));
    }
  }
}

std::vector<std::string> YamlFilesUnder(const fs::path& root, const ReadRoots& roots) {
  const ReadFolder folder(root, roots);
  if (!folder.exists() && !roots.anywhere()) roots.Refuse(root, folder.failure());
  if (!folder.exists()) {
    throw Error(ErrorKind::kInput, fmt::format("the task folder {} is not there", root.string()));
  }
  std::vector<std::string> files;
  FindYamlFiles(folder, 0, &files);
  std::sort(files.begin(), files.end());
  return files;
}

struct ReadYaml {
  YamlMapping yaml;
  std::optional<Error> failure;
};

// The files with those that they include, in their order. Reading and parsing take most of the time
// that a large folder needs, so that several threads share them.
std::vector<ReadYaml> ReadAll(const std::vector<std::string>& files, const ReadRoots& roots) {
  const auto cores = UsableCores();
  const auto most = static_cast<int>(files.size() / kFilesPerThread);
  const int threads = std::clamp(std::min(cores, most), 1, kThreadsMax);
  std::vector<ReadYaml> read(files.size());
  TaskYamlCache cache;
  ParallelFor(static_cast<int64_t>(files.size()), threads, [&](int64_t i) {
    const auto at = static_cast<size_t>(i);
    try {
      read[at].yaml = LoadTaskYaml(files[at], roots, &cache);
    } catch (const Error& error) {
      read[at].failure = error;
    }
  });
  return read;
}

// The name that a faulty file seems to define: the text after "task:" or "group:" at the beginning
// of a line.
std::string NameSoughtIn(const std::string& path, const ReadRoots& roots) {
  try {
    for (const std::string& line : Split(roots.Read(path, kSoughtBytesMax), '\n')) {
      for (const std::string_view key : {"task:", "group:"}) {
        if (!line.starts_with(key)) continue;
        std::string_view name = Trim(std::string_view(line).substr(key.size()));
        if (name.size() > 1 && (name.front() == '"' || name.front() == '\'') &&
            name.back() == name.front()) {
          name = name.substr(1, name.size() - 2);
        }
        if (!name.empty()) return std::string(name);
      }
    }
  } catch (const Error&) {  // it cannot be read at all, or is too long
  }
  return "";
}

void CheckName(const std::string& what, const std::string& name, const std::string& where) {
  const std::string wrong = WrongWithName(name);
  if (!wrong.empty())
    throw Error(ErrorKind::kInput, fmt::format("{}: the name of a {}: {}", where, what, wrong));
}

std::vector<std::string> TagsOf(const YamlMapping& yaml) {
  const auto found = yaml.value.find("tag");
  if (found == yaml.value.end() || found->is_null()) return {};
  std::vector<std::string> tags;
  for (const Json& tag : found->is_array() ? *found : Json::array({*found})) {
    if (!tag.is_string())
      throw Error(ErrorKind::kInput, yaml.Where("/tag") + ": a tag is not text");
    CheckName("tag", tag.get<std::string>(), yaml.Where("/tag"));
    tags.push_back(tag.get<std::string>());
  }
  return tags;
}

}  // namespace

std::string SourceOf(const TaskEntry& entry) {
  if (entry.kind == EntryKind::kTag) return "built in";
  return entry.path.rfind(kBuiltinPrefix, 0) == 0 ? "built in" : entry.path;
}

TaskIndex::TaskIndex(const std::vector<fs::path>& task_dirs, const ReadRoots& roots) {
  std::vector<std::string> files;
  for (size_t i = 0; i < kBuiltinFileCount; ++i) {
    if (kBuiltinFiles[i].path != "sources.yaml")
      files.push_back(std::string(kBuiltinPrefix) + std::string(kBuiltinFiles[i].path));
  }
  std::vector<ReadYaml> read = ReadAll(files, roots);
  Entries builtin;
  std::set<std::string> none;
  for (size_t i = 0; i < files.size(); ++i) {
    if (read[i].failure) throw Error(*read[i].failure);
    AddFile(files[i], std::move(read[i].yaml), &builtin, &none);
  }
  Merge(std::move(builtin));
  for (const fs::path& root : task_dirs) AddFolder(root, roots);
}

void TaskIndex::AddFolder(const fs::path& root, const ReadRoots& roots) {
  Entries own;
  std::set<std::string> doubled;  // a set: a file that many include repeats its sentences
  const size_t bad_before = bad_files_.size();
  const std::vector<std::string> files = YamlFilesUnder(root, roots);
  std::vector<ReadYaml> read = ReadAll(files, roots);
  for (size_t i = 0; i < files.size(); ++i) {
    try {
      if (read[i].failure) throw Error(*read[i].failure);
      AddFile(files[i], std::move(read[i].yaml), &own, &doubled);
    } catch (const Error& e) {
      bad_files_.push_back({files[i], NameSoughtIn(files[i], roots), e.message(), e.remedy()});
    }
  }
  for (size_t i = bad_before; i < bad_files_.size(); ++i) {
    const std::string& name = bad_files_[i].name;
    if (name.empty() || own.count(name) > 0) continue;
    bad_names_[name] = i;
    entries_.erase(name);
  }
  for (const auto& [name, entry] : own) bad_names_.erase(name);
  if (const size_t bad = bad_files_.size() - bad_before; bad > 0) {
    log::Warn("{}: {} of {} task files are passed over ('evald tasks' lists them); the first: {}",
              root.string(), bad, files.size(), bad_files_[bad_before].problem);
  }
  size_t told = 0;
  for (const std::string& sentence : doubled) {
    if (++told <= kLinesMax) log::Warn("{}", sentence);
  }
  if (told > kLinesMax)
    log::Warn("and {} more keys are written twice below {}", told - kLinesMax, root.string());
  Merge(std::move(own));
}

void TaskIndex::AddFile(const std::string& path, YamlMapping yaml, Entries* entries,
                        std::set<std::string>* doubled) {
  TaskEntry entry;
  entry.path = path;
  entry.yaml = std::move(yaml);
  doubled->merge(entry.yaml.doubled);
  const Json& value = entry.yaml.value;
  if (value.contains("class")) {  // a task in Python code: it is refused when it is requested
    if (!value.contains("task")) return;
  } else if (value.contains("group")) {
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
  CheckName(key, entry.name, where);
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
  size_t replaced = 0;
  for (auto& [name, entry] : entries) {
    const auto existing = entries_.find(name);
    if (existing != entries_.end() && ++replaced <= kLinesMax) {
      log::Warn("'{}' of {} takes the place of the one {}", name, SourceOf(entry),
                SourceOf(existing->second));
    }
    entries_[name] = std::move(entry);
  }
  if (replaced > kLinesMax)
    log::Warn("and {} more names take the place of others", replaced - kLinesMax);
}

const TaskEntry* TaskIndex::Find(const std::string& name) const {
  if (const auto bad = bad_names_.find(name); bad != bad_names_.end()) {
    const BadTaskFile& file = bad_files_[bad->second];
    throw Error(ErrorKind::kInput, file.problem, file.remedy);
  }
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::vector<std::string> TaskIndex::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : entries_) names.push_back(entry.first);
  return names;
}

}  // namespace evald
