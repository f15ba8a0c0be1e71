#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace evald::bench {

/// What a GPU did for a stretch, as gpu_trace.cc records it: little-endian, 32 bytes each, in files
/// <process id>.activity, in no order. Times are nanoseconds of CUPTI's clock.
struct Activity {
  enum Kind : uint32_t { kKernel = 0, kCopyToDevice = 1, kOtherCopy = 2, kFill = 3 };
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t bytes = 0;  ///< of a copy or fill
  uint32_t kind = kKernel;
  uint32_t name = 0;  ///< of a kernel: its line in <process id>.names, from 0
};
static_assert(sizeof(Activity) == 32);

/// One process's.
struct ActivityTrace {
  std::vector<Activity> activities;
  std::vector<std::string> names;  ///< as the compiler mangles them
};

/// All traces in a folder, by process id. Throws Error(kInput) for a file that is cut off.
std::map<int, ActivityTrace> ReadActivity(const std::filesystem::path& folder);

/// How much of the time between "weights in" and the last kernel's end kernels ran.
struct BusyShare {
  double window_seconds = 0;
  double busy_seconds = 0;    ///< at least one kernel ran
  double copies_seconds = 0;  ///< a copy ran and no kernel
  double share = 0;           ///< busy / window
  /// Idle stretches by length: up to 10 us, 100 us, 1 ms, 10 ms, 100 ms, and longer; their seconds.
  std::vector<double> gaps_seconds;
  struct Gap {
    double at_seconds;  ///< after the window's begin
    double seconds;
  };
  std::vector<Gap> longest;                      ///< ten, longest first
  std::map<std::string, double> kernel_seconds;  ///< by name, overlaps counted twice
};

/// The weights are in when copies to the device have brought so many bytes, the process's first
/// ones. A share of 0 with an empty window where they never were, or no kernel ran afterwards.
BusyShare ShareBusy(const ActivityTrace& trace, uint64_t weights_bytes);

}  // namespace evald::bench
