#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "orchestrator/schedule/open_work.h"
#include "orchestrator/simulate/device_queue.h"

namespace evald {

/// What a device's time goes to besides requests.
enum SimCause { kSimStart, kSimLoad, kSimPrepare, kSimScore };
inline constexpr std::array<const char*, 4> kSimCauses = {"start", "load", "prepare", "score"};

/// The longest time that a worker waits for documents that others give back, as in RunMachine.
inline constexpr double kSimStealWaitSeconds = 2;

struct SimSlice {
  size_t task = 0;
  DocumentRange documents;
  bool done = false;
};

/// An attempt at a trial, as its device has it.
struct SimTrial {
  int64_t number = 0;  ///< of the RunMachine
  int attempt = 0;     ///< likewise
  int device = 0;
  std::vector<SimSlice> slices;
  int64_t documents = 0;  ///< of all slices
  size_t slices_left = 0;
  int64_t version = 0;  ///< of the times at which its slices end
  double begin = 0;
  double device_s = 0;  ///< of the slices that are done
  bool over = false;
  bool backup = false;
  double score_s = 0;  ///< if the device scores
};

/// A device and its worker.
struct SimDevice {
  explicit SimDevice(int places) : queue(places) {}
  // Each heartbeat looks at these, so they lie together.
  std::vector<int64_t> trials;  ///< under way, in ascending order
  double report_due = 0;        ///< before then, a heartbeat would say nothing new
  double steal_wait_until = 0;  ///< it waits for documents that others give back
  bool lost = false;
  bool wants = false;  ///< it has asked for a trial and has not got one
  int64_t want_version = 0;
  int64_t pending = -1;  ///< trial that waits for the weights its executor loads
  DeviceQueue queue;
  double weights_in = 0;
  double load_begin = 0;
  std::vector<bool> prepared;     ///< by dataset
  std::array<double, 4> spent{};  ///< by SimCause
};

}  // namespace evald
