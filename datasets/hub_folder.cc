#include "datasets/hub_folder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr uint64_t kStateBytesMax = uint64_t{16} << 20;
constexpr uint64_t kRefBytesMax = 1024;
constexpr size_t kSnapshotsMax = 1000;
constexpr size_t kPatternBytesMax = 300;

[[noreturn]] void Refuse(const ReadFolder& folder, const std::string& message,
                         const std::string& remedy = "") {
  throw Error(ErrorKind::kInput, folder.path().string() + ": " + message, remedy);
}

std::string TextOf(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

// The snapshot that refs/main names, else the only one.
std::optional<fs::path> SnapshotIn(const fs::path& cached, const ReadRoots& roots) {
  const ReadFolder folder(cached, roots);
  if (!folder.exists() || !folder.HasFolder("snapshots")) return std::nullopt;
  if (folder.HasFile("refs/main")) {
    const std::string revision(Trim(folder.Read("refs/main", kRefBytesMax)));
    const bool plain = revision.find_first_of("/.") == std::string::npos && !revision.empty();
    if (plain && folder.HasFolder("snapshots/" + revision)) return cached / "snapshots" / revision;
  }
  const std::vector<std::string> names = folder.Names("snapshots", kSnapshotsMax);
  if (names.size() != 1) return std::nullopt;
  return cached / "snapshots" / names[0];
}

// ---- README.md

std::string NameOfConfig(const Json& config) {
  const std::string name = TextOf(config, "config_name");
  return name.empty() ? "default" : name;
}

// The config of the name; for no name the default one.
const Json& ConfigOf(const ReadFolder& folder, const Json& configs, const std::string& part) {
  std::vector<std::string> names;
  const Json* by_default = configs.size() == 1 ? &configs[0] : nullptr;
  for (const Json& config : configs) {
    if (!config.is_object()) Refuse(folder, "README.md: an entry of configs is no mapping");
    names.push_back(NameOfConfig(config));
    if (!part.empty() && names.back() == part) return config;
    const auto mark = config.find("default");
    const bool marked = mark != config.end() && *mark == true;
    if (marked || (names.back() == "default" && by_default == nullptr)) by_default = &config;
  }
  if (part.empty() && by_default != nullptr) return *by_default;
  const std::string found =
      part.empty() ? "no dataset_name" : fmt::format("the dataset_name '{}'", part);
  Refuse(folder, fmt::format("found {}, expected one of {}{}", found, Join(names, ", "),
                             part.empty() ? "" : Suggestion(part, names)));
}

std::vector<std::string> PatternsOf(const ReadFolder& folder, const Json& value) {
  std::vector<std::string> patterns;
  for (const Json& one : value.is_array() ? value : Json::array({value})) {
    if (!one.is_string() || one.get_ref<const std::string&>().size() > kPatternBytesMax) {
      Refuse(folder, fmt::format("README.md: configs: found {} as the name of files",
                                 Shortened(ToLine(one), kPatternBytesMax)));
    }
    patterns.push_back(one);
  }
  return patterns;
}

// split -> patterns, in the order of the file.
std::vector<FolderSplit> PatternsBySplit(const ReadFolder& folder, const Json& data_files) {
  std::vector<FolderSplit> splits;
  const bool by_split = data_files.is_array() && !data_files.empty() && data_files[0].is_object();
  if (!by_split) return {{"train", PatternsOf(folder, data_files)}};
  for (const Json& entry : data_files) {
    const std::string split = entry.is_object() ? TextOf(entry, "split") : "";
    if (split.empty() || !entry.contains("path"))
      Refuse(folder, "README.md: configs: an entry of data_files has no split or no path");
    splits.push_back({split, PatternsOf(folder, entry["path"])});
  }
  return splits;
}

// The splits of the folder `below`, which ends with '/'. The files are named from `folder` on.
std::vector<FolderSplit> SplitsBelow(const ReadFolder& folder, const std::string& below) {
  std::vector<FolderSplit> splits = SplitsOfFolder(folder.Folder(below));
  for (FolderSplit& split : splits)
    for (std::string& file : split.files) file = below + file;
  return splits;
}

std::vector<FolderSplit> SplitsOfConfig(const ReadFolder& folder, const Json& config) {
  std::string below = TextOf(config, "data_dir");
  if (!below.empty()) below = fs::path(below).lexically_normal().string();
  if (below == "." || below == "./") below.clear();
  if (below.starts_with("..") || below.starts_with('/'))
    Refuse(folder, fmt::format("README.md: configs: data_dir {} leads out of the folder", below));
  const std::string base = below.empty() || below.ends_with('/') ? below : below + "/";
  if (!config.contains("data_files")) {
    return base.empty() ? SplitsOfFolder(folder) : SplitsBelow(folder, base);
  }
  const std::vector<std::string> files = FilesOfFolder(folder);
  std::vector<FolderSplit> splits = PatternsBySplit(folder, config["data_files"]);
  for (FolderSplit& split : splits) {
    std::vector<std::string> found;
    for (const std::string& given : split.files) {
      const std::string pattern = base + fs::path(given).lexically_normal().string();
      std::copy_if(files.begin(), files.end(), std::back_inserter(found),
                   [&](const std::string& file) { return MatchesPattern(pattern, file); });
    }
    split.files = std::move(found);
  }
  return splits;
}

// ---- patterns

// reached[i]: whether the pattern so far matches the first i characters of the path.
using Reached = std::vector<char>;

// "**" leads over all characters, "*" over all but '/'.
Reached AfterStar(const Reached& reached, std::string_view path, bool any) {
  Reached next(reached.size());
  bool on = false;  // whether the star began at this character or before
  for (size_t i = 0; i < next.size(); ++i) {
    if (i > 0 && !any && path[i - 1] == '/') on = false;
    on = on || reached[i] != 0;
    next[i] = on ? 1 : 0;
  }
  return next;
}

// "**/": any folders, or none.
Reached AfterFolders(const Reached& reached, std::string_view path) {
  const Reached after = AfterStar(reached, path, true);
  Reached next = reached;
  for (size_t i = 1; i < next.size(); ++i) {
    if (after[i - 1] != 0 && path[i - 1] == '/') next[i] = 1;
  }
  return next;
}

// The length of the part of a pattern that stands for one character: a set, or a character. A '['
// without an end is a character like any other.
size_t LengthOfOne(std::string_view pattern) {
  if (pattern[0] != '[') return 1;
  const size_t first = pattern.substr(1).starts_with('!') ? 2 : 1;
  const size_t close = pattern.find(']', first + 1);
  return close == std::string_view::npos ? 1 : close + 1;
}

// Whether a character is in a set such as "ab", "a-c" or "!a".
bool IsInSet(std::string_view set, char c) {
  const bool others = set.starts_with('!');
  if (others) set.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < set.size() && !found; ++i) {
    const bool range = i + 2 < set.size() && set[i + 1] == '-';
    found = range ? set[i] <= c && c <= set[i + 2] : set[i] == c;
    if (range) i += 2;
  }
  return found != others && (c != '/' || !others);
}

Reached AfterOne(const Reached& reached, std::string_view path, std::string_view one) {
  Reached next(reached.size());
  for (size_t i = 0; i < path.size(); ++i) {
    const bool fits = one.size() > 1  ? IsInSet(one.substr(1, one.size() - 2), path[i])
                      : one[0] == '?' ? path[i] != '/'
                                      : path[i] == one[0];
    next[i + 1] = reached[i] != 0 && fits ? 1 : 0;
  }
  return next;
}

// ---- save_to_disk

// The files that state.json names.
std::vector<std::string> SavedFiles(const ReadFolder& folder, const std::string& below) {
  const std::string name = below + "state.json";
  const Json state = ParseJson(folder.Read(name, kStateBytesMax), (folder / name).string());
  std::vector<std::string> files;
  for (const Json& file : Field<std::vector<Json>>(state, "_data_files", name))
    files.push_back(below + Field<std::string>(file, "filename", name));
  return files;
}

std::vector<FolderSplit> SavedSplits(const ReadFolder& folder) {
  constexpr const char* kDict = "dataset_dict.json";
  if (!folder.HasFile(kDict)) return {{"train", SavedFiles(folder, "")}};
  const Json dict = ParseJson(folder.Read(kDict, kStateBytesMax), (folder / kDict).string());
  std::vector<FolderSplit> splits;
  for (const auto& split : Field<std::vector<std::string>>(dict, "splits", kDict))
    if (std::none_of(splits.begin(), splits.end(),
                     [&](const FolderSplit& other) { return other.name == split; }))
      splits.push_back({split, SavedFiles(folder, split + "/")});
  return splits;
}

bool IsSaved(const ReadFolder& folder) {
  return folder.HasFile("dataset_dict.json") ||
         (folder.HasFile("state.json") && folder.HasFile("dataset_info.json"));
}

// What `evald fetch` has written of the folder, if it made it.
std::optional<Json> ReadFetched(const ReadFolder& folder) {
  if (!folder.HasFile(kFetchedFile)) return std::nullopt;
  const std::string where = (folder / kFetchedFile).string();
  Json fetched = ParseJson(folder.Read(kFetchedFile, kStateBytesMax), where);
  if (FieldOr<std::vector<std::string>>(fetched, "pending", {}, where).empty()) return fetched;
  Refuse(folder, "'evald fetch' was ended while it put files into this folder",
         "call 'evald fetch' again");
}

constexpr std::string_view kDatasetsScheme = "hf://datasets/";

}  // namespace

std::optional<HubFileName> ParseHubFileName(const std::string& text, const std::string& where) {
  if (!text.starts_with(kHubScheme)) return std::nullopt;
  HubFileName name;
  if (text.starts_with(kDatasetsScheme)) {
    const std::string rest = text.substr(kDatasetsScheme.size());
    const size_t owner = rest.find('/');
    const size_t end = owner == std::string::npos ? owner : rest.find('/', owner + 1);
    if (end != std::string::npos) {
      name.dataset = rest.substr(0, end);
      name.path = rest.substr(end + 1);
    }
  }
  if (const size_t at = name.dataset.find('@'); at != std::string::npos) {
    name.revision = name.dataset.substr(at + 1);
    name.dataset.resize(at);
  }
  const std::string inside = fs::path(name.path).lexically_normal().string();
  if (!name.path.empty() && inside == name.path && !inside.starts_with("..") &&
      !inside.starts_with('/')) {
    return name;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found '{}', expected hf://datasets/OWNER/NAME/FILE", where, text));
}

void RequireWholeFetch(const ReadFolder& folder) { ReadFetched(folder); }

void RequireFetchedSplit(const ReadFolder& folder, const std::string& part,
                         const std::string& split) {
  const std::optional<Json> fetched = ReadFetched(folder);
  if (!fetched) return;
  for (const Json& one : FieldOr<std::vector<Json>>(*fetched, "splits", {}, kFetchedFile)) {
    if (one == Json::array({part, split})) return;
  }
  Refuse(folder, fmt::format("'evald fetch' made this folder, and has not fetched the split '{}'{}",
                             split, part.empty() ? "" : fmt::format(" of '{}'", part)));
}

std::optional<fs::path> FindHubFolder(const std::string& dataset, const fs::path& data_dir,
                                      const ReadRoots& roots, std::vector<std::string>* looked) {
  const size_t slash = dataset.rfind('/');
  const std::string name = dataset.substr(slash == std::string::npos ? 0 : slash + 1);
  std::string cached = "datasets--" + dataset;
  if (const size_t at = cached.find('/'); at != std::string::npos) cached.replace(at, 1, "--");
  std::vector<fs::path> places = {data_dir / dataset};
  if (name != dataset) places.push_back(data_dir / name);
  for (const fs::path& place : places) {
    looked->push_back(place.string() + "/");
    if (roots.HasFolder(place)) return place;
  }
  for (const fs::path& place : {data_dir / cached, data_dir / "hub" / cached}) {
    looked->push_back(place.string() + "/");
    if (auto snapshot = SnapshotIn(place, roots)) return snapshot;
  }
  return std::nullopt;
}

std::vector<FolderSplit> SplitsOfPart(const ReadFolder& folder, const std::string& part) {
  if (part.empty() && IsSaved(folder)) return SavedSplits(folder);
  const Json card = CardOf(folder);
  const auto configs = card.find("configs");
  if (configs != card.end() && configs->is_array() && !configs->empty())
    return SplitsOfConfig(folder, ConfigOf(folder, *configs, part));
  if (part.empty() || part == "default") return SplitsOfFolder(folder);
  if (!folder.HasFolder(part)) {
    Refuse(folder,
           fmt::format("found the dataset_name '{}', and README.md names no parts (configs)", part),
           fmt::format("put the part's files into the subfolder {}", part));
  }
  return SplitsBelow(folder, part + "/");
}

bool MatchesPattern(std::string_view pattern, std::string_view path) {
  Reached reached(path.size() + 1, 0);
  reached[0] = 1;
  for (size_t at = 0; at < pattern.size();) {
    const std::string_view rest = pattern.substr(at);
    if (rest.starts_with("**/")) {
      reached = AfterFolders(reached, path);
      at += 3;
    } else if (rest[0] == '*') {
      const bool any = rest.starts_with("**");
      reached = AfterStar(reached, path, any);
      at += any ? 2 : 1;
    } else {
      const size_t length = LengthOfOne(rest);
      reached = AfterOne(reached, path, rest.substr(0, length));
      at += length;
    }
  }
  return reached[path.size()] != 0;
}

}  // namespace evald
