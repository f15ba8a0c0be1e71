#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "evald/error.h"
#include "fetch/caller.h"
#include "fetch/downloads.h"
#include "orchestrator/dataset_fetch/source_table.h"
#include "orchestrator/dataset_fetch/wanted_data.h"

namespace evald::dataset_fetch {

struct FetchSettings {
  std::filesystem::path data_dir;
  fetch::Access access;
  SourceTable sources;  ///< the user's own
  int parallel = 4;     ///< files at a time
  bool update = false;  ///< datasets that were fetched before move to their branch's newest commit
  bool plan_only = false;  ///< nothing is written
};

struct FileEnd {
  enum class State { kThere, kFetched, kToFetch, kFailed };
  std::string path;  ///< in the repository and in the folder
  uint64_t bytes = 0;
  State state = State::kThere;
  std::string sha256;   ///< "": not known yet
  bool pinned = false;  ///< whether a sources.yaml has the hash, which was compared
};

struct DatasetEnd {
  std::string dataset, repository;
  std::filesystem::path folder;
  std::string branch, commit;  ///< "" if the hub could not say
  std::vector<FileEnd> files;
  std::vector<Error> failures;  ///< none: all is there
};

/// "there", "fetched", "to fetch", "failed".
const char* ToString(FileEnd::State state);

/// Fetches what `wanted` lacks below data_dir, and checks what was fetched before. A dataset's
/// files appear together, once all are there; what came before a failure is kept for the next call.
/// A failure of one dataset stops no other. Datasets that are there and were not fetched are left
/// out. Throws Error for what concerns all: no room on the disk, another fetch in the same folder.
std::vector<DatasetEnd> FetchDatasets(const WantedData& wanted, const FetchSettings& settings,
                                      fetch::DownloadProgress* progress);

/// `user` with an entry for each dataset that was fetched: its commit, and the sizes and hashes of
/// its files.
SourceTable WithPins(SourceTable user, const std::vector<DatasetEnd>& ends);

}  // namespace evald::dataset_fetch
