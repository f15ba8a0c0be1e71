#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "datasets/documents.h"
#include "datasets/task_config.h"

namespace evald {

/// A file with rows, opened once. Its owner may write it between two readings.
struct DataFile {
  std::filesystem::path path;  ///< its name, for messages and its ending
  UniqueFd fd;
  std::string hash;  ///< SHA-256 of what it must hold when it is read; "" for whatever it holds
};

/// The files that hold one split of a task's dataset.
struct SplitFiles {
  std::vector<DataFile> files;  ///< read one after the other
  std::optional<RowRange> range;
  ReadRules rules;
  /// The first file of the dataset's first split, whose first rows decide the columns of all
  /// splits, as with load_dataset; none where it is `files.front()`, or where the files stand for a
  /// dataset.
  std::optional<DataFile> first;
};

/// Finds the files of `split`: the task's own data_files, else the table
/// datasets/tasks/sources.yaml under `data_dir`, else <data_dir>/<last part of
/// dataset_path>[/<dataset_name>]/<split>.<ending>, and opens them, below `roots`. Throws
/// Error(kInput) that names every place looked at.
SplitFiles FindSplit(const TaskConfig& config, const std::string& split,
                     const std::filesystem::path& data_dir, const ReadRoots& roots = {});

/// Reads the rows of a split. Throws Error(kInput), for a file that does not hold what its hash
/// says, too: it changed after it was hashed, or while it was read.
Documents ReadSplit(const SplitFiles& files, const DataLimits& limits,
                    const std::atomic<bool>* cancel);

}  // namespace evald
