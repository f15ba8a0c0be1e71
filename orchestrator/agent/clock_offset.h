#pragma once

#include <cstdint>

namespace evald {

/// The difference between the orchestrator's CLOCK_MONOTONIC and this host's, to be added to this
/// host's. Measured by questions and answers: the quickest answer counts, and the orchestrator's
/// time is taken to lie in the middle of it, give or take half its duration. A plain value;
/// microseconds.
class ClockOffset {
 public:
  /// A question was sent at `sent` and answered at `came`, by this clock. The other clock showed
  /// `theirs`.
  void Measured(int64_t sent, int64_t theirs, int64_t came) {
    const int64_t took = came - sent;
    if (took < 0 || (known_ && took >= took_us_)) return;
    known_ = true;
    took_us_ = took;
    offset_us_ = theirs - (sent + took / 2);
  }
  int64_t offset_us() const { return offset_us_; }

 private:
  bool known_ = false;
  int64_t took_us_ = 0;
  int64_t offset_us_ = 0;
};

}  // namespace evald
