#pragma once

#include <cstdint>
#include <string>

namespace evald {

/// What is expected of one task. Device seconds are those of a device with all its places taken:
/// they add up, whatever else it computes at the time.
struct TaskEstimate {
  std::string name;
  int dataset = 0;  ///< tasks that are one dataset to a person stand together under one number
  int64_t documents = 0;
  double size = 0;  ///< what is known of a document's size without any prior: its rows and choices
  double device_s = 0;   ///< device seconds of a document, mean
  double request_s = 0;  ///< the longest document, from when a device takes it up to its last token
  double prefix_s = 0;   ///< device seconds for what its documents share; a trial pays it once
  double score_s = 0;    ///< seconds of a slot of the metric pool, of a document
  /// Device seconds may be this many times as many. Work is cut by what it may cost, so that the
  /// first trials of what is not known are small.
  double doubt = 1;
};

/// An estimate that is corrected by what is seen of a task while the run goes on: the mean of the
/// documents seen, and of `weight` imagined ones that cost what was expected.
class RunningEstimate {
 public:
  RunningEstimate() = default;
  RunningEstimate(TaskEstimate prior, double weight) : prior_(std::move(prior)), weight_(weight) {}

  /// `documents` took `device_s` in all, the longest of them `longest_s`.
  void SawGeneration(int64_t documents, double device_s, double longest_s);
  void SawScoring(int64_t documents, double score_s);
  /// A request is under way for so long, and has not ended.
  void SawUnfinished(double seconds);

  const TaskEstimate& prior() const { return prior_; }
  TaskEstimate Now() const;
  /// request_s as far as requests say that have ended.
  double ended_request_s() const;

 private:
  TaskEstimate prior_;
  double weight_ = 1;
  double generated_ = 0, device_s_ = 0, longest_s_ = 0, unfinished_s_ = 0;
  double scored_ = 0, score_s_ = 0;
};

}  // namespace evald
