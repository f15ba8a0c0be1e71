#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "datasets/yaml_reader.h"

namespace evald {

enum class EntryKind { kTask, kGroup, kTag };

/// The task, group or tag that a name stands for.
struct TaskEntry {
  std::string name;
  EntryKind kind = EntryKind::kTask;
  std::string path;              ///< its file; "" for a tag
  YamlMapping yaml;              ///< merged with the files that it includes
  std::set<std::string> tagged;  ///< kTag: the tasks with this tag
};

/// A task file that is skipped.
struct BadTaskFile {
  std::string path;
  std::string name;  ///< of the task or group that it seems to define; "" if unknown
  std::string problem, remedy;
};

/// All names that task files define (lm_eval/tasks/_index.py, 0.4.13). Task files end with .yaml
/// and are read in order of their paths; a file that names neither a task nor a group is only for
/// inclusion. Later folders win over earlier ones and over the built-in files, with a line in the
/// log.
///
/// A file that cannot be read, or that defines a name of its folder a second time, is skipped; a
/// log line for each folder says so. A name that only such a file defines stands for no other task,
/// not even a built-in one: a request for it gets the file's error.
class TaskIndex {
 public:
  /// Throws Error(kInput) for a folder that does not exist. Folders and files are read below
  /// `roots`.
  explicit TaskIndex(const std::vector<std::filesystem::path>& task_dirs,
                     const ReadRoots& roots = {});

  /// Null for a name that no file defines. Throws Error(kInput) "file:line: ..." for a name whose
  /// file is skipped.
  const TaskEntry* Find(const std::string& name) const;
  const std::map<std::string, TaskEntry>& entries() const { return entries_; }
  std::vector<std::string> Names() const;
  const std::vector<BadTaskFile>& bad_files() const { return bad_files_; }

 private:
  using Entries = std::map<std::string, TaskEntry>;

  static void AddFile(const std::string& path, YamlMapping yaml, Entries* entries,
                      std::set<std::string>* doubled);
  void AddFolder(const std::filesystem::path& root, const ReadRoots& roots);
  void Merge(Entries entries);

  Entries entries_;
  std::vector<BadTaskFile> bad_files_;
  std::map<std::string, size_t> bad_names_;  ///< index into bad_files_
};

/// "built in" or the file of an entry.
std::string SourceOf(const TaskEntry& entry);

}  // namespace evald
