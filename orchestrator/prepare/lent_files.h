#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "task_code/task_code.h"

namespace evald {

/// The files that evald lends to functions that make a task's documents (task_code/lent_files.h):
/// those of the run's tokenizer, and files below its data folder. Any thread.
class LentFiles {
 public:
  /// `checkpoint` and `data_dir` may be empty: nothing is lent of them.
  LentFiles(const std::filesystem::path& checkpoint, const std::filesystem::path& data_dir,
            const ReadRoots& roots);

  /// The paths, for task code, of the tokenizer's files.
  std::vector<std::string> TokenizerFiles() const;

  /// A lent file; nothing for any other path. Throws Error(kInput) for a file of more than 128 MiB.
  std::optional<WantedFile> Wanted(const std::string& path) const;

 private:
  ReadFolder checkpoint_, data_;
};

}  // namespace evald
