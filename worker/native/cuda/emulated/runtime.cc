// The runtime seam on the CPU. Streams are queues that run late: only when someone waits, or when
// they are long. Code that forgets to wait therefore finds old content, every time.
#include "worker/native/cuda/runtime.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "worker/native/cuda/emulated/device.h"
#include "worker/native/cuda/emulated/gpu.h"

namespace evald::native::cuda {

using emulated::AllAllocations;
using emulated::CurrentGpu;
using emulated::Gpu;
using emulated::Gpus;

namespace {

using Work = std::function<void()>;
using Clock = std::chrono::steady_clock;

constexpr size_t kQueueMax = 64;  // operations that may be late
constexpr int kRunPerQuery = 4;   // so that repeated queries of an event come to an end

// A recorded place in a stream.
struct Point {
  std::atomic<bool> done = false;
  Clock::time_point time;
};

struct Queue {
  explicit Queue(Gpu* gpu) : gpu(gpu) {}

  // Runs queued operations, in order, until `enough`.
  template <typename Enough>
  void Run(const Enough& enough) {
    std::lock_guard running(run_mutex);
    while (!enough()) {
      Work work;
      {
        std::lock_guard lock(mutex);
        if (queued.empty()) return;
        work = std::move(queued.front());
        queued.pop_front();
      }
      if (gpu->broken()) continue;
      try {
        work();
      } catch (...) {
        gpu->Fail(std::current_exception());
      }
    }
  }
  void RunAll() {
    Run([] { return false; });
  }
  void RunUntil(const Point& point) {
    Run([&] { return point.done.load(); });
  }
  size_t size() {
    std::lock_guard lock(mutex);
    return queued.size();
  }

  Gpu* const gpu;
  std::mutex mutex;
  std::deque<Work> queued;
  std::mutex run_mutex;  // held while the queue runs; waits between streams have no cycles
  bool capturing = false;
  std::vector<Work> captured;
};

struct EventState {
  std::shared_ptr<Queue> queue;
  std::shared_ptr<Point> point;
};

thread_local int captures = 0;  // of the calling thread

using GraphState = std::shared_ptr<const std::vector<Work>>;

std::shared_ptr<Queue>& Of(const Stream& stream) {
  return *static_cast<std::shared_ptr<Queue>*>(stream.handle());
}
EventState& Of(const Event& event) { return *static_cast<EventState*>(event.handle()); }

void RefuseInCapture(const char* what) {
  if (captures == 0) return;
  throw DeviceError(DeviceFault::kOther, fmt::format("{} within a capture (emulated)", what));
}

void Queued(const Stream& stream, Work work) {
  Queue& queue = *Of(stream);
  queue.gpu->Call();
  if (queue.capturing) {
    queue.captured.push_back(std::move(work));
    return;
  }
  {
    std::lock_guard lock(queue.mutex);
    queue.queued.push_back(std::move(work));
  }
  if (queue.size() > kQueueMax) queue.Run([&] { return queue.size() <= kQueueMax; });
}

bool Pinned(const void* data, size_t bytes) {
  return AllAllocations().Within(MemoryKind::kPinned, data, bytes);
}

}  // namespace

namespace emulated {

void Enqueue(const Stream& stream, std::function<void()> work) { Queued(stream, std::move(work)); }

}  // namespace emulated

std::vector<GpuInfo> ListGpus() {
  std::vector<GpuInfo> gpus;
  for (const auto& gpu : Gpus()) {
    GpuInfo info;
    info.uuid = gpu->uuid();
    info.name = "Emulated GPU";
    info.memory_bytes = gpu->bytes();
    info.numa_node = std::filesystem::exists("/sys/devices/system/node/node0") ? 0 : -1;
    info.major = 8;
    info.minor = 0;
    gpus.push_back(std::move(info));
  }
  return gpus;
}

std::string RuntimeVersions() { return "emulated on the CPU"; }

void UseGpu(const std::string& uuid) {
  std::string visible;
  for (const auto& gpu : Gpus()) {
    if (gpu->uuid() == uuid) {
      gpu->Call();
      return emulated::SetCurrentGpu(gpu->index());
    }
    visible += (visible.empty() ? "" : ", ") + gpu->uuid();
  }
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("found no GPU {}, expected one of {}", uuid,
                          visible.empty() ? "none that is visible" : visible));
}

DeviceMemory MemoryOfDevice() {
  Gpu& gpu = CurrentGpu();
  gpu.Call();
  DeviceMemory memory;
  memory.free = gpu.free();
  memory.total = gpu.bytes();
  return memory;
}

uint64_t CacheBytesOfDevice() {
  CurrentGpu().Call();
  return 4096;
}

void ClearError() {
  if (!Gpus().empty()) CurrentGpu().Forget();
}

Stream::Stream() {
  Gpu& gpu = CurrentGpu();
  gpu.Call();
  handle_ = new std::shared_ptr<Queue>(std::make_shared<Queue>(&gpu));
}

// Queued operations still run.
Stream::~Stream() {
  auto* queue = &Of(*this);
  (*queue)->RunAll();
  delete queue;
}

void Stream::Synchronize() {
  Queue& queue = *Of(*this);
  RefuseInCapture("waiting for a stream");
  queue.gpu->Call();
  queue.RunAll();
  queue.gpu->Rethrow();
}

void Stream::Wait(const Event& event) {
  const EventState state = Of(event);
  if (state.point == nullptr) return;
  Queued(*this, [state] {
    if (!state.point->done) state.queue->RunUntil(*state.point);
  });
}

Event::Event(bool) {
  CurrentGpu().Call();
  handle_ = new EventState();
}

Event::~Event() { delete &Of(*this); }

void Event::Record(const Stream& stream) {
  RefuseInCapture("recording an event");
  auto point = std::make_shared<Point>();
  Of(*this) = {Of(stream), point};
  Queued(stream, [point] {
    point->time = Clock::now();
    point->done = true;
  });
}

bool Event::Done() const {
  const EventState& state = Of(*this);
  if (state.point == nullptr || state.point->done) return true;
  state.queue->gpu->Call();
  int left = kRunPerQuery;
  state.queue->Run([&] { return left-- == 0; });
  state.queue->gpu->Rethrow();
  return state.point->done;
}

void Event::Synchronize() const {
  const EventState& state = Of(*this);
  if (state.point == nullptr) return;
  RefuseInCapture("waiting for an event");
  state.queue->gpu->Call();
  state.queue->RunUntil(*state.point);
  state.queue->gpu->Rethrow();
}

double SecondsBetween(const Event& begin, const Event& end) {
  const auto& first = Of(begin).point;
  const auto& last = Of(end).point;
  if (first == nullptr || last == nullptr || !first->done || !last->done) {
    throw DeviceError(DeviceFault::kOther, "a time between events that have not run (emulated)");
  }
  return std::chrono::duration<double>(last->time - first->time).count();
}

Memory::Memory(MemoryKind kind, size_t bytes) : kind_(kind), bytes_(bytes) {
  if (bytes == 0) return;
  RefuseInCapture("taking memory");
  Gpu& gpu = CurrentGpu();
  gpu.Call();
  data_ = AllAllocations().New(kind, bytes, &gpu);
}

Memory::~Memory() {
  if (data_ != nullptr) AllAllocations().Delete(data_);
}

// Pageable memory is read at once, as CUDA does.
void CopyToDevice(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  AllAllocations().CheckDevice(to, bytes, "copying to the device");
  if (Pinned(from, bytes)) {
    Queued(stream, [=] {
      AllAllocations().CheckDevice(to, bytes, "copying to device memory that is gone");
      std::memcpy(to, from, bytes);
    });
    return;
  }
  RefuseInCapture("copying from pageable memory");
  const auto held = std::make_shared<std::string>(static_cast<const char*>(from), bytes);
  Queued(stream, [=] {
    AllAllocations().CheckDevice(to, bytes, "copying to device memory that is gone");
    std::memcpy(to, held->data(), bytes);
  });
}

void CopyToHost(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  AllAllocations().CheckDevice(from, bytes, "copying from the device");
  Queued(stream, [=] {
    AllAllocations().CheckDevice(from, bytes, "copying from device memory that is gone");
    std::memcpy(to, from, bytes);
  });
  if (Pinned(to, bytes)) return;
  RefuseInCapture("copying to pageable memory");
  Of(stream)->RunAll();
  Of(stream)->gpu->Rethrow();
}

void CopyOnDevice(void* to, const void* from, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  AllAllocations().CheckDevice(to, bytes, "copying on the device");
  AllAllocations().CheckDevice(from, bytes, "copying on the device");
  Queued(stream, [=] { std::memmove(to, from, bytes); });
}

void FillBytes(void* to, int byte, size_t bytes, const Stream& stream) {
  if (bytes == 0) return;
  AllAllocations().CheckDevice(to, bytes, "filling memory");
  Queued(stream, [=] { std::memset(to, byte, bytes); });
}

Graph::~Graph() { delete static_cast<GraphState*>(handle_); }

void Graph::BeginCapture(const Stream& stream) {
  RefuseInCapture("a capture");
  Queue& queue = *Of(stream);
  queue.gpu->Call();
  queue.capturing = true;
  queue.captured.clear();
  ++captures;
}

Graph Graph::EndCapture(const Stream& stream) {
  Queue& queue = *Of(stream);
  if (!queue.capturing) {
    throw DeviceError(DeviceFault::kOther, "no capture was begun (emulated)");
  }
  queue.capturing = false;
  --captures;
  queue.gpu->Call();
  Graph graph;
  graph.handle_ =
      new GraphState(std::make_shared<const std::vector<Work>>(std::move(queue.captured)));
  queue.captured.clear();
  return graph;
}

void Graph::AbandonCapture(const Stream& stream) noexcept {
  Queue& queue = *Of(stream);
  if (!queue.capturing) return;
  queue.capturing = false;
  --captures;
  queue.captured.clear();
}

void Graph::Launch(const Stream& stream) const {
  const GraphState works = *static_cast<const GraphState*>(handle_);
  Queued(stream, [works] {
    for (const Work& work : *works) work();
  });
}

}  // namespace evald::native::cuda
