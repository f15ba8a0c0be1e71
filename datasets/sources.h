#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "datasets/documents.h"
#include "datasets/task_config.h"
#include "task_code/table_reader.h"

namespace evald {

/// A file with rows, opened once. Its owner may write to it between two readings.
struct DataFile {
  std::filesystem::path path;  ///< its name, for messages and for its ending
  UniqueFd fd;
  std::string hash;  ///< SHA-256 that it must have when it is read; "": any
};

/// The files with one split of a task's dataset.
struct SplitFiles {
  std::vector<DataFile> files;  ///< read one after the other
  std::optional<RowRange> range;
  ReadRules rules;
  /// The first file of the dataset's first split, whose first rows decide the columns of all
  /// splits, as in load_dataset. Nothing if that file is `files.front()`, or if the files lie under
  /// data_dir in place of a dataset of the hub.
  std::optional<DataFile> first;
};

/// Whether a dataset_path names a folder of this machine: it is absolute, begins with "./" or
/// "../", or has more parts than a name of the hub.
bool IsLocalFolder(const std::string& dataset_path);

/// The files that are looked for, in this order, for a split of a dataset of the hub: those of the
/// table datasets/tasks/sources.yaml, then those that the dataset's name gives. After these come
/// the places of FindHubFolder.
std::vector<std::filesystem::path> PlacesOfSplit(const TaskConfig& config, const std::string& split,
                                                 const std::filesystem::path& data_dir);

/// Finds and opens the files of `split`, below `roots`: the task's own data_files, else those of
/// the local folder that dataset_path or dataset_kwargs.data_dir names, else those in the table
/// datasets/tasks/sources.yaml under `data_dir`, else <data_dir>/<last part of
/// dataset_path>[/<dataset_name>]/<split>.<ending>. Throws Error(kInput) that names every place
/// tried.
SplitFiles FindSplit(const TaskConfig& config, const std::string& split,
                     const std::filesystem::path& data_dir, const ReadRoots& roots = {});

/// Reads the rows of a split. `tables` makes the process that reads files with tables; null: the
/// system's Python does. Throws Error(kInput), also if a file's content no longer has the file's
/// `hash`. Throws Error(kInfrastructure) if `cancel` is set.
Documents ReadSplit(const SplitFiles& files, const DataLimits& limits,
                    const std::atomic<bool>* cancel,
                    const std::function<std::unique_ptr<TableReader>()>& tables = nullptr);

}  // namespace evald
