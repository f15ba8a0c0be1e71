#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "orchestrator/schedule/open_work.h"
#include "orchestrator/schedule/policy.h"

namespace evald {

/// Seconds without a limit.
inline constexpr double kForever = std::numeric_limits<double>::infinity();

/// Expected seconds of a trial on one device: the lease, the longest request, the shared prefixes,
/// and all documents with all places taken. An upper estimate, since requests run side by side.
class TrialSeconds {
 public:
  /// `slow`: how many times as long as others the device takes.
  TrialSeconds(const OpenWork& work, double lease_s, double slow = 1)
      : work_(work), lease_s_(lease_s), slow_(slow) {}
  /// Adds documents of a task. Documents of one task are added one after another.
  void Add(size_t task, int64_t documents);
  double total() const { return slow_ * (lease_s_ + request_s_ + device_s_); }
  /// The most documents of the task that may be added so that the trial is expected to end within
  /// `seconds`; at most `most`.
  int64_t Room(size_t task, int64_t most, double seconds) const;

 private:
  const OpenWork& work_;
  double lease_s_, slow_;
  double request_s_ = 0, device_s_ = 0;
  std::optional<size_t> last_;
};

/// A trial that is expected to end within `seconds`: as much of `cuts` as fits. If nothing of them
/// fits, documents of the task with the longest request that does. Empty if no document of any task
/// fits. For a worker whose host ends; policies know no ends.
std::vector<Cut> CutToFit(const OpenWork& work, const std::vector<Cut>& cuts, double lease_s,
                          double slow, double seconds);

/// Expected seconds of the shortest trial of open documents, a single document; nothing if no
/// document is open.
std::optional<double> ShortestTrialSeconds(const OpenWork& work, double lease_s);

/// Expected seconds of a metric job. A metric process ends a job early after
/// kJobSeconds and the document under way.
double JobSeconds(const TaskEstimate& estimate, int64_t documents);

/// The time after which a metric process ends a job early.
inline constexpr double kJobSeconds = 10;

}  // namespace evald
