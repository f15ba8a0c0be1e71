#include "datasets/sources.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "datasets/builtin_files.h"
#include "datasets/data_folder.h"
#include "datasets/hub_folder.h"
#include "datasets/table_file.h"
#include "datasets/yaml_reader.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEndings[] = {".jsonl", ".jsonl.gz", ".json",    ".json.gz",
                                    ".csv",   ".csv.gz",   ".parquet", ".arrow"};

const Json& SourcesTable() {
  static const Json kTable = [] {
    std::string_view text;
    if (!FindBuiltinFile("sources.yaml", &text)) {
      throw Error(ErrorKind::kInternal, "datasets/tasks/sources.yaml was not built in");
    }
    return ParseYaml(std::string(text), "sources.yaml", std::string(kBuiltinPrefix), ReadRoots())
        .value.at("sources");
  }();
  return kTable;
}

// The table's entry for the split, or null.
const Json* FindInTable(const TaskConfig& config, const std::string& split) {
  for (const Json& source : SourcesTable()) {
    if (source.at("dataset") != config.dataset_path) continue;
    if (source.contains("name") && source.at("name") != config.dataset_name) continue;
    const auto found = source.at("splits").find(split);
    if (found != source.at("splits").end()) return &*found;
  }
  return nullptr;
}

std::string WithName(std::string pattern, const std::string& name) {
  const size_t at = pattern.find("{name}");
  if (at != std::string::npos) pattern.replace(at, 6, name);
  return pattern;
}

std::vector<fs::path> ListedPlaces(const TaskConfig& config, const std::string& split,
                                   const fs::path& data_dir) {
  std::vector<fs::path> places;
  if (const Json* entry = FindInTable(config, split)) {
    for (const Json& file : entry->at("files"))
      places.push_back(data_dir / WithName(file.get<std::string>(), config.dataset_name));
  }
  return places;
}

std::vector<fs::path> FallbackPlaces(const TaskConfig& config, const std::string& split,
                                     const fs::path& data_dir) {
  const std::string last = config.dataset_path.substr(config.dataset_path.rfind('/') + 1);
  std::vector<fs::path> folders;
  if (!config.dataset_name.empty()) folders.push_back(data_dir / last / config.dataset_name);
  if (config.dataset_name.empty()) folders.push_back(data_dir / last);
  std::vector<fs::path> places;
  for (const fs::path& folder : folders) {
    for (const char* ending : kEndings) places.push_back(folder / (split + ending));
  }
  return places;
}

Json Listed(const Json& files) { return files.is_array() ? files : Json::array({files}); }

// The folder from which the names of the task's own data start: a local dataset, or the task file's
// folder.
fs::path OwnBase(const TaskConfig& config, const fs::path& data_dir) {
  fs::path base = config.folder.empty() ? data_dir : fs::path(config.folder);
  if (IsLocalFolder(config.dataset_path)) base /= config.dataset_path;
  return (base / config.data_subfolder).lexically_normal();
}

DataFormat FormatOfPath(const std::string& dataset_path) {
  if (dataset_path == "json") return DataFormat::kJson;
  if (dataset_path == "csv") return DataFormat::kCsv;
  if (dataset_path == "parquet" || dataset_path == "arrow") return DataFormat::kTable;
  return dataset_path == "text" ? DataFormat::kText : DataFormat::kByEnding;
}

// Whether the rows of the dataset's first file decide the types of all; tables have types.
bool DecidesTypes(const ReadRules& rules) { return rules.format != DataFormat::kTable; }

// A file of a dataset of the hub lies in the copy of the dataset.
DataFile OpenOfHub(const TaskConfig& config, const HubFileName& name, const fs::path& data_dir,
                   const ReadRoots& roots) {
  std::vector<std::string> looked;
  std::optional<fs::path> copy;
  if (!data_dir.empty()) copy = FindHubFolder(name.dataset, data_dir, roots, &looked);
  if (copy) RequireWholeFetch(ReadFolder(*copy, roots));
  const fs::path path = copy ? *copy / name.path : fs::path();
  if (copy && roots.HasFile(path)) return {path, roots.OpenFile(path), ""};
  throw Error(ErrorKind::kInput,
              fmt::format("{}: the file {} of the hub's dataset {} is not there",
                          config.data_files_where, name.path, name.dataset),
              data_dir.empty() ? "set data_dir in eval.yaml, or --data-dir"
              : copy           ? "looked for " + path.string()
                               : "looked at " + Join(looked, ", "));
}

DataFile OpenOwn(const TaskConfig& config, const Json& file, const fs::path& data_dir,
                 const ReadRoots& roots) {
  const auto of_hub = ParseHubFileName(file.get<std::string>(), config.data_files_where);
  if (of_hub) return OpenOfHub(config, *of_hub, data_dir, roots);
  const fs::path path = (OwnBase(config, data_dir) / file.get<std::string>()).lexically_normal();
  if (!roots.HasFile(path)) {
    const bool pattern = path.string().find_first_of("*?[") != std::string::npos;
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the data file {} is not there", config.data_files_where, path.string()),
        pattern ? "patterns are not served: list the files" : "");
  }
  return {path, roots.OpenFile(path), ""};
}

// data_files: a file or a list for the split "train", or a mapping from splits to these.
SplitFiles OwnFiles(const TaskConfig& config, const std::string& split, const fs::path& data_dir,
                    const ReadRoots& roots) {
  const Json& data_files = config.data_files;
  const Json* entry = data_files.is_object() ? nullptr : &data_files;
  std::vector<std::string> splits = {"train"};
  if (data_files.is_object()) {
    splits.clear();
    for (const auto& item : data_files.items()) splits.push_back(item.key());
    if (data_files.contains(split)) entry = &data_files.at(split);
  } else if (split != "train") {
    entry = nullptr;
  }
  if (entry == nullptr) {
    throw Error(ErrorKind::kInput, fmt::format("{}: data_files has no split '{}', it has {}{}",
                                               config.data_files_where, split, Join(splits, ", "),
                                               Suggestion(split, splits)));
  }
  SplitFiles out;
  for (const Json& file : Listed(*entry))
    out.files.push_back(OpenOwn(config, file, data_dir, roots));
  out.rules = {true, FormatOfPath(config.dataset_path), config.csv};
  if (data_files.is_object() && data_files.begin().key() != split && DecidesTypes(out.rules)) {
    out.first = OpenOwn(config, Listed(data_files.front()).front(), data_dir, roots);
  }
  return out;
}

// The files of a split of the folder; with `packaged`, the task says which format they have.
SplitFiles FilesIn(const TaskConfig& config, const std::string& split, const ReadFolder& folder,
                   bool packaged) {
  SplitFiles out;
  std::vector<FolderSplit> splits =
      packaged ? SplitsOfFolder(folder) : SplitsOfPart(folder, config.dataset_name);
  std::vector<std::string> names;
  for (const FolderSplit& one : splits) names.push_back(one.name);
  // A copy of a dataset need not have all its splits.
  std::erase_if(splits, [](const FolderSplit& one) { return one.files.empty(); });
  const auto wanted = std::find_if(splits.begin(), splits.end(),
                                   [&](const FolderSplit& one) { return one.name == split; });
  if (wanted == splits.end()) {
    const bool named = std::find(names.begin(), names.end(), split) != names.end();
    throw Error(ErrorKind::kInput,
                named ? fmt::format("task '{}': the folder {} has no files of the split '{}'",
                                    config.name, folder.path().string(), split)
                      : fmt::format("task '{}': the folder {} has no split '{}', its files' names "
                                    "make {}{}",
                                    config.name, folder.path().string(), split, Join(names, ", "),
                                    Suggestion(split, names)));
  }
  out.rules = packaged ? ReadRules{true, FormatOfPath(config.dataset_path), config.csv}
                       : RulesOfFolder(folder, &splits);
  if (!config.csv.columns.empty()) {
    out.rules.csv.columns = config.csv.columns;
    out.rules.csv.header = config.csv.header;
  }
  const auto open = [&](const std::string& file) {
    return DataFile{folder / file, folder.OpenFile(file), ""};
  };
  for (const FolderSplit& one : splits) {
    if (one.name != split) continue;
    for (const std::string& file : one.files) out.files.push_back(open(file));
  }
  if (splits.front().name != split && DecidesTypes(out.rules))
    out.first = open(splits.front().files.front());
  return out;
}

// The local folder of dataset_path, or data_dir of dataset_kwargs.
SplitFiles FolderFiles(const TaskConfig& config, const std::string& split, const fs::path& data_dir,
                       const ReadRoots& roots) {
  const fs::path path = OwnBase(config, data_dir);
  const ReadFolder folder(path, roots);
  if (!folder.exists()) {
    throw Error(ErrorKind::kInput,
                fmt::format("task '{}': the folder {} of its dataset is not there", config.name,
                            path.string()),
                "a relative dataset_path or data_dir starts from the folder of the task's file");
  }
  return FilesIn(config, split, folder, !IsLocalFolder(config.dataset_path));
}

// For names that may stand for a dataset of the hub or for a folder.
std::string FolderHint(const TaskConfig& config, const ReadRoots& roots) {
  const bool there =
      !config.folder.empty() && roots.HasFolder(fs::path(config.folder) / config.dataset_path);
  return there ? fmt::format("; for the folder beside the task's file, write dataset_path: ./{}",
                             config.dataset_path)
               : "";
}

void CheckHash(const DataFile& file, const std::string& found) {
  if (file.hash.empty() || found == file.hash) return;
  throw Error(ErrorKind::kInput, file.path.string() + ": the file changed while it was read",
              "start again once nobody writes to it");
}

Documents WithRows(Documents documents, const SplitFiles& files) {
  if (!documents.rows.empty()) return documents;
  throw Error(ErrorKind::kInput, fmt::format("{}: no document of this split is in the file",
                                             files.files.front().path.string()));
}

}  // namespace

bool IsLocalFolder(const std::string& dataset_path) {
  if (dataset_path.starts_with(kHubScheme)) return false;
  for (const char* begin : {"/", "./", "../", "~"}) {
    if (dataset_path.starts_with(begin)) return true;
  }
  return dataset_path == "." || dataset_path == ".." ||
         std::count(dataset_path.begin(), dataset_path.end(), '/') > 1;
}

std::vector<fs::path> PlacesOfSplit(const TaskConfig& config, const std::string& split,
                                    const fs::path& data_dir) {
  std::vector<fs::path> places = ListedPlaces(config, split, data_dir);
  for (fs::path& place : FallbackPlaces(config, split, data_dir))
    places.push_back(std::move(place));
  return places;
}

SplitFiles FindSplit(const TaskConfig& config, const std::string& split, const fs::path& data_dir,
                     const ReadRoots& roots) {
  if (!config.data_files.is_null()) return OwnFiles(config, split, data_dir, roots);
  if (IsLocalFolder(config.dataset_path) || !config.data_subfolder.empty()) {
    return FolderFiles(config, split, data_dir, roots);
  }
  SplitFiles out;
  const Json* entry = FindInTable(config, split);
  if (entry != nullptr && entry->contains("rows")) {
    const Json& rows = entry->at("rows");
    out.range = RowRange{rows.at("field"), rows.at("from"), rows.at("to")};
  }
  const size_t listed = ListedPlaces(config, split, data_dir).size();
  const std::vector<fs::path> places = PlacesOfSplit(config, split, data_dir);
  std::vector<std::string> looked;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!data_dir.empty() && roots.HasFile(places[i])) {
      if (i >= listed) out.range.reset();
      out.files.push_back({places[i], roots.OpenFile(places[i]), ""});
      return out;
    }
    looked.push_back(places[i].string());
  }
  if (!data_dir.empty()) {
    if (const auto copy = FindHubFolder(config.dataset_path, data_dir, roots, &looked)) {
      const ReadFolder folder(*copy, roots);
      RequireFetchedSplit(folder, config.dataset_name, split);
      return FilesIn(config, split, folder, false);
    }
  }
  if (data_dir.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("task '{}' needs the dataset '{}', and no data folder was given",
                            config.name, config.dataset_path),
                "set data_dir in eval.yaml, or --data-dir" + FolderHint(config, roots));
  }
  throw Error(ErrorKind::kInput,
              fmt::format("task '{}': no file holds the split '{}' of the dataset '{}'",
                          config.name, split, config.dataset_path),
              fmt::format("'evald fetch {}' gets it; looked at {}{}", config.name,
                          Join(looked, ", "), FolderHint(config, roots)));
}

Documents ReadSplit(const SplitFiles& files, const DataLimits& limits,
                    const std::atomic<bool>* cancel,
                    const std::function<std::unique_ptr<TableReader>()>& tables) {
  Documents out;
  DatasetColumns columns;
  const bool are_tables =
      files.rules.format == DataFormat::kTable || (files.rules.format == DataFormat::kByEnding &&
                                                   IsTableFile(files.files.front().path.string()));
  if (are_tables) {
    const auto reader =
        tables ? tables() : std::make_unique<TableReader>(TaskCodeOptions(), nullptr);
    for (const DataFile& file : files.files)
      CheckHash(file, ReadTableFile(reader.get(), file, limits, files.range, cancel, &out));
    return WithRows(std::move(out), files);
  }
  if (files.first) {
    const DataFile& first = *files.first;
    CheckHash(first, ReadColumns(first.fd, first.path, limits, files.rules, cancel, &columns));
  }
  for (const DataFile& file : files.files) {
    CheckHash(file, ReadDocuments(file.fd, file.path, limits, files.rules, files.range, cancel,
                                  &columns, &out));
  }
  return WithRows(std::move(out), files);
}

}  // namespace evald
