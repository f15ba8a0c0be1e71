#include "orchestrator/cli/fetch_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "fetch/hub.h"
#include "orchestrator/report/text_table.h"

namespace evald::cli {
namespace {

using dataset_fetch::DatasetEnd;
using dataset_fetch::FileEnd;
using dataset_fetch::HubSource;
using dataset_fetch::OwnData;
using dataset_fetch::WantedDataset;
using dataset_fetch::WantedFile;
using dataset_fetch::WantedSplit;

constexpr size_t kRowsOfDatasetMax = 12;  // a dataset with more files has one row

std::string TasksText(const std::vector<std::string>& tasks) {
  return tasks.front() + (tasks.size() > 1 ? fmt::format(" and {} more", tasks.size() - 1) : "");
}

std::string SplitName(const WantedSplit& split) {
  return split.part.empty() ? split.split : split.part + ": " + split.split;
}

std::string PlaceText(const ListedDataset& dataset, const WantedSplit& split) {
  if (!split.found.empty()) {
    return split.found.front() +
           (split.found.size() > 1 ? fmt::format(" and {} more", split.found.size() - 1) : "");
  }
  const auto how = dataset.source.elsewhere.find(split.split);
  const std::string file = split.places.empty() ? "" : split.places.front();
  if (how != dataset.source.elsewhere.end()) return fmt::format("{}; {}", file, how->second);
  return fmt::format("in the copy, or as {}", file);
}

void AddListed(const ListedDataset& dataset, std::string* text) {
  *text += fmt::format("{}{}\n  {}\n  to {}/: {}\n", dataset.wanted.dataset,
                       dataset.source.gated ? " (gated: accept its terms first)" : "", dataset.page,
                       dataset.folder, dataset.command);
  std::vector<TextRow> rows = {{"Needed", "", "Tasks", "Place"}};
  for (const WantedSplit& split : dataset.wanted.splits) {
    rows.push_back({SplitName(split), split.found.empty() ? "MISSING" : "there",
                    TasksText(split.tasks), PlaceText(dataset, split)});
  }
  for (const WantedFile& file : dataset.wanted.files) {
    rows.push_back({"the file " + file.path, file.there ? "there" : "MISSING",
                    TasksText(file.tasks), fmt::format("{}/{}", dataset.folder, file.path)});
  }
  *text += TextTable(rows, {.right = {false, false, false, false}, .indent = 2}) + "\n";
}

std::string OwnText(const std::vector<OwnData>& own) {
  std::string text;
  for (const OwnData& one : own) {
    text += fmt::format("{}: {}{}\n", TasksText(one.tasks), one.what,
                        one.problem.empty() ? "" : ": MISSING: " + one.problem);
  }
  return text;
}

Json SplitJson(const ListedDataset& dataset, const WantedSplit& split) {
  Json json = {{"part", split.part},   {"split", split.split},
               {"tasks", split.tasks}, {"there", !split.found.empty()},
               {"found", split.found}, {"places", split.places}};
  const auto how = dataset.source.elsewhere.find(split.split);
  if (how != dataset.source.elsewhere.end()) json["elsewhere"] = how->second;
  return json;
}

Json OwnJson(const std::vector<OwnData>& own) {
  Json list = Json::array();
  for (const OwnData& one : own) {
    list.push_back({{"what", one.what},
                    {"tasks", one.tasks},
                    {"there", one.problem.empty()},
                    {"found", one.found}});
  }
  return list;
}

uint64_t BytesOf(const DatasetEnd& end) {
  uint64_t bytes = 0;
  for (const FileEnd& file : end.files) bytes += file.bytes;
  return bytes;
}

// "fetched", or "3 fetched, 1 there".
std::string StatesText(const DatasetEnd& end) {
  std::vector<std::string> parts;
  for (const auto state : {FileEnd::State::kFetched, FileEnd::State::kToFetch,
                           FileEnd::State::kThere, FileEnd::State::kFailed}) {
    const auto count = std::count_if(end.files.begin(), end.files.end(),
                                     [&](const FileEnd& file) { return file.state == state; });
    if (count == static_cast<int64_t>(end.files.size())) return ToString(state);
    if (count > 0) parts.push_back(fmt::format("{} {}", count, ToString(state)));
  }
  return Join(parts, ", ");
}

void AddRows(const DatasetEnd& end, std::vector<TextRow>* rows) {
  if (end.files.empty()) {
    rows->push_back({end.dataset, "", "", "failed", ""});
  } else if (end.files.size() > kRowsOfDatasetMax) {
    rows->push_back({end.dataset, fmt::format("{} files", end.files.size()),
                     HumanBytes(BytesOf(end)), StatesText(end), ""});
  } else {
    for (const FileEnd& file : end.files) {
      rows->push_back({&file == end.files.data() ? end.dataset : "", file.path,
                       HumanBytes(file.bytes), ToString(file.state), file.sha256});
    }
  }
}

}  // namespace

std::vector<MissingData> MissingOf(const dataset_fetch::WantedData& wanted,
                                   const dataset_fetch::SourceTable& user) {
  std::vector<MissingData> missing;
  for (const WantedDataset& dataset : wanted.datasets) {
    const HubSource source = SourceOf(dataset.dataset, user, dataset_fetch::BuiltinSourceTable());
    for (const WantedSplit& split : dataset.splits) {
      if (!split.found.empty()) continue;
      const auto how = source.elsewhere.find(split.split);
      const bool elsewhere = how != source.elsewhere.end();
      missing.push_back(
          {dataset.dataset, split.part, split.split, split.tasks,
           elsewhere ? fmt::format("{}: the hub's dataset does not have {}, which {} needs",
                                   dataset.dataset, SplitName(split), TasksText(split.tasks))
                     : fmt::format("{}: {}", TasksText(split.tasks), split.problem),
           elsewhere ? how->second : ""});
    }
    for (const WantedFile& file : dataset.files) {
      if (file.there) continue;
      missing.push_back({dataset.dataset, "", "", file.tasks,
                         fmt::format("{}: the file {} is not there", dataset.dataset, file.path),
                         ""});
    }
  }
  for (const OwnData& own : wanted.own) {
    if (!own.problem.empty())
      missing.push_back({"", "", "", own.tasks, own.problem, "'evald fetch' does not fetch this"});
  }
  return missing;
}

DataList ListOf(const dataset_fetch::WantedData& wanted, const dataset_fetch::SourceTable& user,
                const std::string& endpoint, const std::string& data_dir) {
  DataList list;
  list.own = wanted.own;
  for (const WantedDataset& dataset : wanted.datasets) {
    ListedDataset listed;
    listed.wanted = dataset;
    listed.source = SourceOf(dataset.dataset, user, dataset_fetch::BuiltinSourceTable());
    listed.page =
        fetch::HubRepository{fetch::HubKind::kDataset, listed.source.repository}.Page(endpoint);
    listed.folder = (std::filesystem::path(data_dir) / dataset.dataset).string();
    listed.command = fmt::format(
        "hf download {} --repo-type dataset{} --local-dir {}", listed.source.repository,
        listed.source.revision.empty() ? "" : fmt::format(" --revision {}", listed.source.revision),
        listed.folder);
    list.datasets.push_back(std::move(listed));
  }
  return list;
}

std::string ListText(const DataList& list) {
  std::string text;
  for (const ListedDataset& dataset : list.datasets) AddListed(dataset, &text);
  return text + OwnText(list.own);
}

Json ToJson(const DataList& list) {
  Json datasets = Json::array();
  for (const ListedDataset& dataset : list.datasets) {
    Json splits = Json::array(), files = Json::array();
    for (const WantedSplit& split : dataset.wanted.splits)
      splits.push_back(SplitJson(dataset, split));
    for (const WantedFile& file : dataset.wanted.files)
      files.push_back({{"path", file.path}, {"tasks", file.tasks}, {"there", file.there}});
    datasets.push_back({{"dataset", dataset.wanted.dataset},
                        {"repository", dataset.source.repository},
                        {"revision", dataset.source.revision},
                        {"gated", dataset.source.gated},
                        {"page", dataset.page},
                        {"folder", dataset.folder},
                        {"command", dataset.command},
                        {"splits", splits},
                        {"files", files}});
  }
  return {{"datasets", datasets}, {"own", OwnJson(list.own)}};
}

size_t UnpinnedFiles(const std::vector<DatasetEnd>& ends) {
  size_t count = 0;
  for (const DatasetEnd& end : ends) {
    for (const FileEnd& file : end.files)
      if (!file.pinned && !file.sha256.empty()) ++count;
  }
  return count;
}

std::string FetchText(const std::vector<DatasetEnd>& ends, const dataset_fetch::WantedData& wanted,
                      const std::vector<std::string>& names, const std::string& data_dir,
                      bool dry_run) {
  std::string text;
  if (!ends.empty()) {
    std::vector<TextRow> rows = {{"Dataset", "File", "Size", "", "SHA-256"}};
    for (const DatasetEnd& end : ends) AddRows(end, &rows);
    text = TextTable(rows, {.right = {false, false, true, false, false}}) + "\n";
  }
  text += OwnText(wanted.own);
  const bool all = std::all_of(wanted.datasets.begin(), wanted.datasets.end(),
                               [](const WantedDataset& dataset) { return dataset.AllThere(); });
  if (!all || dry_run) return text;
  bool tables = false;
  for (const WantedDataset& dataset : wanted.datasets)
    for (const WantedSplit& split : dataset.splits) tables = tables || split.tables;
  text += fmt::format("all data of {} is there: evald run CHECKPOINT --tasks {} --data-dir {}\n",
                      Join(names, ", "), Join(names, ","), data_dir);
  if (tables) {
    text += fmt::format(
        "some of it is tables, which Python's package pyarrow reads: evald tasks --needs {} "
        "--data-dir {}\n",
        Join(names, " "), data_dir);
  }
  return text;
}

Json FetchJson(const std::vector<DatasetEnd>& ends, const dataset_fetch::WantedData& wanted,
               const std::vector<MissingData>& missing, const std::vector<Error>& failures,
               const std::string& data_dir) {
  Json datasets = Json::array(), lacks = Json::array(), errors = Json::array();
  for (const DatasetEnd& end : ends) {
    Json files = Json::array(), of_dataset = Json::array();
    for (const FileEnd& file : end.files) {
      files.push_back({{"path", file.path},
                       {"bytes", file.bytes},
                       {"state", ToString(file.state)},
                       {"sha256", file.sha256},
                       {"pinned", file.pinned}});
    }
    for (const Error& error : end.failures) of_dataset.push_back(error.what());
    datasets.push_back({{"dataset", end.dataset},
                        {"repository", end.repository},
                        {"folder", end.folder.string()},
                        {"branch", end.branch},
                        {"commit", end.commit},
                        {"files", files},
                        {"errors", of_dataset}});
  }
  for (const MissingData& one : missing) {
    lacks.push_back({{"dataset", one.dataset},
                     {"part", one.part},
                     {"split", one.split},
                     {"tasks", one.tasks},
                     {"problem", one.problem},
                     {"remedy", one.remedy}});
  }
  for (const Error& error : failures) errors.push_back(error.what());
  return {{"data_dir", data_dir},
          {"datasets", datasets},
          {"missing", lacks},
          {"own", OwnJson(wanted.own)},
          {"errors", errors}};
}

}  // namespace evald::cli
