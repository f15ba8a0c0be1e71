#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "task_code/task_code.h"

namespace evald {

/// The files that Python functions of tasks may have: those below the folders of task files. Each
/// folder is opened once. Any thread.
class TaskFiles {
 public:
  TaskFiles(const std::vector<std::filesystem::path>& task_dirs, const ReadRoots& roots);

  /// The file or folder at an absolute path. Nothing for a path outside. Throws Error(kInput) for a
  /// link that leads outside, a file of more than 16 MiB, and one that cannot be read.
  WantedFile Wanted(const std::string& path) const;

  /// The folders' names.
  std::vector<std::string> Folders() const;

 private:
  std::vector<ReadFolder> folders_;
};

}  // namespace evald
