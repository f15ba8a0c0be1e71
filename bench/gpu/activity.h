#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace evald::bench {

/// One stretch of a GPU's work, as gpu_trace.cc records it. A record is little-endian and has 32
/// bytes. Records are in files <process id>.activity, in no order. Times are nanoseconds of CUPTI's
/// clock.
struct Activity {
  enum Kind : uint32_t { kKernel = 0, kCopyToDevice = 1, kOtherCopy = 2, kFill = 3 };
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes = 0;  ///< of a copy or a fill
  uint32_t kind = kKernel;
  uint32_t name = 0;  ///< number of the kernel's line in <process id>.names, from 0
};
static_assert(sizeof(Activity) == 32);

/// The trace of one process.
struct ActivityTrace {
  std::vector<Activity> activities;
  std::vector<std::string> names;  ///< in the compiler's mangled form
};

/// All traces in a folder, by process id. Throws Error(kInput) for a file that is cut off.
std::map<int, ActivityTrace> ReadActivity(const std::filesystem::path& folder);

/// The share of the time between "weights in" and the end of the last kernel during which kernels
/// ran.
struct BusyShare {
  double window_seconds = 0;
  double busy_seconds = 0;    ///< at least one kernel ran
  double copies_seconds = 0;  ///< a copy ran and no kernel
  double share = 0;           ///< busy / window
  /// Seconds of idle stretches by length: up to 10 us, 100 us, 1 ms, 10 ms, 100 ms, and longer.
  std::vector<double> gaps_seconds;
  struct Gap {
    double at_seconds;  ///< after the window's begin
    double seconds;
  };
  std::vector<Gap> longest;                      ///< ten, longest first
  std::map<std::string, double> kernel_seconds;  ///< by name; overlapping kernels both count
};

/// The weights are in once copies to the device have brought `weights_bytes` bytes; the process's
/// first copies are those of the weights. If they never brought so many, or if no kernel ran
/// afterwards, the share is 0 and the window is empty.
BusyShare ShareBusy(const ActivityTrace& trace, uint64_t weights_bytes);

}  // namespace evald::bench
