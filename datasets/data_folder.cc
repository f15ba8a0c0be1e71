// Local folders as load_dataset of `datasets` reads them (data_files.py,
// LocalDatasetModuleFactory).
#include "datasets/data_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/text.h"
#include "datasets/yaml_reader.h"
#include "evald/error.h"
#include "python/regex.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr size_t kFilesMax = 100'000;
constexpr size_t kFoldersMax = 10'000;  // links may lead in circles
constexpr int kFolderDepthMax = 32;
constexpr uint64_t kReadmeBytesMax = 16 << 20;
constexpr const char* kRemedy = "name the files in dataset_kwargs.data_files";
constexpr const char* kCard = "README.md";

struct Keywords {
  const char* split;
  std::vector<std::string> words;
};

const std::vector<Keywords>& DefaultSplits() {
  static const std::vector<Keywords> kSplits = {
      {"train", {"train", "training"}},
      {"validation", {"validation", "valid", "dev", "val"}},
      {"test", {"test", "testing", "eval", "evaluation"}},
  };
  return kSplits;
}

[[noreturn]] void Fail(const ReadFolder& folder, const std::string& message,
                       const std::string& remedy = kRemedy) {
  throw Error(ErrorKind::kInput, folder.path().string() + ": " + message, remedy);
}

bool IsPassedOver(const std::string& name) {
  static const std::set<std::string> kNames = {"README.md",         "config.json",
                                               "dataset_info.json", "dataset_infos.json",
                                               "dummy_data.zip",    "dataset_dict.json"};
  return name.starts_with(".") || kNames.contains(name);
}

// Lists the files below `folder` with links followed, without hidden ones.
void ListFiles(const ReadFolder& folder, const std::string& below, int depth, size_t* folders,
               std::vector<std::string>* files) {
  if (depth > kFolderDepthMax)
    Fail(folder, fmt::format("folders are nested more than {} deep", kFolderDepthMax));
  if (++*folders > kFoldersMax)
    Fail(folder, fmt::format("the dataset has more than {} folders", kFoldersMax));
  for (const std::string& name : folder.Names(".", kFilesMax)) {
    struct stat about{};
    if (IsPassedOver(name) && (!folder.Stat(name, &about) || !S_ISDIR(about.st_mode))) continue;
    if (folder.HasFile(name)) {
      files->push_back(below + name);
    } else if (!name.starts_with(".") && !name.starts_with("__") && folder.HasFolder(name)) {
      ListFiles(folder.Folder(name), below + name + "/", depth + 1, folders, files);
    }
    if (files->size() > kFilesMax)
      Fail(folder, fmt::format("more than {} files lie below this folder", kFilesMax));
  }
}

bool IsSeparator(char c) {
  return std::string_view("-._ 0123456789").find(c) != std::string_view::npos;
}

// The ways in which a name may hold a keyword, each a pattern of its own there.
enum class Form { kWhole, kBegin, kEnd, kMiddle };

bool Holds(std::string_view name, std::string_view word, Form form) {
  if (form == Form::kWhole) return name == word;
  if (form == Form::kBegin) {
    return name.starts_with(word) && name.size() > word.size() && IsSeparator(name[word.size()]);
  }
  if (form == Form::kEnd) {
    return name.ends_with(word) && name.size() > word.size() &&
           IsSeparator(name[name.size() - word.size() - 1]);
  }
  for (size_t at = name.find(word, 1); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    if (IsSeparator(name[at - 1]) && end < name.size() && IsSeparator(name[end])) return true;
  }
  return false;
}

bool LiesInFolder(const std::string& file, std::string_view word, Form form) {
  size_t begin = 0;
  for (size_t slash = file.find('/'); slash != std::string::npos; slash = file.find('/', begin)) {
    if (Holds(std::string_view(file).substr(begin, slash - begin), word, form)) return true;
    begin = slash + 1;
  }
  return false;
}

bool IsNamed(const std::string& file, std::string_view word, Form form) {
  return Holds(std::string_view(file).substr(file.rfind('/') + 1), word, form);
}

// The splits whose keywords `matches` finds. A file that several patterns find is there several
// times.
template <typename Matches>
std::vector<FolderSplit> ByKeywords(const std::vector<std::string>& files,
                                    const std::vector<Form>& forms, Matches matches) {
  std::vector<FolderSplit> splits;
  for (const Keywords& keywords : DefaultSplits()) {
    FolderSplit split{keywords.split, {}};
    for (const std::string& word : keywords.words) {
      for (const Form form : forms) {
        std::copy_if(files.begin(), files.end(), std::back_inserter(split.files),
                     [&](const std::string& file) { return matches(file, word, form); });
      }
    }
    if (!split.files.empty()) splits.push_back(std::move(split));
  }
  return splits;
}

// data/<split>-00000-of-00001.jsonl
std::optional<std::string> SplitOfShard(const std::string& file) {
  static const PythonRegex kShard("\\Adata/([^/]*)-[0-9]{5}-of-[0-9]{5}[^/]*\\.[^/]*\\Z");
  const std::string text = ReplaceInvalidUtf8(file);
  Regex::Match match;
  if (!kShard.Search(text, 0, &match)) return std::nullopt;
  return text.substr(match[1].begin, match[1].end - match[1].begin);
}

// The default splits in their order, then the others by name.
std::vector<FolderSplit> ByShards(const std::vector<std::string>& files) {
  std::map<std::string, std::vector<std::string>> files_of;
  for (const std::string& file : files) {
    if (const auto split = SplitOfShard(file)) files_of[*split].push_back(file);
  }
  std::vector<FolderSplit> splits;
  for (const Keywords& keywords : DefaultSplits()) {
    if (auto found = files_of.extract(keywords.split))
      splits.push_back({found.key(), std::move(found.mapped())});
  }
  for (auto& [name, shards] : files_of) splits.push_back({name, std::move(shards)});
  return splits;
}

struct Format {
  DataFormat format;
  char separator;
  bool operator==(const Format&) const = default;
};

std::optional<Format> FormatOfEnding(std::string_view ending) {
  if (ending == "jsonl" || ending == "json" || ending == "ndjson")
    return Format{DataFormat::kJson, ','};
  if (ending == "csv") return Format{DataFormat::kCsv, ','};
  if (ending == "tsv") return Format{DataFormat::kCsv, '\t'};
  if (ending == "txt") return Format{DataFormat::kText, ','};
  if (ending == "parquet" || ending == "arrow") return Format{DataFormat::kTable, ','};
  return std::nullopt;
}

// Endings of files that load_dataset passes over. An ending that is not here may be one of its many
// formats.
bool IsNoData(std::string_view ending) {
  static const std::set<std::string_view> kEndings = {"py",  "yaml",   "yml", "sh",    "lock",
                                                      "log", "sha256", "md5", "ipynb", "bib"};
  return kEndings.contains(ending);
}

// The format of a file; nothing for a file without data. All parts of a name between points are
// endings there.
std::optional<Format> FormatOfFile(const ReadFolder& folder, const std::string& file) {
  std::string_view rest = std::string_view(file).substr(file.rfind('/') + 1);
  if (rest.find('.') == std::string_view::npos) return std::nullopt;
  if (rest.ends_with(".gz")) rest.remove_suffix(3);
  const size_t last = rest.rfind('.');
  const std::string_view ending = last == std::string_view::npos ? "" : rest.substr(last + 1);
  const std::optional<Format> format = FormatOfEnding(ending);
  if (!format && !IsNoData(ending)) {
    Fail(folder, fmt::format("found the data file {}, expected the endings .jsonl, .json, .ndjson, "
                             ".csv, .tsv or .txt, "
                             "each also with .gz, .parquet or .arrow",
                             file));
  }
  for (size_t at = rest.find('.'); at != last && at != std::string_view::npos;) {
    const size_t next = rest.find('.', at + 1);
    const std::optional<Format> other = FormatOfEnding(rest.substr(at + 1, next - at - 1));
    if (other && other != format)
      Fail(folder, fmt::format("the file {} has the endings of two formats", file));
    at = next;
  }
  return format;
}

// The types of columns that other files declare.
void RefuseDescriptions(const ReadFolder& folder) {
  constexpr const char* kWithout =
      "take that part out, or copy the data files to a folder of their own";
  if (CardOf(folder).contains("dataset_info"))
    Fail(folder, "README.md has dataset_info, whose types evald does not read", kWithout);
  const std::string script = folder.path().lexically_normal().filename().string() + ".py";
  for (const std::string& name :
       {std::string(".huggingface.yaml"), std::string("dataset_infos.json"), script}) {
    if (folder.HasFile(name))
      Fail(folder, fmt::format("{} describes the data, and evald does not read it", name),
           kWithout);
  }
}

}  // namespace

Json CardOf(const ReadFolder& folder) {
  if (!folder.HasFile(kCard)) return Json::object();
  const std::string text = folder.Read(kCard, kReadmeBytesMax);
  if (!text.starts_with("---\n") && !text.starts_with("---\r\n")) return Json::object();
  const size_t end = text.find("\n---", 3);
  if (end == std::string::npos) return Json::object();
  const std::string file = (folder / kCard).string();
  return ParseYaml(text.substr(4, end - 3), file, folder.path().string(), ReadRoots()).value;
}

std::vector<std::string> FilesOfFolder(const ReadFolder& folder) {
  std::vector<std::string> files;
  size_t folders = 0;
  ListFiles(folder, "", 0, &folders, &files);
  std::sort(files.begin(), files.end());
  if (files.empty()) Fail(folder, "no data file lies in this folder", "");
  return files;
}

std::vector<FolderSplit> SplitsOfFolder(const ReadFolder& folder) {
  const std::vector<std::string> files = FilesOfFolder(folder);
  std::vector<FolderSplit> splits = ByShards(files);
  if (splits.empty())
    splits =
        ByKeywords(files, {Form::kWhole, Form::kBegin, Form::kEnd, Form::kMiddle}, LiesInFolder);
  if (splits.empty()) splits = ByKeywords(files, {Form::kBegin, Form::kMiddle}, IsNamed);
  if (splits.empty()) splits.push_back({"train", files});
  return splits;
}

ReadRules RulesOfFolder(const ReadFolder& folder, std::vector<FolderSplit>* splits) {
  std::optional<Format> found;
  std::string first;
  for (FolderSplit& split : *splits) {
    std::erase_if(split.files, [&](const std::string& file) {
      const std::optional<Format> format = FormatOfFile(folder, file);
      if (format && found && *format != *found) {
        Fail(folder,
             fmt::format("{} and {} are of two formats, expected one for all files of the folder",
                         first, file));
      }
      if (format && !found) {
        found = format;
        first = file;
      }
      return !format;
    });
    if (split.files.empty())
      Fail(folder, fmt::format("the files of the split '{}' have no data", split.name));
  }
  if (found->format != DataFormat::kTable) RefuseDescriptions(folder);  // tables have their types
  return {true, found->format, {found->separator, {}, true}};
}

}  // namespace evald
