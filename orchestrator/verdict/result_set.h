#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/read_roots.h"
#include "evald/json.h"

namespace evald {

/// One line of a samples file, without the texts.
struct SampleScore {
  std::string doc_hash;
  std::string prompt_hash;  ///< "" if the file has none
  Json metrics;             ///< metric -> value, as in the file
};

/// filter -> doc_id -> score.
using TaskSamples = std::map<std::string, std::map<int64_t, SampleScore>>;

/// Results with the samples that they were made from: a run's folder, or a results file of evald or
/// of lm-evaluation-harness (`--log_samples`) with the samples files beside it. A task's samples
/// are read at the first request. One thread at a time.
class ResultSet {
 public:
  /// `path` is a run's folder, a folder with one results file, or a results file, below `roots`.
  /// Throws Error(kInput) if it cannot be read, and Error(kInfrastructure) if the run is not
  /// complete.
  static ResultSet Open(const std::filesystem::path& path, const ReadRoots& roots = {});

  /// The results of a run, complete or not, with its samples in `folder`.
  ResultSet(Json results, std::filesystem::path folder);

  const Json& results() const { return results_; }
  const std::filesystem::path& path() const { return path_; }
  /// The model's name and the place of the results, for people.
  std::string label() const;

  /// The task's or group's entry in `results`; null if there is none.
  const Json& Entry(const std::string& task) const;
  /// The task's member of `results`, `group_subtasks`, `higher_is_better`, `configs` or `versions`;
  /// null if there is none. (A search through a Json object takes as long as the object has
  /// members.)
  const Json& Member(const std::string& part, const std::string& task) const;
  /// The tasks of a group, at any depth; for a task, the task itself.
  std::vector<std::string> Leaves(const std::string& task) const;
  /// (metric, filter) pairs of an entry, in its order. Not all need be numbers.
  std::vector<std::pair<std::string, std::string>> Metrics(const std::string& task) const;
  /// The value of a metric, which may be NaN or infinite; nothing if the entry lacks the metric, or
  /// if the value is no number (an aggregation of a task's own may give anything).
  std::optional<double> Value(const std::string& task, const std::string& metric,
                              const std::string& filter) const;

  /// Throws Error(kInput) if the samples of a task are missing.
  void CheckSamples(const std::string& task) const;
  /// Calls `visit(line_number, value)` for each line of a task's samples until it returns false.
  /// Throws Error(kInput) if the samples are missing, are not JSON, or have more than 2,000,000
  /// lines.
  void ForEachSample(const std::string& task,
                     const std::function<bool(size_t line, Json&& value)>& visit) const;
  const TaskSamples& Samples(const std::string& task);

 private:
  std::string SamplesName(const std::string& task) const;
  void Index();

  Json results_;
  /// The places of the tasks' members in the parts of `results_`.
  std::map<std::string, std::unordered_map<std::string, size_t>> places_;
  std::filesystem::path path_;
  ReadFolder folder_;
  std::string suffix_;  ///< of the samples' names: "" or "_<date>"
  std::map<std::string, std::shared_ptr<TaskSamples>> samples_;
};

}  // namespace evald
