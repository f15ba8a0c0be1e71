#include "worker/native/cuda/emulated/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>

#include "worker/native/cuda/emulated/fiber.h"

namespace evald::native::cuda::emulated {
namespace {

// The limits of a block on every GPU from sm_80 on.
constexpr size_t kSharedBytesMax = size_t{163} << 10;
constexpr unsigned kThreadsMax = 1024;
constexpr unsigned kWarp = 32;
constexpr size_t kCanaryBytes = 1024;  // behind the shared memory; must stay unchanged
constexpr int kPoison = 0xFF;          // NaN in every type of number

std::string Text(const dim3& d) { return fmt::format("{} {} {}", d.x, d.y, d.z); }

std::string Text(const Waiting& waiting) {
  if (waiting.operation == nullptr) return "runs";
  const std::string file = waiting.place.file_name();
  return fmt::format("waits at {} ({}:{})", waiting.operation,
                     file.substr(file.find_last_of('/') + 1), waiting.place.line());
}

// One host thread's blocks and fibers, kept from launch to launch.
class Processor {
 public:
  void RunGrid(const char* kernel, dim3 grid, dim3 block, size_t shared_bytes,
               const std::function<void()>& body);

  [[noreturn]] void Fail(const std::string& what) const {
    throw DeviceError(DeviceFault::kKernel,
                      fmt::format("kernel {}, block {}, thread {}: {}", kernel_,
                                  Text(current->block), current->number, what));
  }
  char* shared() { return Room(); }
  void CheckAccess(const void* p, size_t bytes, Place place) const;
  void WaitForBlock(Place place);
  void WaitForLanes(const Waiting& waiting,
                    void (*complete)(const Arguments& arguments, uint32_t mask));

 private:
  struct Runner {  // threads that do not wait run on the same runner, one after the other
    Processor* processor = nullptr;
    Fiber fiber;
  };

  char* Room() {
    return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(shared_.data()) + 127) &
                                   ~uintptr_t{127});
  }
  void CheckLaunch(dim3 grid, dim3 block) const;
  void RunBlock();
  void RunThreads();
  void Go(Runner* runner);
  void Wait();
  [[noreturn]] void FailStuck() const;
  std::string Missing(const Thread& waiting) const;
  bool AllHere(const Waiting& waiting, unsigned first) const;
  static bool Meets(const Thread& thread, const Waiting& waiting);

  const char* kernel_ = "";
  const std::function<void()>* body_ = nullptr;
  size_t shared_bytes_ = 0;
  std::vector<char> shared_;
  std::vector<Thread> threads_;
  std::vector<Runner*> runner_of_;  // the runner of a waiting thread
  std::deque<unsigned> ready_;      // threads that need not wait any longer
  unsigned next_ = 0;               // the first thread that has not begun
  unsigned ended_ = 0;
  unsigned at_barrier_ = 0;
  std::exception_ptr error_;
  Runner* running_ = nullptr;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<Runner*> idle_;
};

Processor& ThisProcessor() {
  thread_local Processor processor;
  return processor;
}

void Processor::CheckLaunch(dim3 grid, dim3 block) const {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  if (threads == 0 || threads > kThreadsMax || block.z > 64 || grid.x == 0 || grid.x > 0x7FFFFFFF ||
      grid.y == 0 || grid.y > 65535 || grid.z == 0 || grid.z > 65535) {
    throw DeviceError(DeviceFault::kOther,
                      fmt::format("kernel {}: a grid of {} blocks of {} threads", kernel_,
                                  Text(grid), Text(block)));
  }
  if (shared_bytes_ > kSharedBytesMax) {
    throw DeviceError(DeviceFault::kOther,
                      fmt::format("kernel {}: {} bytes of shared memory, {} is the most", kernel_,
                                  shared_bytes_, kSharedBytesMax));
  }
}

void Processor::RunGrid(const char* kernel, dim3 grid, dim3 block, size_t shared_bytes,
                        const std::function<void()>& body) {
  kernel_ = kernel;
  body_ = &body;
  shared_bytes_ = shared_bytes;
  CheckLaunch(grid, block);
  shared_.resize(kSharedBytesMax + 2 * kCanaryBytes);
  threads_.assign(block.x * block.y * block.z, Thread());
  unsigned number = 0;
  for (unsigned z = 0; z < block.z; ++z) {
    for (unsigned y = 0; y < block.y; ++y) {
      for (unsigned x = 0; x < block.x; ++x, ++number) {
        Thread& thread = threads_[number];
        thread.index = {x, y, z};
        thread.block_size = block;
        thread.grid_size = grid;
        thread.number = number;
      }
    }
  }
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        for (Thread& thread : threads_) thread.block = {x, y, z};
        RunBlock();
      }
    }
  }
}

void Processor::RunBlock() {
  if (shared_bytes_ > 0) std::memset(Room(), kPoison, shared_bytes_ + kCanaryBytes);
  for (Thread& thread : threads_) {
    thread.ended = false;
    thread.waiting = Waiting();
    thread.copies.clear();
    thread.copy_groups = 0;
  }
  runner_of_.assign(threads_.size(), nullptr);
  ready_.clear();
  next_ = ended_ = at_barrier_ = 0;
  error_ = nullptr;
  idle_.clear();
  for (const auto& runner : runners_) idle_.push_back(runner.get());
  RunThreads();
  current = nullptr;
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
  const char* end = Room() + shared_bytes_;
  if (shared_bytes_ > 0 && !std::all_of(end, end + kCanaryBytes,
                                        [](char c) { return c == static_cast<char>(kPoison); })) {
    current = &threads_[0];
    Fail(fmt::format("wrote beyond the {} bytes of its shared memory", shared_bytes_));
  }
}

void Processor::RunThreads() {
  while (ended_ < threads_.size() && error_ == nullptr) {
    if (!ready_.empty()) {
      current = &threads_[ready_.front()];
      ready_.pop_front();
      Go(runner_of_[current->number]);
    } else if (next_ < threads_.size()) {
      if (idle_.empty()) {
        runners_.push_back(std::make_unique<Runner>());
        runners_.back()->processor = this;
        idle_.push_back(runners_.back().get());
      }
      Runner* runner = idle_.back();
      idle_.pop_back();
      runner->fiber.Start(
          [](void* p) {
            Processor* self = static_cast<Runner*>(p)->processor;
            try {
              while (self->next_ < self->threads_.size()) {
                current = &self->threads_[self->next_++];
                (*self->body_)();
                current->ended = true;
                ++self->ended_;
              }
            } catch (...) {
              self->error_ = std::current_exception();
            }
            self->idle_.push_back(static_cast<Runner*>(p));
          },
          runner);
      Go(runner);
    } else {
      try {
        FailStuck();
      } catch (...) {
        error_ = std::current_exception();
      }
    }
  }
}

void Processor::Go(Runner* runner) {
  running_ = runner;
  runner->fiber.Resume();
}

// Returns once another thread has made this one ready.
void Processor::Wait() {
  Thread* self = current;
  runner_of_[self->number] = running_;
  running_->fiber.Suspend();
}

bool Processor::Meets(const Thread& thread, const Waiting& waiting) {
  const Waiting& other = thread.waiting;
  if (other.operation == nullptr || other.kind != waiting.kind || other.mask != waiting.mask) {
    return false;
  }
  if (waiting.mask == 0) return true;
  const char *a = other.place.file_name(), *b = waiting.place.file_name();
  return other.place.line() == waiting.place.line() &&
         other.place.column() == waiting.place.column() && (a == b || std::strcmp(a, b) == 0);
}

void Processor::WaitForBlock(Place place) {
  Waiting waiting;
  waiting.operation = "__syncthreads";
  waiting.place = place;
  current->waiting = waiting;
  if (++at_barrier_ < threads_.size()) return Wait();
  at_barrier_ = 0;
  for (Thread& thread : threads_) {
    thread.waiting = Waiting();
    if (&thread != current) ready_.push_back(thread.number);
  }
}

// Whether all lanes of the warp whose first thread is `first` wait where `waiting` does.
bool Processor::AllHere(const Waiting& waiting, unsigned first) const {
  for (unsigned lane = kWarp; lane-- > 0;) {  // most often a late lane is missing
    if ((waiting.mask >> lane & 1) == 0) continue;
    if (first + lane >= threads_.size() || !Meets(threads_[first + lane], waiting)) return false;
  }
  return true;
}

void Processor::WaitForLanes(const Waiting& waiting,
                             void (*complete)(const Arguments& arguments, uint32_t mask)) {
  const unsigned first = current->number / kWarp * kWarp;
  if ((waiting.mask >> (current->number - first) & 1) == 0) {
    Fail(fmt::format("{} with a mask {:#x} that leaves the calling lane out", waiting.operation,
                     waiting.mask));
  }
  current->waiting = waiting;
  if (!AllHere(waiting, first)) return Wait();
  Arguments arguments{};
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((waiting.mask >> lane & 1) != 0) {
      arguments[lane] = threads_[first + lane].waiting.argument;
    }
  }
  complete(arguments, waiting.mask);
  // A warp goes on as far as it can before others do: a missing barrier shows.
  for (unsigned lane = kWarp; lane-- > 0;) {
    if ((waiting.mask >> lane & 1) == 0) continue;
    Thread& thread = threads_[first + lane];
    thread.waiting = Waiting();
    if (&thread != current) ready_.push_front(thread.number);
  }
}

// Names a thread that is not where `waiting` waits.
std::string Processor::Missing(const Thread& waiting) const {
  const bool block = waiting.waiting.mask == 0;
  const unsigned first = block ? 0 : waiting.number / kWarp * kWarp;
  const unsigned end = block ? static_cast<unsigned>(threads_.size()) : first + kWarp;
  for (unsigned n = first; n < end; ++n) {
    if (!block && (waiting.waiting.mask >> (n - first) & 1) == 0) continue;
    if (n >= threads_.size()) return fmt::format("thread {} does not exist", n);
    if (threads_[n].ended) return fmt::format("thread {} has ended", n);
    if (!Meets(threads_[n], waiting.waiting)) {
      return fmt::format("thread {} {}", n, Text(threads_[n].waiting));
    }
  }
  return "nobody is missing";
}

void Processor::FailStuck() const {
  const auto waiting = std::find_if(threads_.begin(), threads_.end(), [](const Thread& thread) {
    return thread.waiting.operation != nullptr;
  });
  current = const_cast<Thread*>(&*waiting);
  Fail(fmt::format("{}, but {}", Text(waiting->waiting), Missing(*waiting)));
}

void Processor::CheckAccess(const void* p, size_t bytes, Place place) const {
  const auto* c = static_cast<const char*>(p);
  const bool inside = c + bytes > shared_.data() && c < shared_.data() + shared_.size();
  const char* begin = const_cast<Processor*>(this)->Room();
  if (inside && (c < begin || c + bytes > begin + shared_bytes_)) {
    Fail(fmt::format("touches {} bytes at {} of {} bytes of shared memory (line {})", bytes,
                     c - begin, shared_bytes_, place.line()));
  }
  if (reinterpret_cast<uintptr_t>(p) % bytes != 0) {
    Fail(fmt::format("touches {} bytes that are not aligned (line {})", bytes, place.line()));
  }
}

}  // namespace

constinit thread_local Thread* current = nullptr;

void RunGrid(const char* kernel, dim3 grid, dim3 block, size_t shared_bytes,
             const std::function<void()>& body) {
  ThisProcessor().RunGrid(kernel, grid, block, shared_bytes, body);
}

void Fail(const std::string& what) { ThisProcessor().Fail(what); }

char* DynamicShared() { return ThisProcessor().shared(); }

void CheckAccess(const void* p, size_t bytes, Place place) {
  ThisProcessor().CheckAccess(p, bytes, place);
}

void WaitForBlock(Place place) { ThisProcessor().WaitForBlock(place); }

void WaitForLanes(const char* operation, uint32_t mask, void* argument,
                  void (*complete)(const Arguments& arguments, uint32_t mask), Place place) {
  ThisProcessor().WaitForLanes(
      {operation, place, mask, argument, reinterpret_cast<const void*>(complete)}, complete);
}

void CopyAsync(void* to, const void* from, Place place) {
  CheckAccess(to, 16, place);
  AsyncCopy copy;
  copy.to = static_cast<char*>(to);
  if (from != nullptr) {
    CheckAccess(from, 16, place);
    std::memcpy(copy.bytes.data(), from, 16);
  }
  copy.group = current->copy_groups;
  std::memset(to, kPoison, 16);
  current->copies.push_back(copy);
}

void CommitCopies() { ++current->copy_groups; }

void WaitForCopies(unsigned groups_left) {
  auto& copies = current->copies;
  const auto pending = std::find_if(copies.begin(), copies.end(), [&](const AsyncCopy& copy) {
    return copy.group + groups_left >= current->copy_groups;
  });
  for (auto it = copies.begin(); it != pending; ++it) std::memcpy(it->to, it->bytes.data(), 16);
  copies.erase(copies.begin(), pending);
}

}  // namespace evald::native::cuda::emulated
