#include "orchestrator/dataset_fetch/file_choice.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/own_folder.h"
#include "base/text.h"
#include "datasets/data_folder.h"
#include "datasets/hub_folder.h"
#include "evald/error.h"

namespace evald::dataset_fetch {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCardFile = "README.md";
constexpr std::string_view kPartial = "partial-";

// A folder for a moment, which has the names of a repository's files.
class NamesFolder {
 public:
  NamesFolder(const std::string& repository, const std::vector<fetch::HubFile>& files,
              const std::string& card) {
    std::string root = TmpFolder() / "evald-fetch-XXXXXX";
    if (::mkdtemp(root.data()) == nullptr) ThrowErrno(root, "mkdtemp", errno);
    root_ = root;
    // The reader looks for a script that has the folder's name.
    path_ = root_ / repository.substr(repository.rfind('/') + 1);
    try {
      Fill(files, card);
    } catch (const fs::filesystem_error& error) {
      Remove();
      throw Error(ErrorKind::kInput,
                  fmt::format("the files of {} cannot be laid out here: {}", repository,
                              error.code().message()),
                  "names may be too long, or the list of files is broken");
    }
  }
  NamesFolder(const NamesFolder&) = delete;
  NamesFolder& operator=(const NamesFolder&) = delete;
  ~NamesFolder() { Remove(); }
  const fs::path& path() const { return path_; }

 private:
  void Fill(const std::vector<fetch::HubFile>& files, const std::string& card) const {
    fs::create_directory(path_);
    std::set<fs::path> made;
    for (const fetch::HubFile& file : files) {
      const fs::path name = path_ / file.path;
      if (made.insert(name.parent_path()).second) fs::create_directories(name.parent_path());
      std::ofstream(name) << (file.path == kCardFile ? card : "");
    }
    if (!card.empty()) std::ofstream(path_ / kCardFile) << card;
  }

  void Remove() const {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  fs::path root_, path_;
};

std::string Replaced(std::string text, const std::string& old, const std::string& by) {
  for (size_t at = text.find(old); at != std::string::npos; at = text.find(old, at + by.size()))
    text.replace(at, old.size(), by);
  return text;
}

void AddFilesOf(const FolderSplit& split, std::set<std::string>* chosen) {
  chosen->insert(split.files.begin(), split.files.end());
}

void AddPart(const ReadFolder& folder, const std::string& part, const std::set<std::string>& wanted,
             std::set<std::string>* chosen) {
  std::vector<FolderSplit> splits = SplitsOfPart(folder, part);
  std::vector<std::string> names;
  for (const FolderSplit& split : splits) names.push_back(split.name);
  std::erase_if(splits, [](const FolderSplit& split) { return split.files.empty(); });
  for (const std::string& name : wanted) {
    const bool there = std::any_of(splits.begin(), splits.end(),
                                   [&](const FolderSplit& split) { return split.name == name; });
    if (there) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no split '{}'{}, expected one of {}{}", folder.path().string(),
                            name, part.empty() ? "" : fmt::format(" of '{}'", part),
                            Join(names, ", "), Suggestion(name, names)));
  }
  const bool typed = RulesOfFolder(folder, &splits).format == DataFormat::kTable;
  for (const FolderSplit& split : splits)
    if (wanted.contains(split.name)) AddFilesOf(split, chosen);
  if (!typed) AddFilesOf(splits.front(), chosen);
}

}  // namespace

std::vector<std::string> ChooseFiles(const std::string& repository,
                                     const std::vector<fetch::HubFile>& files,
                                     const std::string& card,
                                     const std::vector<PartAndSplit>& wanted) {
  const NamesFolder names(repository, files, card);
  std::map<std::string, std::set<std::string>> splits_of;
  for (const auto& [part, split] : wanted) splits_of[part].insert(split);
  std::set<std::string> chosen;
  try {
    const ReadFolder folder(names.path());
    for (const auto& [part, splits] : splits_of) AddPart(folder, part, splits, &chosen);
  } catch (const Error& error) {
    const std::string path = names.path().string();
    throw Error(error.kind(), Replaced(error.message(), path, repository),
                Replaced(error.remedy(), path, repository));
  }
  return {chosen.begin(), chosen.end()};
}

std::string CardText(const std::vector<CardConfig>& configs, const std::string& remark) {
  std::string text = "---\nconfigs:\n";
  for (const CardConfig& config : configs) {
    text += fmt::format("- config_name: {}\n  data_files:\n", ToLine(Json(config.name)));
    for (const auto& [split, patterns] : config.splits) {
      text +=
          fmt::format("  - split: {}\n    path: {}\n", ToLine(Json(split)), ToLine(Json(patterns)));
    }
  }
  return text + "---\n" + remark + "\n";
}

std::vector<CardConfig> ConvertedConfigs(const std::vector<fetch::HubFile>& files) {
  std::vector<CardConfig> configs;
  for (const fetch::HubFile& file : files) {
    const std::vector<std::string> parts = Split(file.path, '/');
    if (parts.size() != 3 || !parts[2].ends_with(".parquet") || parts[1].starts_with(kPartial))
      continue;
    auto config = std::find_if(configs.begin(), configs.end(),
                               [&](const CardConfig& one) { return one.name == parts[0]; });
    if (config == configs.end()) config = configs.insert(config, {parts[0], {}});
    const bool known = std::any_of(config->splits.begin(), config->splits.end(),
                                   [&](const auto& split) { return split.first == parts[1]; });
    if (known) continue;
    config->splits.emplace_back(
        parts[1], std::vector<std::string>{fmt::format("{}/{}/*.parquet", parts[0], parts[1])});
  }
  return configs;
}

}  // namespace evald::dataset_fetch
