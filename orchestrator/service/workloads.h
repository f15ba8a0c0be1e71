#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "orchestrator/config/eval_config.h"

namespace evald {

/// The device seconds that runs were expected to take when they were planned. A run that still
/// waits has no plan: the newest run that evaluated alike (WorkloadOf) says what it may take. A
/// plain value.
class Workloads {
 public:
  /// A run at work has open work of this many device seconds. The most that was seen of the run
  /// counts, which is its plan: later its open work shrinks. Of a run that was resumed only what
  /// was left is known.
  void Saw(const std::string& workload, int64_t run, double open_s);
  /// What a run of this workload may take; nullopt if none was planned.
  std::optional<double> Expected(const std::string& workload) const;

  /// Of the workloads that were not seen for longest, those beyond this number are forgotten.
  static constexpr size_t kKept = 1000;

 private:
  struct Seen {
    int64_t run = 0;
    double device_s = 0;
    uint64_t turn = 0;  // of the last Saw()
  };
  void ForgetOldest();

  std::map<std::string, Seen> seen_;
  uint64_t turn_ = 0;
};

/// A hash of all in a run's configuration that its work depends on, but for the checkpoint: of the
/// checkpoint only the folder counts in which it lies. So the checkpoints of a training run have
/// the same workload.
std::string WorkloadOf(const EvalConfig& config);

}  // namespace evald
