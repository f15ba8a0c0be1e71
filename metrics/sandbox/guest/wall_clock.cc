#include "metrics/sandbox/guest/wall_clock.h"

namespace evald::guest {
namespace {

/// After such a gap the zygote, which looks every 50 ms, was frozen too (a paused container): no
/// load keeps it waiting for so long.
constexpr uint64_t kFrozenUs = 5'000'000;

}  // namespace

WallClock::WallClock(const sandbox::ProgramRequest& request, uint64_t cpu_limit_us)
    : start_(NowMicros()),
      seen_(start_),
      limit_us_(request.wall_limit_us),
      windows_max_(request.wall_windows),
      cpu_limit_us_(cpu_limit_us) {}

bool WallClock::IsDue() {
  const uint64_t now = NowMicros();
  if (now - seen_ > kFrozenUs) start_ += now - seen_;
  seen_ = now;
  return now - start_ >= limit_us_ * windows_;
}

WallVerdict WallClock::Judge(uint64_t cpu_us, const Waiting& waiting) {
  const uint64_t elapsed_us = NowMicros() - start_;
  const bool at_end = elapsed_us >= limit_us_ * windows_max_;
  // A wait that is still going on is not counted yet.
  if (waiting.runnable && !at_end) return WallVerdict::kWithin;
  const uint64_t waited_us = waiting.known ? waiting.us : 0;
  const uint64_t own_us = waited_us < elapsed_us ? elapsed_us - waited_us : 0;
  if (own_us < limit_us_ * windows_) return at_end ? WallVerdict::kUnclear : WallVerdict::kWithin;
  const bool cpu_will_decide = cpu_us * windows_max_ >= cpu_limit_us_ * windows_;
  if (cpu_will_decide && !at_end) {
    ++windows_;
    return WallVerdict::kWithin;
  }
  return waiting.known && !waiting.runnable ? WallVerdict::kSlept : WallVerdict::kUnclear;
}

}  // namespace evald::guest
