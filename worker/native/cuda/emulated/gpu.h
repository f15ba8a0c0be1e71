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

/// One emulated GPU: how much of its memory is taken, and what has failed. Any thread may call.
class Gpu {
 public:
  Gpu(int index, uint64_t bytes) : index_(index), bytes_(bytes) {}

  int index() const { return index_; }
  std::string uuid() const;
  uint64_t bytes() const { return bytes_; }
  uint64_t free() const;

  /// Every call to the runtime begins with this. Throws the failure ordered for this call, or an
  /// earlier one that is sticky.
  void Call();
  /// Throws DeviceError(kOutOfMemory) if a test ordered that, or if there is no space.
  void Take(uint64_t bytes);
  void GiveBack(uint64_t bytes);

  /// Records that a queued operation failed. The next call that waits throws `error`, once.
  void Fail(std::exception_ptr error);
  void Rethrow();
  void Forget();  ///< drops such an error
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

/// The GPUs of EVALD_EMULATED_GPUS=count[:bytes]; without it, one of 1 GiB.
const std::vector<std::unique_ptr<Gpu>>& Gpus();
/// The calling thread's GPU. Throws DeviceError if there are no GPUs.
Gpu& CurrentGpu();
void SetCurrentGpu(int index);

/// All memory that the runtime gave out, to find copies that reach past it or come after its end.
class Allocations {
 public:
  struct Allocation {
    size_t bytes = 0;
    MemoryKind kind = MemoryKind::kDevice;
    Gpu* gpu = nullptr;
  };

  char* New(MemoryKind kind, size_t bytes, Gpu* gpu);
  /// Ends the program if bytes behind the memory were overwritten.
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
