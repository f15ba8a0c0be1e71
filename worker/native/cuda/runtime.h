#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evald/error.h"

/// The functions that evald needs of a GPU's runtime, behind one seam: runtime_cuda.cc is CUDA,
/// emulated/ runs the same kernels on the CPU, for tests. A program links one of them. Every call
/// is checked; a failed call throws DeviceError. Handles belong to the device that was current when
/// they were made.
namespace evald::native::cuda {

struct GpuInfo {
  std::string uuid;  ///< "GPU-8f6d…", as nvidia-smi writes it
  std::string name;
  uint64_t memory_bytes = 0;
  int numa_node = -1;  ///< -1: unknown
  int major = 0;       ///< compute capability
  int minor = 0;
};

/// The visible GPUs, in the runtime's order; none if there is no driver. Does not throw.
std::vector<GpuInfo> ListGpus();
/// Versions of driver and runtime, for results: "driver 13.0, runtime 13.0".
std::string RuntimeVersions();
/// Makes the GPU of this UUID current for the calling thread. If no visible GPU has it, throws
/// Error(kInfrastructure), which names the visible ones.
void UseGpu(const std::string& uuid);
/// The current device's memory.
struct DeviceMemory {
  uint64_t free = 0;
  uint64_t total = 0;
};
DeviceMemory MemoryOfDevice();
/// Bytes of the current device's last cache before its memory.
uint64_t CacheBytesOfDevice();

enum class DeviceFault {
  kOutOfMemory,  ///< the device works on
  kLost,         ///< the device fell off the bus, or was reset
  kMemory,       ///< an uncorrectable ECC error
  kKernel,       ///< a kernel failed: the context is unusable
  kOther,
};

/// A call to the device that failed. After kLost, kMemory and kKernel the process must end: the
/// context stays broken ("sticky"). After the other kinds the caller may try again.
class DeviceError : public Error {
 public:
  DeviceError(DeviceFault fault, std::string message);
  DeviceFault fault() const { return fault_; }
  bool sticky() const {
    return fault_ != DeviceFault::kOutOfMemory && fault_ != DeviceFault::kOther;
  }

 private:
  DeviceFault fault_;
};

/// Clears an error that is not sticky, so that no later call is blamed for it.
void ClearError();

class Event;

/// A queue of copies and kernels, in order.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void Synchronize();
  /// Operations queued from now on run after the point that `event` recorded.
  void Wait(const Event& event);
  void* handle() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

/// A point in a stream.
class Event {
 public:
  explicit Event(bool timed = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void Record(const Stream& stream);
  bool Done() const;  ///< everything before the last Record has run; true before the first Record
  void Synchronize() const;
  void* handle() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

/// The time between two timed events that have run.
double SecondsBetween(const Event& begin, const Event& end);

/// Memory of the device, or (kPinned) page-locked memory of the host, on the calling thread's NUMA
/// node.
enum class MemoryKind { kDevice, kPinned };
class Memory {
 public:
  Memory() = default;
  /// Throws DeviceError(kOutOfMemory).
  Memory(MemoryKind kind, size_t bytes);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  char* data() const { return data_; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  size_t bytes() const { return bytes_; }

 private:
  MemoryKind kind_ = MemoryKind::kDevice;
  char* data_ = nullptr;
  size_t bytes_ = 0;
};

/// Copies are asynchronous if the host's memory is pinned; it must then stay unchanged until the
/// copy has run.
void CopyToDevice(void* to, const void* from, size_t bytes, const Stream& stream);
void CopyToHost(void* to, const void* from, size_t bytes, const Stream& stream);
void CopyOnDevice(void* to, const void* from, size_t bytes, const Stream& stream);
void FillBytes(void* to, int byte, size_t bytes, const Stream& stream);

/// The operations that were recorded on one stream between BeginCapture and EndCapture. They can be
/// queued again by one call.
class Graph {
 public:
  Graph() = default;
  Graph(Graph&& other) noexcept;
  Graph& operator=(Graph&& other) noexcept;
  ~Graph();

  /// From now on operations are recorded, not queued, until EndCapture. Other threads may use other
  /// streams meanwhile.
  static void BeginCapture(const Stream& stream);
  static Graph EndCapture(const Stream& stream);
  /// Ends a capture that failed and drops it.
  static void AbandonCapture(const Stream& stream) noexcept;
  void Launch(const Stream& stream) const;
  bool empty() const { return handle_ == nullptr; }

 private:
  void* handle_ = nullptr;
};

}  // namespace evald::native::cuda
