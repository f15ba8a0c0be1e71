#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_roots.h"
#include "datasets/data_folder.h"

// Copies of datasets of the Hugging Face hub, and what the package `datasets` has saved.
namespace evald {

/// The name of the file in which `evald fetch` keeps what it fetched to a dataset's folder
/// (docs/fetch.md).
inline constexpr const char* kFetchedFile = ".evald-fetch.json";

/// What names of the hub's files and datasets begin with.
inline constexpr std::string_view kHubScheme = "hf://";

/// A file of a dataset of the hub: hf://datasets/owner/name[@revision]/path, as data_files of a
/// task may name it.
struct HubFileName {
  std::string dataset;   ///< owner/name
  std::string revision;  ///< "": none is named
  std::string path;      ///< in the repository
};

/// Nothing if the text does not begin with hf://. Throws Error(kInput) "<where>: ..." if it does
/// and names no file of a dataset.
std::optional<HubFileName> ParseHubFileName(const std::string& text, const std::string& where);

/// Throws Error(kInput) if `evald fetch` made this folder, and was ended while it put files there:
/// some of a split may be missing.
void RequireWholeFetch(const ReadFolder& folder);
/// Throws also if `evald fetch` has not fetched this split of the part: what is there of it came
/// for another reason, and may not be all.
void RequireFetchedSplit(const ReadFolder& folder, const std::string& part,
                         const std::string& split);

/// The folder below `data_dir` with a copy of the hub's dataset "owner/name": <owner>/<name>,
/// <name>, or the snapshot in a cache of huggingface_hub (datasets--<owner>--<name>, also below
/// hub/). Nothing if there is none; `looked` gets the places.
std::optional<std::filesystem::path> FindHubFolder(const std::string& dataset,
                                                   const std::filesystem::path& data_dir,
                                                   const ReadRoots& roots,
                                                   std::vector<std::string>* looked);

/// The splits of one part of a dataset's folder (its dataset_name; "": the default one), as
/// load_dataset of `datasets` 5 finds them: the files that `configs` in README.md names for the
/// part; else those of the subfolder that has the part's name, as in the hub's branch
/// refs/convert/parquet; else, without a part, those of SplitsOfFolder. A folder that
/// Dataset.save_to_disk or DatasetDict.save_to_disk has written has the splits that it names.
/// Throws Error(kInput) for a part that is not there, naming those that are.
std::vector<FolderSplit> SplitsOfPart(const ReadFolder& folder, const std::string& part);

/// Whether a pattern of `data_files` matches a path: `*` and `?` match no '/', `**` any text,
/// `[ab]` and `[a-c]` one of these characters, and `[!ab]` any other one.
bool MatchesPattern(std::string_view pattern, std::string_view path);

}  // namespace evald
