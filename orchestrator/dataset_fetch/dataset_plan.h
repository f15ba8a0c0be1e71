#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fetch/hub.h"
#include "orchestrator/dataset_fetch/fetched_folder.h"
#include "orchestrator/dataset_fetch/source_table.h"
#include "orchestrator/dataset_fetch/wanted_data.h"

namespace evald::dataset_fetch {

/// The hub's branch with its own conversion of a dataset to parquet.
inline constexpr const char* kConvertedBranch = "refs/convert/parquet";

struct PlannedFile {
  std::string path;  ///< in the repository and in the folder
  fetch::Source source;
  bool pinned = false;  ///< whether a sources.yaml has its hash
  std::string there;    ///< the SHA-256 of the file in the folder, if its content is right
};

/// What it takes to have a dataset.
struct DatasetPlan {
  std::filesystem::path folder;    ///< of the copy: <data_dir>/<dataset>
  Fetched fetched;                 ///< what is so afterwards; its files are not filled in
  std::vector<PlannedFile> files;  ///< of the repository
  std::string card;                ///< the README.md to be written, if it is not the repository's
  std::vector<std::string> gone;   ///< files of an earlier commit that this one has not
};

/// Asks the hub which files the dataset's missing splits and files need, beside those that were
/// fetched before. A dataset that was fetched before stays at its commit unless `update`. Throws
/// Error: for what the hub says, for a folder that `evald fetch` did not make, and for a file whose
/// hash is not the one in sources.yaml.
DatasetPlan PlanDataset(const WantedDataset& wanted, const HubSource& source,
                        const std::filesystem::path& data_dir, bool update, fetch::Hub* hub);

/// The SHA-256 of a file that is there and has the content of `source`; "" if it is not there or
/// has another content. Throws Error(kInfrastructure) if it cannot be read.
std::string HashOfRightFile(const fetch::Source& source, const std::filesystem::path& path);

}  // namespace evald::dataset_fetch
