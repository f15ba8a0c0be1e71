#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/dataset_fetch/file_choice.h"

namespace evald::dataset_fetch {

/// The folder, in a dataset's, in which files are kept until all are there.
inline constexpr const char* kStagingFolder = ".evald-fetch";

struct FetchedFile {
  uint64_t bytes = 0;
  std::string sha256;
};

/// What is kept of a fetched dataset, in the file .evald-fetch.json of its folder (docs/fetch.md).
struct Fetched {
  std::string repository;
  std::string revision;  ///< that was asked for: "main"
  std::string branch;    ///< that the files are of: the revision, or refs/convert/parquet
  std::string commit;
  std::set<PartAndSplit> splits;  ///< that are there as a whole
  std::map<std::string, FetchedFile> files;
};

/// Reads it, also if files were being put in place. Nothing if the folder has none. Throws
/// Error(kInput).
std::optional<Fetched> ReadFetched(const std::filesystem::path& folder);

/// A file to be put in place.
struct ReadyFile {
  std::string path;              ///< relative to the folder
  std::filesystem::path staged;  ///< where it lies, in the same file system
};

/// Moves the files into `folder`, removes `gone` (names in the folder), and keeps `fetched`. Until
/// all is done the folder's .evald-fetch.json lists what is pending, and evald does not read the
/// folder: so nobody computes with half a split. After a crash the next call does the rest.
void PutInPlace(const std::filesystem::path& folder, const Fetched& fetched,
                const std::vector<ReadyFile>& ready, const std::vector<std::string>& gone);

}  // namespace evald::dataset_fetch
