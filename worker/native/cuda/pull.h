#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "worker/native/cuda/device_weights.h"

/// The pull: copies weights from files in shared memory to the device, through a ring of pinned
/// buffers. Each copy thread fills buffers of its own, converts weights if the device wants another
/// type, and queues their copies on a stream of its own, so that reading, converting and the bus
/// work at once.
///
/// The weights are read with pread, not through a mapping: a mapping costs a page fault for each
/// 64 KiB at the first look, and as much again when the mapping goes (16 GB: 0.1 s and 0.27 s on an
/// H200's host). The files are not registered with the driver (cudaHostRegister): that takes 0.1 s
/// per GB, five times the copy, and is refused for read-only mappings on most machines.
namespace evald::native::cuda {

struct PullOptions {
  /// The GPU that copy threads make current; "": the first.
  std::string uuid;
  /// Copy threads; 0: 8, or as many processors as there are on the GPU's side. One thread reads a
  /// tmpfs file at about 9 GB/s (measured on one core of a virtual machine; out of a fresh mapping
  /// 7.5, and 8.4 with MADV_POPULATE_READ); the bus takes about 55.
  int threads = 0;
  /// Bytes of one pinned buffer. Large enough that a copy's fixed cost (about 5 us) does not
  /// matter, small enough that all buffers stay in the processor's last cache while the device
  /// reads them.
  uint64_t chunk_bytes = uint64_t{2} << 20;
  /// Buffers of one thread: one is filled, one is copied, others wait for the bus.
  int depth = 4;
  /// The NUMA node of copy threads and buffers; -1: the GPU's node, if known.
  int numa_node = -1;
};

/// The state of a pull. Any thread may read it, and may cancel.
struct PullProgress {
  std::atomic<uint64_t> bytes{0};  ///< bytes of the files whose copies are queued
  std::atomic<uint64_t> total{0};
  std::atomic<bool> cancel{false};
};

struct PullReport {
  uint64_t bytes = 0;         ///< of the files
  uint64_t device_bytes = 0;  ///< bytes that crossed the bus
  double seconds = 0;         ///< until all weights were on the device
  /// Part of it: the longest time that one thread waited for bytes to land
  double waited_seconds = 0;
  int threads = 0;
  double gb_per_s() const { return seconds > 0 ? 1e-9 * static_cast<double>(bytes) / seconds : 0; }
};
/// {"bytes", "device_bytes", "seconds", "gb_per_s", "waited_seconds", "threads"}
Json ToJson(const PullReport& report);

/// The arrival of files that are still landing: a pull asks before it reads. Called by all copy
/// threads.
class Arrival {
 public:
  virtual ~Arrival() = default;
  /// Waits until bytes [from, from + bytes) of a mapped file have landed. Returns false after
  /// `timeout`. Throws Error if they will never land.
  virtual bool Wait(const char* from, uint64_t bytes, std::chrono::milliseconds timeout) = 0;
};

/// Copy threads and their pinned buffers, which the first pull makes and later pulls use again. For
/// one thread at a time.
class Puller {
 public:
  explicit Puller(PullOptions options);
  ~Puller();
  Puller(const Puller&) = delete;
  Puller& operator=(const Puller&) = delete;

  /// Copies all transfers, roughly in their order (several threads copy at once), and waits until
  /// they are on the device. Nothing may use that memory meanwhile. `arrival` may be null if
  /// everything has landed; `progress` may be null too.
  ///
  /// Throws the first error: DeviceError, Error(kInput) for a value that the device's type cannot
  /// hold, an error from `arrival`, Error(kInfrastructure) if cancelled. By then all threads have
  /// ended, nothing is queued any more, and an error that is not sticky is cleared: the memory and
  /// this object can be used for another try.
  PullReport Run(const std::vector<DeviceWeights::Transfer>& transfers, Arrival* arrival = nullptr,
                 PullProgress* progress = nullptr);

  const PullOptions& options() const { return options_; }

 private:
  struct Lane;
  class Work;

  PullOptions options_;
  std::vector<int> cpus_;  ///< of the copy threads
  std::vector<std::unique_ptr<Lane>> lanes_;
};

/// One pull, if no second one follows.
PullReport Pull(const DeviceWeights& weights, const PullOptions& options = {});

}  // namespace evald::native::cuda
