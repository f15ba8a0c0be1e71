#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "worker/native/cuda/device_weights.h"

/// The pull: weights from files that are mapped in host memory to the device, by a ring of pinned
/// buffers. Each copy thread fills buffers of its own, converts on the way where the device wants
/// another type, and queues their copies on a stream of its own, so that reading, converting and
/// the bus work at once. The files are not registered with the driver (cudaHostRegister): that
/// takes 0.1 s per GB, five times the copy, and is refused for read-only mappings on most machines.
namespace evald::native::cuda {

struct PullOptions {
  /// The GPU that copy threads make current; "" for the first.
  std::string uuid;
  /// Copy threads; 0: 8, or as many processors as there are on the GPU's side. One thread copies
  /// out of a mapped tmpfs file at about 7 GB/s, page faults counted (measured on one core of a
  /// virtual machine; asking for the pages beforehand, MADV_POPULATE_READ, gave 6.7); the bus takes
  /// about 55.
  int threads = 0;
  /// Of one pinned buffer. Large enough that a copy's fixed cost (about 5 us) does not count, small
  /// enough that all buffers stay in the processor's last cache while the device reads them.
  uint64_t chunk_bytes = uint64_t{2} << 20;
  /// Buffers of one thread: one is filled, one is copied, others wait for the bus.
  int depth = 4;
  /// Where copy threads and buffers are; -1: at the GPU's node, as far as that is known.
  int numa_node = -1;
};

/// How far a pull is. Any thread may read, and may cancel.
struct PullProgress {
  std::atomic<uint64_t> bytes{0};  ///< copies of so many bytes of the files are queued
  std::atomic<uint64_t> total{0};
  std::atomic<bool> cancel{false};
};

struct PullReport {
  uint64_t bytes = 0;         ///< of the files
  uint64_t device_bytes = 0;  ///< that crossed the bus
  double seconds = 0;         ///< until all of it was on the device
  double waited_seconds = 0;  ///< of these, for bytes to land, by the thread that waited longest
  int threads = 0;
  double gb_per_s() const { return seconds > 0 ? 1e-9 * static_cast<double>(bytes) / seconds : 0; }
};
/// {"bytes", "device_bytes", "seconds", "gb_per_s", "waited_seconds", "threads"}
Json ToJson(const PullReport& report);

/// What is not there yet: a pull asks before it reads. Called by all copy threads.
class Arrival {
 public:
  virtual ~Arrival() = default;
  /// True once bytes [from, from + bytes) of a mapped file are there, false after `timeout`. Throws
  /// Error when they will never come.
  virtual bool Wait(const char* from, uint64_t bytes, std::chrono::milliseconds timeout) = 0;
};

/// Copy threads and their pinned buffers, which are made by the first pull and kept for the next.
/// One thread at a time.
class Puller {
 public:
  explicit Puller(PullOptions options);
  ~Puller();
  Puller(const Puller&) = delete;
  Puller& operator=(const Puller&) = delete;

  /// Copies all transfers, in their order as far as several threads keep one, and waits until they
  /// are on the device. Nothing may use that memory meanwhile. `arrival` may be null: everything is
  /// there; `progress` too.
  ///
  /// Throws what went wrong first: DeviceError, Error(kInput) for a value that the device's type
  /// cannot hold, what `arrival` throws, Error(kInfrastructure) when cancelled. By then all threads
  /// have ended, nothing is queued any more, and an error that is not sticky is cleared: the memory
  /// and this object can be used for another try.
  PullReport Run(const std::vector<DeviceWeights::Transfer>& transfers, Arrival* arrival = nullptr,
                 PullProgress* progress = nullptr);

  const PullOptions& options() const { return options_; }

 private:
  struct Lane;
  class Work;

  PullOptions options_;
  std::vector<int> cpus_;  ///< where copy threads may be
  std::vector<std::unique_ptr<Lane>> lanes_;
};

/// One pull, for those who need no second one.
PullReport Pull(const DeviceWeights& weights, const PullOptions& options = {});

}  // namespace evald::native::cuda
