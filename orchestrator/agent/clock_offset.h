#pragma once

#include <cstdint>

namespace evald {

/// What is to be added to this host's CLOCK_MONOTONIC to have the orchestrator's, measured by
/// questions and answers: at the quickest of them the orchestrator's time lay in the middle, give
/// or take half of what it took. A plain value; microseconds.
class ClockOffset {
 public:
  /// Asked at `sent` and answered at `came`, both on this clock; the other showed `theirs`.
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
