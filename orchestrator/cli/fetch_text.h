#pragma once

#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/dataset_fetch/dataset_fetch.h"

// What `evald fetch` prints.
namespace evald::cli {

/// Data of a dataset that is not there.
struct MissingData {
  std::string dataset;
  std::string part, split;
  std::vector<std::string> tasks;
  std::string problem, remedy;
};

/// All that is not there of what the tasks want.
std::vector<MissingData> MissingOf(const dataset_fetch::WantedData& wanted,
                                   const dataset_fetch::SourceTable& user);

/// Where to get a dataset, and where to put it by hand.
struct ListedDataset {
  dataset_fetch::WantedDataset wanted;
  dataset_fetch::HubSource source;
  std::string page;     ///< for people
  std::string folder;   ///< for a copy of the repository
  std::string command;  ///< of the hub's own program, which makes the copy
};
struct DataList {
  std::vector<ListedDataset> datasets;
  std::vector<dataset_fetch::OwnData> own;
};
DataList ListOf(const dataset_fetch::WantedData& wanted, const dataset_fetch::SourceTable& user,
                const std::string& endpoint, const std::string& data_dir);
std::string ListText(const DataList& list);
Json ToJson(const DataList& list);

/// Files whose hash was found and compared with none of a sources.yaml.
size_t UnpinnedFiles(const std::vector<dataset_fetch::DatasetEnd>& ends);

/// The table at a fetch's end. `names` are the tasks as they were asked for.
std::string FetchText(const std::vector<dataset_fetch::DatasetEnd>& ends,
                      const dataset_fetch::WantedData& wanted,
                      const std::vector<std::string>& names, const std::string& data_dir,
                      bool dry_run);
/// {"data_dir", "datasets": [{"dataset", "repository", "folder", "branch", "commit", "files":
/// [{"path", "bytes", "state", "sha256", "pinned"}], "errors"}], "missing": [{"dataset", "part",
/// "split", "tasks", "problem", "remedy"}], "own": [{"what", "tasks", "there", "found"}], "errors"}
Json FetchJson(const std::vector<dataset_fetch::DatasetEnd>& ends,
               const dataset_fetch::WantedData& wanted, const std::vector<MissingData>& missing,
               const std::vector<Error>& failures, const std::string& data_dir);

}  // namespace evald::cli
