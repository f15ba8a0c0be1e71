#include "datasets/sources.h"

#include <fmt/format.h>

#include "base/text.h"
#include "datasets/builtin_files.h"
#include "datasets/yaml_reader.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEndings[] = {".jsonl", ".jsonl.gz", ".json", ".json.gz", ".csv", ".csv.gz"};

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

// The entry of the table for the split, or null.
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

DataFile OpenOwn(const TaskConfig& config, const Json& file, const fs::path& data_dir,
                 const ReadRoots& roots) {
  const fs::path base = config.folder.empty() ? data_dir : fs::path(config.folder);
  const fs::path path = (base / file.get<std::string>()).lexically_normal();
  if (!roots.HasFile(path)) {
    const bool pattern = path.string().find_first_of("*?[") != std::string::npos;
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the data file {} is not there", config.data_files_where, path.string()),
        pattern ? "patterns are not served: list the files" : "");
  }
  return {path, roots.OpenFile(path), ""};
}

// data_files: a file or a list for the split "train", or a mapping of splits to these.
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
  out.rules = {true,
               config.dataset_path == "json"  ? DataFormat::kJson
               : config.dataset_path == "csv" ? DataFormat::kCsv
                                              : DataFormat::kByEnding,
               config.separator};
  if (data_files.is_object() && data_files.begin().key() != split) {
    out.first = OpenOwn(config, Listed(data_files.front()).front(), data_dir, roots);
  }
  return out;
}

void CheckHash(const DataFile& file, const std::string& found) {
  if (file.hash.empty() || found == file.hash) return;
  throw Error(ErrorKind::kInput, file.path.string() + ": the file changed while it was read",
              "start again once nobody writes to it");
}

}  // namespace

SplitFiles FindSplit(const TaskConfig& config, const std::string& split, const fs::path& data_dir,
                     const ReadRoots& roots) {
  if (!config.data_files.is_null()) return OwnFiles(config, split, data_dir, roots);
  SplitFiles out;
  std::vector<fs::path> places;
  if (const Json* entry = FindInTable(config, split)) {
    for (const Json& file : entry->at("files")) {
      places.push_back(data_dir / WithName(file.get<std::string>(), config.dataset_name));
    }
    if (entry->contains("rows")) {
      const Json& rows = entry->at("rows");
      out.range = RowRange{rows.at("field"), rows.at("from"), rows.at("to")};
    }
  }
  const size_t listed = places.size();
  for (fs::path& place : FallbackPlaces(config, split, data_dir))
    places.push_back(std::move(place));
  std::vector<std::string> looked;
  for (size_t i = 0; i < places.size(); ++i) {
    if (!data_dir.empty() && roots.HasFile(places[i])) {
      if (i >= listed) out.range.reset();
      out.files.push_back({places[i], roots.OpenFile(places[i]), ""});
      return out;
    }
    looked.push_back(places[i].string());
  }
  if (data_dir.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("task '{}' needs the dataset '{}', and no data folder was given",
                            config.name, config.dataset_path),
                "set data_dir in eval.yaml, or --data-dir");
  }
  throw Error(ErrorKind::kInput,
              fmt::format("task '{}': no file holds the split '{}' of the dataset '{}'",
                          config.name, split, config.dataset_path),
              "looked at " + Join(looked, ", "));
}

Documents ReadSplit(const SplitFiles& files, const DataLimits& limits,
                    const std::atomic<bool>* cancel) {
  Documents out;
  DatasetColumns columns;
  if (files.first) {
    const DataFile& first = *files.first;
    CheckHash(first, ReadColumns(first.fd, first.path, limits, files.rules, cancel, &columns));
  }
  for (const DataFile& file : files.files) {
    CheckHash(file, ReadDocuments(file.fd, file.path, limits, files.rules, files.range, cancel,
                                  &columns, &out));
  }
  if (out.rows.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: no document of this split is in the file",
                                               files.files.front().path.string()));
  }
  return out;
}

}  // namespace evald
