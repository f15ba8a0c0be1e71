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

/// The YAML header of the folder's README.md, in which the hub keeps what it knows of the data; an
/// empty object if there is none. Throws Error(kInput) for broken YAML.
Json CardOf(const ReadFolder& folder);

/// All data files below the folder, sorted. Throws Error(kInput) if there is none, or too many.
std::vector<std::string> FilesOfFolder(const ReadFolder& folder);

/// The splits of a folder by the names of its files and subfolders, in the order in which
/// load_dataset of `datasets` 5 has them (get_data_patterns): shards
/// `data/<split>-00000-of-00001.…`, else folders named after splits, else files named after splits,
/// else one split `train` of all files. Throws Error(kInput) if there is no file, or too many.
std::vector<FolderSplit> SplitsOfFolder(const ReadFolder& folder);

/// Removes from `splits` the files that load_dataset would not read. Returns how the rest is read:
/// in the one format that their endings name. Throws Error(kInput) for several formats, for one
/// that is not served, and for files without types of their own (JSON, CSV, text) in a folder that
/// declares them elsewhere (`dataset_info` in README.md).
ReadRules RulesOfFolder(const ReadFolder& folder, std::vector<FolderSplit>* splits);

}  // namespace evald
