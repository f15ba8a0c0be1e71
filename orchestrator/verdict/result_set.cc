#include "orchestrator/verdict/result_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

constexpr const char* kHarnessPrefix = "results_";

// The results file that `path` means.
fs::path FindResults(const fs::path& path) {
  if (fs::is_regular_file(path)) return path;
  if (!fs::is_directory(path)) {
    throw Error(ErrorKind::kInput, fmt::format("{}: no such file or folder", path.string()),
                "name a run's folder or a results file");
  }
  if (fs::is_regular_file(path / "results.json")) return path / "results.json";
  if (fs::is_regular_file(path / "run.json")) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: this run is not complete", path.string()),
                "finish it with evald run --resume");
  }
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kHarnessPrefix) && name.ends_with(".json")) found.push_back(entry.path());
  }
  if (found.size() == 1) return found[0];
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

}  // namespace

ResultSet::ResultSet(Json results, fs::path folder)
    : results_(std::move(results)), path_(folder), folder_(std::move(folder)) {
  for (const char* key : {"results", "group_subtasks", "higher_is_better", "configs"}) {
    if (results_.is_object() && results_.contains(key) && results_[key].is_object()) continue;
    if (!results_.is_object()) results_ = Json::object();
    results_[key] = Json::object();
  }
}

ResultSet ResultSet::Open(const fs::path& path) {
  const fs::path file = FindResults(path);
  Json results = ParseJson(ReadFile(file), file.string());
  if (!results.is_object() || !results.contains("results") || !results["results"].is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: not a results file (no object 'results')", file.string()));
  }
  ResultSet set(std::move(results), fs::absolute(file).parent_path());
  set.path_ = path;
  const std::string stem = file.stem().string();
  if (stem.starts_with(kHarnessPrefix))
    set.suffix_ = "_" + stem.substr(std::string(kHarnessPrefix).size());
  return set;
}

std::string ResultSet::label() const {
  const auto name = results_.find("model_name");
  const bool named =
      name != results_.end() && name->is_string() && !name->get<std::string>().empty();
  return named ? fmt::format("{} ({})", name->get<std::string>(), path_.string()) : path_.string();
}

const Json& ResultSet::Entry(const std::string& task) const {
  static const Json kNone;
  const auto found = results_["results"].find(task);
  return found == results_["results"].end() || !found->is_object() ? kNone : *found;
}

std::vector<std::string> ResultSet::Leaves(const std::string& task) const {
  std::vector<std::string> leaves, open = {task};
  std::set<std::string> seen;
  const Json& members = results_["group_subtasks"];
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!seen.insert(name).second) continue;
    const auto group = members.find(name);
    if (group == members.end() || !group->is_array() || group->empty()) {
      leaves.push_back(name);
      continue;
    }
    for (auto child = group->rbegin(); child != group->rend(); ++child) {
      if (child->is_string()) open.push_back(child->get<std::string>());
    }
  }
  return leaves;
}

std::vector<std::pair<std::string, std::string>> ResultSet::Metrics(const std::string& task) const {
  std::vector<std::pair<std::string, std::string>> metrics;
  for (const auto& [key, value] : Entry(task).items()) {
    const size_t comma = key.find(',');
    if (comma == std::string::npos || key.substr(0, comma).ends_with("_stderr") ||
        !value.is_number())
      continue;
    metrics.emplace_back(key.substr(0, comma), key.substr(comma + 1));
  }
  return metrics;
}

fs::path ResultSet::SamplesFile(const std::string& task) const {
  const fs::path file = folder_ / fmt::format("samples_{}{}.jsonl", task, suffix_);
  if (!fs::is_regular_file(file)) {
    throw Error(ErrorKind::kInput, fmt::format("{}: this samples file is missing", file.string()),
                "a comparison needs it; lm-evaluation-harness writes it with --log_samples");
  }
  return file;
}

const TaskSamples& ResultSet::Samples(const std::string& task) {
  std::shared_ptr<TaskSamples>& samples = samples_[task];
  if (samples) return *samples;
  const fs::path file = SamplesFile(task);
  auto read = std::make_shared<TaskSamples>();
  ForEachJsonLine(file, [&](size_t line, Json&& value) {
    const std::string where = fmt::format("{}:{}", file.string(), line);
    const int64_t doc_id = Field<int64_t>(value, "doc_id", where);
    const std::string filter = FieldOr<std::string>(value, "filter", "none", where);
    if (!(*read)[filter].emplace(doc_id, ReadScore(value, where)).second) {
      throw Error(ErrorKind::kInput, fmt::format("{}: document {} is there twice for filter '{}'",
                                                 where, doc_id, filter));
    }
  });
  samples = std::move(read);
  return *samples;
}

}  // namespace evald
