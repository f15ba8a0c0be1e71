#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

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
  /// `path` is a run's folder, a folder with one results file, or a results file. Throws
  /// Error(kInput) for what cannot be read, Error(kInfrastructure) for a run that is not complete.
  static ResultSet Open(const std::filesystem::path& path);

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

  /// Where the samples of a task lie; Error(kInput) when they do not.
  std::filesystem::path SamplesFile(const std::string& task) const;
  const TaskSamples& Samples(const std::string& task);

 private:
  Json results_;
  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::string suffix_;  ///< of the samples' names: "" or "_<date>"
  std::map<std::string, std::shared_ptr<TaskSamples>> samples_;
};

}  // namespace evald
