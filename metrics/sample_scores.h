#pragma once

#include <string>
#include <vector>

#include "evald/score.h"
#include "evald/task.h"
#include "metrics/scoring/sample_metrics.h"

namespace evald {

/// The metrics of several samples of a task (TaskDefinition::sample_metrics). Each sample of a
/// document is scored as if it were the only one; these metrics are made of the samples' values.
class SampleScores {
 public:
  /// `given` names the metrics that a sample has. Throws Error(kInput) for an entry of a metric
  /// that the task does not have, and for filters that look at several samples at once.
  SampleScores(const TaskDefinition& task, const std::vector<std::string>& given);

  int64_t samples() const { return samples_; }
  /// The names for which Merged gives values, after those of a sample.
  const std::vector<std::string>& names() const { return names_; }

  /// The document's score under one filter: that of the first sample, as in the harness, with these
  /// metrics added, and all samples' fallbacks. Throws Error(kInput) for a value that is no number.
  FilterScore Merged(std::vector<FilterScore> samples) const;

 private:
  struct Wanted {
    SampleMetric metric;
    std::string of;  ///< a metric of the task
    std::string name;
  };
  std::vector<Wanted> metrics_;
  std::vector<std::string> names_;
  int64_t samples_;
};

}  // namespace evald
