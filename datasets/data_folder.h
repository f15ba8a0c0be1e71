#pragma once

#include <string>
#include <vector>

#include "base/read_roots.h"
#include "datasets/documents.h"

namespace evald {

/// The files of one split of a folder with data.
struct FolderSplit {
  std::string name;
  std::vector<std::string> files;  ///< relative to the folder; a file may be listed twice
};

/// The splits of a folder by the names of its files and subfolders, in the order in which
/// load_dataset of `datasets` 5 has them (get_data_patterns): shards
/// `data/<split>-00000-of-00001.…`, else folders named after splits, else files named after splits,
/// else one split `train` of all files. Throws Error(kInput) if there is no file, or too many.
std::vector<FolderSplit> SplitsOfFolder(const ReadFolder& folder);

/// Removes from `splits` the files that load_dataset would not read. Returns how the rest is read:
/// in the one format that their endings name. Throws Error(kInput) for several formats, for one
/// that is not served, and for a folder that carries a description of its own (README.md with
/// `configs` or `dataset_info`).
ReadRules RulesOfFolder(const ReadFolder& folder, std::vector<FolderSplit>* splits);

}  // namespace evald
