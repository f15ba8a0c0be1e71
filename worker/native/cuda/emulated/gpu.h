#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "worker/native/cuda/emulated/faults.h"
#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda::emulated {

/// One emulated GPU: how much of its memory is taken, and what has failed. Any thread.
class Gpu {
 public:
  Gpu(int index, uint64_t bytes) : index_(index), bytes_(bytes) {}

  int index() const { return index_; }
  std::string uuid() const;
  uint64_t bytes() const { return bytes_; }
  uint64_t free() const;

  /// Every call to the runtime begins with this. Throws what was ordered for it, and what came
  /// before it and sticks.
  void Call();
  /// Throws DeviceError(kOutOfMemory) where that is ordered or there is no room.
  void Take(uint64_t bytes);
  void GiveBack(uint64_t bytes);

  /// What was queued failed: whoever waits next is told, once.
  void Fail(std::exception_ptr error);
  void Rethrow();
  void Forget();  ///< such an error
  bool broken() const;

  void Order(std::vector<OrderedFault> faults);
  int64_t calls() const { return calls_.load(); }

 private:
  [[noreturn]] void Throw(DeviceFault fault) const;

  const int index_;
  const uint64_t bytes_;
  mutable std::mutex mutex_;
  uint64_t taken_ = 0;
  std::atomic<int64_t> calls_ = 0;
  std::vector<OrderedFault> ordered_;
  std::optional<DeviceFault> broken_;
  std::exception_ptr error_;
};

/// As EVALD_EMULATED_GPUS=count[:bytes] says; one of 1 GiB without.
const std::vector<std::unique_ptr<Gpu>>& Gpus();
/// Of the calling thread. Throws DeviceError when there are none.
Gpu& CurrentGpu();
void SetCurrentGpu(int index);

/// All memory that the runtime gave out, so that a copy past its end or after its end is found.
class Allocations {
 public:
  struct Allocation {
    size_t bytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    Gpu* gpu = nullptr;
  };

  char* New(MemoryKind kind, size_t bytes, Gpu* gpu);
  /// Ends the program where something wrote behind the memory.
  void Delete(char* data);
  bool Within(MemoryKind kind, const void* data, size_t bytes) const;
  /// Throws DeviceError(kOther) unless the bytes lie in device memory.
  void CheckDevice(const void* data, size_t bytes, const char* doing) const;

 private:
  mutable std::mutex mutex_;
  std::map<const char*, Allocation> all_;
};
Allocations& AllAllocations();

}  // namespace evald::native::cuda::emulated
