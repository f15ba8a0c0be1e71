#pragma once

#include <cstdint>
#include <string>

namespace evald {

/// The expected cost of one task. Device seconds are seconds of a device with all its places taken,
/// so they add up whatever else the device computes.
struct TaskEstimate {
  std::string name;
  /// Tasks that a person sees as one dataset have one number and stand together
  int dataset = 0;
  int64_t documents = 0;
  double size = 0;      ///< a document's size as known without a prior: its rows and choices
  double device_s = 0;  ///< device seconds of a document, mean
  /// The longest document, from when a device takes it up to its last token
  double request_s = 0;
  /// Device seconds for the prefix that documents share; a trial pays them once
  double prefix_s = 0;
  double score_s = 0;  ///< seconds of a slot of the metric pool for a document
  /// Device seconds may turn out this many times higher. Trials are cut by what they may cost, so
  /// the first trials of an unknown task are small.
  double doubt = 1;
};

/// An estimate that is corrected while the run goes on: the mean of the documents measured and of
/// `weight` imagined documents that cost what was expected.
class RunningEstimate {
 public:
  RunningEstimate() = default;
  RunningEstimate(TaskEstimate prior, double weight) : prior_(std::move(prior)), weight_(weight) {}

  /// `documents` took `device_s` in all. The longest of them took `longest_s`.
  void SawGeneration(int64_t documents, double device_s, double longest_s);
  void SawScoring(int64_t documents, double score_s);
  /// A request has been under way for `seconds` and has not ended.
  void SawUnfinished(double seconds);

  const TaskEstimate& prior() const { return prior_; }
  TaskEstimate Now() const;
  double device_s() const {
    return (weight_ * prior_.device_s + device_s_) / (weight_ + generated_);
  }
  /// The longest request, from ended requests only.
  double ended_request_s() const;

 private:
  TaskEstimate prior_;
  double weight_ = 1;
  double generated_ = 0, device_s_ = 0, longest_s_ = 0, unfinished_s_ = 0;
  double scored_ = 0, score_s_ = 0;
};

}  // namespace evald
