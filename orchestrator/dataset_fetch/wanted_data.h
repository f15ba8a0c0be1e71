#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "datasets/task_set.h"

namespace evald::dataset_fetch {

/// A split of a dataset that tasks read.
struct WantedSplit {
  std::string part;  ///< dataset_name, or ""
  std::string split;
  std::vector<std::string> tasks;
  std::vector<std::string> found;   ///< its files; none: it is not there
  std::vector<std::string> places;  ///< where one file with the split may lie
  bool tables = false;              ///< what was found are tables
  std::string problem;              ///< why it is not there
};

/// A file of the hub that tasks name themselves (hf://datasets/owner/name/path).
struct WantedFile {
  std::string path;
  std::string revision;  ///< "": none is named
  std::vector<std::string> tasks;
  bool there = false;
};

/// A dataset of the hub.
struct WantedDataset {
  std::string dataset;
  std::vector<WantedSplit> splits;
  std::vector<WantedFile> files;
  bool AllThere() const;
};

/// Data that does not come from the hub.
struct OwnData {
  std::string what;  ///< "the files that its task file names", "made by the function x"
  std::vector<std::string> tasks;
  std::vector<std::string> found;
  std::string problem;  ///< why it is not there; "": it is
};

struct WantedData {
  std::vector<WantedDataset> datasets;  ///< in the order of the tasks
  std::vector<OwnData> own;
};

/// The data of the tasks, and whether it lies below `data_dir`, each once.
WantedData WantedDataOf(const ResolvedTasks& tasks, const std::filesystem::path& data_dir);

}  // namespace evald::dataset_fetch
