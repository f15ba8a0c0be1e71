#include "orchestrator/dataset_fetch/source_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "datasets/builtin_files.h"
#include "datasets/yaml_reader.h"
#include "evald/error.h"
#include "fetch/hub.h"

namespace evald::dataset_fetch {
namespace {

constexpr const char* kFile = "sources.yaml";
constexpr size_t kSha256Digits = 64;

const std::vector<std::string>& EntryKeys() {
  static const std::vector<std::string> kKeys = {"dataset", "repository", "revision",  "converted",
                                                 "gated",   "splits",     "elsewhere", "files"};
  return kKeys;
}

// One entry, with the places of its keys.
class EntryReader {
 public:
  EntryReader(const YamlMapping& yaml, const Json& entry, std::string pointer)
      : yaml_(yaml), entry_(entry), pointer_(std::move(pointer)) {}

  HubSource Read() const {
    if (!entry_.is_object()) Fail("", "found no mapping as an entry of hub");
    for (const auto& item : entry_.items()) RequireKey(item.key(), EntryKeys(), "/" + item.key());
    HubSource source;
    source.dataset = Text("dataset");
    if (source.dataset.empty()) Fail("", "the entry has no dataset");
    source.repository = Text("repository");
    if (source.repository.empty()) source.repository = source.dataset;
    try {
      fetch::RequireRepositoryName(source.repository);
    } catch (Error& error) {
      throw error.AddContext(yaml_.Where(pointer_));
    }
    source.revision = Text("revision");
    source.gated = Flag("gated");
    source.converted = Flag("converted");
    ReadSplits(&source);
    for (const auto& [split, how] : Members("elsewhere"))
      source.elsewhere[split] = TextOf(how, "/elsewhere/" + split);
    for (const auto& [path, about] : Members("files")) source.files[path] = FileOf(path, about);
    return source;
  }

 private:
  [[noreturn]] void Fail(const std::string& key, const std::string& message) const {
    throw Error(ErrorKind::kInput, yaml_.Where(pointer_ + key) + ": " + message);
  }

  void RequireKey(const std::string& key, const std::vector<std::string>& keys,
                  const std::string& at) const {
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) return;
    Fail(at, fmt::format("unknown key '{}', expected one of {}{}", key, Join(keys, ", "),
                         Suggestion(key, keys)));
  }

  std::string TextOf(const Json& value, const std::string& at) const {
    if (!value.is_string())
      Fail(at, fmt::format("found {}, expected a text", Shortened(ToLine(value), 100)));
    return value;
  }

  std::string Text(const char* key) const {
    return entry_.contains(key) ? TextOf(entry_[key], fmt::format("/{}", key)) : "";
  }

  bool Flag(const char* key) const {
    if (!entry_.contains(key)) return false;
    if (!entry_[key].is_boolean())
      Fail(fmt::format("/{}", key), fmt::format("{} is neither true nor false", key));
    return entry_[key];
  }

  std::vector<std::pair<std::string, Json>> Members(const char* key) const {
    std::vector<std::pair<std::string, Json>> members;
    if (!entry_.contains(key)) return members;
    const Json& value = entry_[key];
    if (!value.is_object()) Fail(fmt::format("/{}", key), fmt::format("{} is not a mapping", key));
    for (const auto& item : value.items()) members.emplace_back(item.key(), item.value());
    return members;
  }

  void ReadSplits(HubSource* source) const {
    for (const auto& [split, patterns] : Members("splits")) {
      auto& of_split = source->splits.emplace_back(split, std::vector<std::string>());
      for (const Json& one : patterns.is_array() ? patterns : Json::array({patterns}))
        of_split.second.push_back(TextOf(one, "/splits/" + split));
    }
  }

  PinnedFile FileOf(const std::string& path, const Json& about) const {
    const std::string at = "/files/" + path;
    if (const std::string wrong = fetch::WrongWithPath(path); !wrong.empty())
      Fail(at, fmt::format("the name '{}' {}", path, wrong));
    if (!about.is_object()) Fail(at, "found no mapping, expected {bytes: ..., sha256: ...}");
    PinnedFile file;
    file.where = yaml_.Where(pointer_ + at);
    for (const auto& item : about.items()) RequireKey(item.key(), {"bytes", "sha256"}, at);
    if (about.contains("bytes")) {
      const Json& bytes = about["bytes"];
      if (!bytes.is_number_integer() || bytes < 0) Fail(at, "bytes is no whole number");
      file.bytes = bytes.get<uint64_t>();
    }
    if (about.contains("sha256")) file.sha256 = TextOf(about["sha256"], at);
    const bool sound = file.sha256.size() == kSha256Digits &&
                       file.sha256.find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!file.sha256.empty() && !sound) {
      Fail(at, fmt::format("found '{}' as sha256, expected 64 digits of 0-9a-f",
                           Shortened(file.sha256, 100)));
    }
    return file;
  }

  const YamlMapping& yaml_;
  const Json& entry_;
  std::string pointer_;
};

}  // namespace

SourceTable ParseSourceTable(const std::string& text, const std::string& file) {
  const YamlMapping yaml = ParseYaml(text, file, std::string(kBuiltinPrefix), ReadRoots());
  SourceTable table;
  for (const auto& item : yaml.value.items()) {
    if (item.key() == "hub" || item.key() == "sources") continue;
    throw Error(ErrorKind::kInput, fmt::format("{}: unknown key '{}', expected hub",
                                               yaml.Where("/" + item.key()), item.key()));
  }
  const Json hub = yaml.value.value("hub", Json::array());
  if (!hub.is_array())
    throw Error(ErrorKind::kInput, yaml.Where("/hub") + ": hub is not a list of datasets");
  for (size_t i = 0; i < hub.size(); ++i) {
    const std::string pointer = fmt::format("/hub/{}", i);
    HubSource source = EntryReader(yaml, hub[i], pointer).Read();
    const std::string dataset = source.dataset;
    if (!table.emplace(dataset, std::move(source)).second) {
      throw Error(ErrorKind::kInput, fmt::format("{}: a second entry of the dataset '{}'",
                                                 yaml.Where(pointer), dataset));
    }
  }
  return table;
}

const SourceTable& BuiltinSourceTable() {
  static const SourceTable kTable = [] {
    std::string_view text;
    if (!FindBuiltinFile(kFile, &text))
      throw Error(ErrorKind::kInternal, "datasets/tasks/sources.yaml was not built in");
    return ParseSourceTable(std::string(text), kFile);
  }();
  return kTable;
}

HubSource SourceOf(const std::string& dataset, const SourceTable& user,
                   const SourceTable& builtin) {
  HubSource source;
  source.dataset = source.repository = dataset;
  if (const auto known = builtin.find(dataset); known != builtin.end()) source = known->second;
  const auto own = user.find(dataset);
  if (own == user.end()) return source;
  const HubSource& said = own->second;
  if (said.repository != dataset) source.repository = said.repository;
  if (!said.revision.empty()) source.revision = said.revision;
  source.gated = source.gated || said.gated;
  source.converted = source.converted || said.converted;
  if (!said.splits.empty()) source.splits = said.splits;
  for (const auto& [split, how] : said.elsewhere) source.elsewhere[split] = how;
  for (const auto& [path, file] : said.files) source.files[path] = file;
  return source;
}

std::string SourceTableText(const SourceTable& table) {
  const auto quoted = [](const std::string& text) { return ToLine(Json(text)); };
  std::string text =
      "# Datasets of the hub, with the hashes of their files. evald fetch --pin writes this file "
      "anew;\n# docs/fetch.md has the form.\nhub:\n";
  for (const auto& [dataset, source] : table) {
    text += fmt::format("  - dataset: {}\n", quoted(dataset));
    if (source.repository != dataset)
      text += fmt::format("    repository: {}\n", quoted(source.repository));
    if (!source.revision.empty())
      text += fmt::format("    revision: {}\n", quoted(source.revision));
    if (source.converted) text += "    converted: true\n";
    if (source.gated) text += "    gated: true\n";
    if (!source.splits.empty()) text += "    splits:\n";
    for (const auto& [split, patterns] : source.splits)
      text += fmt::format("      {}: {}\n", quoted(split), ToLine(Json(patterns)));
    if (!source.elsewhere.empty()) text += "    elsewhere:\n";
    for (const auto& [split, how] : source.elsewhere)
      text += fmt::format("      {}: {}\n", quoted(split), quoted(how));
    if (!source.files.empty()) text += "    files:\n";
    for (const auto& [path, file] : source.files) {
      std::vector<std::string> about;
      if (file.bytes) about.push_back(fmt::format("bytes: {}", *file.bytes));
      if (!file.sha256.empty()) about.push_back(fmt::format("sha256: {}", quoted(file.sha256)));
      text += fmt::format("      {}: {{{}}}\n", quoted(path), Join(about, ", "));
    }
  }
  return text;
}

}  // namespace evald::dataset_fetch
