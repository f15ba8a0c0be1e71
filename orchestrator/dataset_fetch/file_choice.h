#pragma once

#include <string>
#include <utility>
#include <vector>

#include "fetch/hub.h"

namespace evald::dataset_fetch {

/// dataset_name (or "") and split.
using PartAndSplit = std::pair<std::string, std::string>;

/// The files of a repository that must be in its copy for these splits to be read: those of the
/// splits, and of the first split if its rows decide the columns' types (files without types of
/// their own). Chosen by the code that reads copies (datasets/hub_folder.h), on a folder of empty
/// files with the names of `files`; only README.md has content, `card`. Throws Error(kInput), which
/// names the repository, for a split or part that is not there and for formats that evald does not
/// read.
std::vector<std::string> ChooseFiles(const std::string& repository,
                                     const std::vector<fetch::HubFile>& files,
                                     const std::string& card,
                                     const std::vector<PartAndSplit>& wanted);

/// The README.md for a repository whose own does not say which files make a split: configs, each
/// with patterns by split.
struct CardConfig {
  std::string name;
  std::vector<std::pair<std::string, std::vector<std::string>>> splits;
};
std::string CardText(const std::vector<CardConfig>& configs, const std::string& remark);

/// The configs of the hub's branch refs/convert/parquet, whose files are
/// <config>/<split>/0000.parquet. Splits of which the hub converted only a part (partial-<split>)
/// are left out.
std::vector<CardConfig> ConvertedConfigs(const std::vector<fetch::HubFile>& files);

}  // namespace evald::dataset_fetch
