#include "orchestrator/verdict/result_set.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/json_walk.h"
#include "base/jsonl.h"
#include "base/names.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/score_number.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kParts[] = {"results", "group_subtasks", "higher_is_better", "configs",
                                  "versions"};
constexpr const char* kHarnessPrefix = "results_";
constexpr size_t kEntriesMax = 100'000;
constexpr uint64_t kResultsBytesMax = uint64_t{64} << 20;
constexpr uint64_t kLineBytesMax = uint64_t{512} << 20;  // of a sample: all answers to a document
constexpr uint64_t kWholeBytesMax = uint64_t{1} << 20;   // of a line or member that is held
constexpr size_t kLinesMax = 2'000'000;  // a comparison keeps a line's scores in memory
constexpr size_t kNameBytesMax = 300;    // of a model's name in a label

// An open results file, and the folder of its samples.
struct Found {
  ReadFolder folder;
  std::string name;
};

// Finds the results file for `path`.
Found FindResults(const fs::path& path, const ReadRoots& roots) {
  if (roots.HasFile(path)) return {ReadFolder(path.parent_path(), roots), path.filename().string()};
  const ReadFolder folder(path, roots);
  if (!folder.exists()) {
    throw Error(ErrorKind::kInput,
                roots.anywhere() ? path.string() + ": no such file or folder"
                                 : fmt::format("{}: {}", path.string(), ReadRoots::kNotThere),
                "name a run's folder or a results file");
  }
  if (folder.HasFile("results.json")) return {folder, "results.json"};
  if (folder.HasFile("run.json")) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: this run is not complete", path.string()),
                "finish it with evald run --resume");
  }
  std::vector<std::string> found;
  for (const std::string& name : folder.Names(".", kEntriesMax)) {
    if (name.starts_with(kHarnessPrefix) && name.ends_with(".json")) found.push_back(name);
  }
  if (found.size() == 1) return {folder, found[0]};
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: holds {} results files", path.string(), found.empty() ? "no" : "several"),
      found.empty() ? "name a run's folder or a results file" : "name the one that is meant");
}

SampleScore ReadScore(const Json& line, const std::string& where) {
  SampleScore score;
  score.doc_hash = FieldOr<std::string>(line, "doc_hash", "", where);
  score.prompt_hash = FieldOr<std::string>(line, "prompt_hash", "", where);
  score.metrics = Json::object();
  for (const Json& metric : Field<std::vector<Json>>(line, "metrics", where)) {
    if (!metric.is_string()) continue;
    const auto value = line.find(metric.get<std::string>());
    if (value == line.end()) continue;
    score.metrics[metric.get<std::string>()] =
        value->is_boolean() ? Json(value->get<bool>() ? 1.0 : 0.0) : *value;
  }
  return score;
}

// The first byte behind a byte order mark.
uint64_t BeginOf(LongText* text) { return text->From(0).starts_with("\xef\xbb\xbf") ? 3 : 0; }

// The offset of the line's newline, or of the end.
uint64_t EndOfLine(LongText* text, uint64_t begin, const std::string& where) {
  for (uint64_t at = begin;;) {
    const std::string_view piece = text->From(at);
    const size_t newline = piece.find('\n');
    at += std::min(newline, piece.size());
    if (at - begin > kLineBytesMax) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: the line is longer than {}", where, HumanBytes(kLineBytesMax)));
    }
    if (newline != std::string_view::npos || piece.empty()) return at;
  }
}

// The sample of a line; nothing for a blank one. In a long line, only members of a bounded length
// are read; the others (all answers to a document) become null.
std::optional<Json> ReadSample(LongText* text, const UniqueFd& fd, TextSpan line,
                               const std::string& where) {
  if (line.bytes() <= kWholeBytesMax) {
    const std::string whole = ReadAt(fd, line.begin, line.bytes());
    if (Trim(whole).empty()) return std::nullopt;
    return ParseJson(whole, where);
  }
  JsonWalk walk(text, where);
  Json sample = Json::object();
  walk.Members(walk.Value(line), [&](const std::string& key, TextSpan value) {
    sample[key] = value.bytes() > kWholeBytesMax ? Json() : walk.Parse(value, kWholeBytesMax);
  });
  return sample;
}

}  // namespace

ResultSet::ResultSet(Json results, fs::path folder)
    : results_(std::move(results)), path_(folder), folder_(folder) {
  for (const char* key : kParts) {
    if (results_.is_object() && results_.contains(key) && results_[key].is_object()) continue;
    if (!results_.is_object()) results_ = Json::object();
    results_[key] = Json::object();
  }
  Index();
}

void ResultSet::Index() {
  for (const char* part : kParts) {
    std::unordered_map<std::string, size_t>& places = places_[part];
    size_t place = 0;
    for (const auto& [task, value] : results_[part].items()) places.emplace(task, place++);
  }
}

const Json& ResultSet::Member(const std::string& part, const std::string& task) const {
  static const Json kNone;
  const auto& places = places_.at(part);
  const auto found = places.find(task);
  if (found == places.end()) return kNone;
  const auto& members = results_[part].get_ref<const Json::object_t&>();
  return (members.begin() + static_cast<std::ptrdiff_t>(found->second))->second;
}

ResultSet ResultSet::Open(const fs::path& path, const ReadRoots& roots) {
  const Found found = FindResults(fs::absolute(path), roots);
  const fs::path file = found.folder / found.name;
  Json results = ParseJson(found.folder.Read(found.name, kResultsBytesMax), file.string());
  if (!results.is_object() || !results.contains("results") || !results["results"].is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: not a results file (no object 'results')", file.string()));
  }
  ResultSet set(std::move(results), found.folder.path());
  set.folder_ = found.folder;
  set.path_ = path;
  const std::string stem = file.stem().string();
  if (stem.starts_with(kHarnessPrefix))
    set.suffix_ = "_" + stem.substr(std::string(kHarnessPrefix).size());
  return set;
}

std::string ResultSet::label() const {
  const auto name = results_.find("model_name");
  const bool named =
      name != results_.end() && name->is_string() && !name->get_ref<const std::string&>().empty();
  if (!named) return path_.string();
  const std::string shown =
      ReplaceInvalidUtf8(name->get_ref<const std::string&>().substr(0, kNameBytesMax));
  return fmt::format("{} ({})", shown, path_.string());
}

const Json& ResultSet::Entry(const std::string& task) const {
  static const Json kNone;
  const Json& entry = Member("results", task);
  return entry.is_object() ? entry : kNone;
}

std::vector<std::string> ResultSet::Leaves(const std::string& task) const {
  std::vector<std::string> leaves, open = {task};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!seen.insert(name).second) continue;
    const Json& group = Member("group_subtasks", name);
    if (!group.is_array() || group.empty()) {
      leaves.push_back(name);
      continue;
    }
    for (auto child = group.rbegin(); child != group.rend(); ++child) {
      if (child->is_string()) open.push_back(child->get<std::string>());
    }
  }
  return leaves;
}

std::vector<std::pair<std::string, std::string>> ResultSet::Metrics(const std::string& task) const {
  std::vector<std::pair<std::string, std::string>> metrics;
  for (const auto& [key, value] : Entry(task).items()) {
    const size_t comma = key.find(',');
    if (comma == std::string::npos || key.substr(0, comma).ends_with("_stderr")) continue;
    metrics.emplace_back(key.substr(0, comma), key.substr(comma + 1));
  }
  return metrics;
}

std::optional<double> ResultSet::Value(const std::string& task, const std::string& metric,
                                       const std::string& filter) const {
  const Json& entry = Entry(task);
  const auto value = entry.find(metric + "," + filter);
  if (entry.is_null() || value == entry.end() || !IsScoreNumber(*value)) return std::nullopt;
  return NumberFromScore(*value);
}

std::string ResultSet::SamplesName(const std::string& task) const {
  const std::string name = fmt::format("samples_{}{}.jsonl", FolderNameOf(task), suffix_);
  if (folder_.HasFile(name) || !WrongWithName(task).empty()) return name;
  // The harness writes a name unchanged, for example one with a space.
  const std::string theirs = fmt::format("samples_{}{}.jsonl", task, suffix_);
  return folder_.HasFile(theirs) ? theirs : name;
}

void ResultSet::CheckSamples(const std::string& task) const {
  const std::string name = SamplesName(task);
  if (folder_.HasFile(name)) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: this samples file is missing", (folder_ / name).string()),
              "a comparison needs it; lm-evaluation-harness writes it with --log_samples");
}

void ResultSet::ForEachSample(const std::string& task,
                              const std::function<bool(size_t, Json&&)>& visit) const {
  CheckSamples(task);
  const std::string name = SamplesName(task);
  const std::string file = (folder_ / name).string();
  const UniqueFd fd = folder_.OpenFile(name);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) ThrowErrno(file, "fstat", errno);
  TextInFile text(fd, static_cast<uint64_t>(info.st_size), file);
  size_t number = 0;
  for (uint64_t begin = BeginOf(&text); !text.From(begin).empty();) {
    const std::string where = fmt::format("{}:{}", file, ++number);
    if (number > kLinesMax) {
      throw Error(ErrorKind::kInput, fmt::format("{}: has more than {} lines", file, kLinesMax),
                  "a comparison takes no more samples of a task; compare fewer documents");
    }
    const TextSpan line{begin, EndOfLine(&text, begin, where)};
    begin = line.end + 1;
    std::optional<Json> sample = ReadSample(&text, fd, line, where);
    if (sample && !visit(number, std::move(*sample))) return;
  }
}

const TaskSamples& ResultSet::Samples(const std::string& task) {
  std::shared_ptr<TaskSamples>& samples = samples_[task];
  if (samples) return *samples;
  const std::string file = (folder_ / SamplesName(task)).string();
  auto read = std::make_shared<TaskSamples>();
  ForEachSample(task, [&](size_t line, Json&& value) {
    const std::string where = fmt::format("{}:{}", file, line);
    const int64_t doc_id = Field<int64_t>(value, "doc_id", where);
    const std::string filter = FieldOr<std::string>(value, "filter", "none", where);
    if (!(*read)[filter].emplace(doc_id, ReadScore(value, where)).second) {
      throw Error(ErrorKind::kInput, fmt::format("{}: document {} is there twice for filter '{}'",
                                                 where, doc_id, filter));
    }
    return true;
  });
  samples = std::move(read);
  return *samples;
}

}  // namespace evald
