#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "datasets/yaml_reader.h"

namespace evald {

enum class EntryKind { kTask, kGroup, kTag };

/// What a name stands for.
struct TaskEntry {
  std::string name;
  EntryKind kind = EntryKind::kTask;
  std::string path;              ///< its file; "" for a tag
  YamlMapping yaml;              ///< merged with what it includes
  std::set<std::string> tagged;  ///< kTag: the tasks that carry it
};

/// All names that task files define (lm_eval/tasks/_index.py, 0.4.13): files that end with .yaml,
/// in order of their paths; one that names neither a task nor a group is there to be included only.
/// Later folders win over earlier ones and over the built-in files, with a line in the log.
class TaskIndex {
 public:
  /// Throws Error(kInput) "file:line: ..." for a file that cannot be read, a name defined twice in
  /// one folder, and a folder that is not there. Folders and files are read below `roots`.
  explicit TaskIndex(const std::vector<std::filesystem::path>& task_dirs, const ReadRoots& roots = {});

  const TaskEntry* Find(const std::string& name) const;
  const std::map<std::string, TaskEntry>& entries() const { return entries_; }
  std::vector<std::string> Names() const;

 private:
  using Entries = std::map<std::string, TaskEntry>;

  static void AddFile(const std::string& path, const ReadRoots& roots, Entries* entries);
  void Merge(Entries entries);

  Entries entries_;
};

/// "built in" or the file of an entry.
std::string SourceOf(const TaskEntry& entry);

}  // namespace evald
