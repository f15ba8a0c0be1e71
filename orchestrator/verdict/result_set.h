#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/json.h"

namespace evald {

/// One line of a samples file, without the texts.
struct SampleScore {
  std::string doc_hash;
  std::string prompt_hash;  ///< "" where the file has none
  Json metrics;             ///< metric -> value, as the file has it
};

/// filter -> doc_id -> score.
using TaskSamples = std::map<std::string, std::map<int64_t, SampleScore>>;

/// Results with the samples that they were made of: a run's folder, or a results file of evald or
/// of lm-evaluation-harness (`--log_samples`) with the samples files beside it. Samples are read
/// when a task is first asked for. One thread at a time.
class ResultSet {
 public:
  /// `path` is a run's folder, a folder with one results file, or a results file, below `roots`.
  /// Throws Error(kInput) for what cannot be read, Error(kInfrastructure) for a run that is not
  /// complete.
  static ResultSet Open(const std::filesystem::path& path, const ReadRoots& roots = {});

  /// The results of a run, complete or not, whose samples lie in `folder`.
  ResultSet(Json results, std::filesystem::path folder);

  const Json& results() const { return results_; }
  const std::filesystem::path& path() const { return path_; }
  /// The model's name and where it lies, for people.
  std::string label() const;

  /// The task's or group's entry in `results`, null when there is none.
  const Json& Entry(const std::string& task) const;
  /// The tasks of which a group consists, however deep; of a task, itself.
  std::vector<std::string> Leaves(const std::string& task) const;
  /// (metric, filter) pairs of an entry, in its order.
  std::vector<std::pair<std::string, std::string>> Metrics(const std::string& task) const;

  /// Throws Error(kInput) when the samples of a task are not there.
  void CheckSamples(const std::string& task) const;
  /// Calls `visit(line_number, value)` for each line of a task's samples until it gives false.
  /// Throws Error(kInput) when they are not there or not JSON, or have more than 2,000,000 lines.
  void ForEachSample(const std::string& task,
                     const std::function<bool(size_t line, Json&& value)>& visit) const;
  const TaskSamples& Samples(const std::string& task);

 private:
  std::string SamplesName(const std::string& task) const;

  Json results_;
  std::filesystem::path path_;
  ReadFolder folder_;
  std::string suffix_;  ///< of the samples' names: "" or "_<date>"
  std::map<std::string, std::shared_ptr<TaskSamples>> samples_;
};

}  // namespace evald
