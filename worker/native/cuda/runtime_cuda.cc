// The runtime seam on CUDA.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <utility>

#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {
namespace {

DeviceFault FaultOf(cudaError_t error) {
  switch (error) {
    case cudaErrorMemoryAllocation:
      return DeviceFault::kOutOfMemory;
    case cudaErrorECCUncorrectable:
      return DeviceFault::kMemory;
    case cudaErrorDevicesUnavailable:
    case cudaErrorDeviceUninitialized:
    case cudaErrorNoDevice:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorSystemNotReady:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case cudaErrorUnknown:  // most often the answer of a device that fell off the bus
      return DeviceFault::kLost;
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
#if CUDART_VERSION >= 13000
    case cudaErrorTensorMemoryLeak:
    case cudaErrorContained:
#endif
      return DeviceFault::kKernel;
    default:
      return DeviceFault::kOther;
  }
}

// `doing`: the operation, for the message.
void Check(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return;
  const DeviceFault fault = FaultOf(error);
  cudaGetLastError();  // clears an error that is not sticky, so that no later call is blamed for it
  throw DeviceError(fault, fmt::format("GPU: {}: {} ({})", doing, cudaGetErrorString(error),
                                       cudaGetErrorName(error)));
}

cudaStream_t Of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
cudaEvent_t Of(const Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

std::string UuidText(const cudaUUID_t& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += fmt::format("{:02x}", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

// Asks the kernel which memory is near a PCI device.
int NumaNodeOf(int index) {
  char bus_id[32] = {};
  if (cudaDeviceGetPCIBusId(bus_id, sizeof bus_id, index) != cudaSuccess) {
    cudaGetLastError();
    return -1;
  }
  std::string name = bus_id;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::ifstream file(std::filesystem::path("/sys/bus/pci/devices") / name / "numa_node");
  int node = -1;
  return file >> node ? node : -1;
}

}  // namespace

std::vector<GpuInfo> ListGpus() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();
    return {};
  }
  std::vector<GpuInfo> gpus;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    GpuInfo gpu;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) {
      cudaGetLastError();
      continue;
    }
    gpu.uuid = UuidText(properties.uuid);
    gpu.name = properties.name;
    gpu.memory_bytes = properties.totalGlobalMem;
    gpu.numa_node = NumaNodeOf(i);
    gpu.major = properties.major;
    gpu.minor = properties.minor;
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string RuntimeVersions() {
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  const auto text = [](int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  };
  return fmt::format("driver {}, runtime {}", text(driver), text(runtime));
}

void UseGpu(const std::string& uuid) {
  int count = 0;
  Check(cudaGetDeviceCount(&count), "counting devices");
  std::string visible;
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    Check(cudaGetDeviceProperties(&properties, i), "reading a device's properties");
    const std::string found = UuidText(properties.uuid);
    if (found == uuid) return Check(cudaSetDevice(i), "using the device");
    visible += (visible.empty() ? "" : ", ") + found;
  }
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("found no GPU {}, expected one of {}", uuid,
                          visible.empty() ? "none that is visible" : visible),
              "see CUDA_VISIBLE_DEVICES and nvidia-smi -L");
}

DeviceMemory MemoryOfDevice() {
  DeviceMemory memory;
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "asking for free memory");
  memory.free = free;
  memory.total = total;
  return memory;
}

uint64_t CacheBytesOfDevice() {
  int device = 0, bytes = 0;
  Check(cudaGetDevice(&device), "asking for the current device");
  Check(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, device), "asking for the cache");
  return static_cast<uint64_t>(bytes);
}

void ClearError() { cudaGetLastError(); }

Stream::Stream() {
  cudaStream_t stream = nullptr;
  Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  handle_ = stream;
}

Stream::~Stream() { cudaStreamDestroy(static_cast<cudaStream_t>(handle_)); }

void Stream::Synchronize() { Check(cudaStreamSynchronize(Of(*this)), "waiting for a stream"); }

void Stream::Wait(const Event& event) {
  Check(cudaStreamWaitEvent(Of(*this), Of(event), 0), "waiting for an event");
}

Event::Event(bool timed) {
  cudaEvent_t event = nullptr;
  Check(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
        "making an event");
  handle_ = event;
}

Event::~Event() { cudaEventDestroy(static_cast<cudaEvent_t>(handle_)); }

void Event::Record(const Stream& stream) {
  Check(cudaEventRecord(Of(*this), Of(stream)), "recording an event");
}

bool Event::Done() const {
  const cudaError_t error = cudaEventQuery(Of(*this));
  if (error == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  Check(error, "asking for an event");
  return true;
}

void Event::Synchronize() const { Check(cudaEventSynchronize(Of(*this)), "waiting for an event"); }

double SecondsBetween(const Event& begin, const Event& end) {
  float milliseconds = 0;
  Check(cudaEventElapsedTime(&milliseconds, Of(begin), Of(end)), "reading a time");
  return static_cast<double>(milliseconds) / 1000;
}

Memory::Memory(MemoryKind kind, size_t bytes) : kind_(kind), bytes_(bytes) {
  if (bytes == 0) return;
  void* data = nullptr;
  const cudaError_t error = kind == MemoryKind::kDevice
                                ? cudaMalloc(&data, bytes)
                                : cudaHostAlloc(&data, bytes, cudaHostAllocPortable);
  Check(error, fmt::format("taking {} bytes of {} memory", bytes,
                           kind == MemoryKind::kDevice ? "device" : "pinned")
                   .c_str());
  data_ = static_cast<char*>(data);
}

// A failure here means a broken context, which the next call reports.
Memory::~Memory() {
  if (data_ == nullptr) return;
  if ((kind_ == MemoryKind::kDevice ? cudaFree(data_) : cudaFreeHost(data_)) != cudaSuccess) {
    cudaGetLastError();
  }
}

void CopyToDevice(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, Of(stream)),
        "copying to the device");
}

void CopyToHost(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, Of(stream)),
        "copying from the device");
}

void CopyOnDevice(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, Of(stream)),
        "copying on the device");
}

void FillBytes(void* to, int byte, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  Check(cudaMemsetAsync(to, byte, bytes, Of(stream)), "filling memory");
}

Graph::~Graph() {
  if (handle_ != nullptr) cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(handle_));
}

void Graph::BeginCapture(const Stream& stream) {
  Check(cudaStreamBeginCapture(Of(stream), cudaStreamCaptureModeThreadLocal),
        "beginning a capture");
}

Graph Graph::EndCapture(const Stream& stream) {
  cudaGraph_t graph = nullptr;
  Check(cudaStreamEndCapture(Of(stream), &graph), "ending a capture");
  cudaGraphExec_t executable = nullptr;
  const cudaError_t error = cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphDestroy(graph);
  Check(error, "making a graph");
  Graph result;
  result.handle_ = executable;
  return result;
}

void Graph::AbandonCapture(const Stream& stream) noexcept {
  cudaGraph_t graph = nullptr;
  if (cudaStreamEndCapture(Of(stream), &graph) == cudaSuccess && graph != nullptr) {
    cudaGraphDestroy(graph);
  }
  cudaGetLastError();
}

void Graph::Launch(const Stream& stream) const {
  Check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(handle_), Of(stream)), "launching a graph");
}

}  // namespace evald::native::cuda
