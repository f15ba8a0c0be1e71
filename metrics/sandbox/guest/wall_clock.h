#pragma once

#include <stdint.h>

#include "metrics/sandbox/guest/guest.h"

namespace evald::guest {

enum class WallVerdict {
  kWithin,
  kSlept,    ///< over: by the program's own doing, whatever the load of the machine
  kUnclear,  ///< over, and perhaps because the machine was busy
};

/// The wall limit of one program (see kWallWindowsMax). It begins when this object is made.
///
/// The limit runs on the program's own clock, which stands still while the program waits for a
/// processor. So a program reaches it at the same point on an idle machine and on a busy one. The
/// waits of several threads are added up, even if they overlapped, so such a program gets too much
/// time rather than too little. The clock also stands still while IsDue() is not called, which
/// means that the whole sandbox is frozen.
class WallClock {
 public:
  WallClock(const sandbox::ProgramRequest& request, uint64_t cpu_limit_us);

  /// Whether the limit may be reached; then call Judge(). Call it many times a second.
  bool IsDue();

  /// The verdict on a program that has used `cpu_us` so far.
  WallVerdict Judge(uint64_t cpu_us, const Waiting& waiting);

 private:
  uint64_t start_;
  uint64_t seen_;  ///< when IsDue() was last called
  const uint64_t limit_us_;
  const uint64_t windows_max_;
  const uint64_t cpu_limit_us_;
  uint64_t windows_ = 1;  ///< limits granted so far
};

}  // namespace evald::guest
