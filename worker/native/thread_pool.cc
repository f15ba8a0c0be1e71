#include "worker/native/thread_pool.h"

#include <algorithm>

namespace evald::native {
namespace {

// Loops follow each other closely, so a waiting thread spins for a while before it sleeps. Not
// long, since workers may have fewer cores than threads.
constexpr int kSpins = 2000;

// Some microseconds of one core.
constexpr int64_t kWorkMin = 1 << 18;

uint64_t Range(int64_t first, int64_t end) {
  return static_cast<uint64_t>(end) << 32 | static_cast<uint64_t>(first);
}
uint32_t First(uint64_t range) { return static_cast<uint32_t>(range); }
uint32_t End(uint64_t range) { return static_cast<uint32_t>(range >> 32); }

template <typename T>
void WaitWhile(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(int threads) : parts_(static_cast<size_t>(std::max(1, threads))) {
  for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { Work(i); });
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ForEach(int64_t tasks, int64_t work,
                         const std::function<void(int64_t, int)>& body) {
  if (workers_.empty() || tasks <= 1 || work < kWorkMin || tasks > INT32_MAX) {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  body_ = &body;
  unfinished_.store(static_cast<uint32_t>(tasks), std::memory_order_relaxed);
  for (int64_t i = 0; i < threads(); ++i) {
    parts_[static_cast<size_t>(i)].tasks.store(
        Range(tasks * i / threads(), tasks * (i + 1) / threads()), std::memory_order_release);
  }
  loop_.fetch_add(1, std::memory_order_release);
  loop_.notify_all();
  TakeTasks(0);
  for (uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire)) {
    WaitWhile(unfinished_, left);
  }
}

void ThreadPool::TakeTasks(int thread) {
  const size_t count = parts_.size();
  for (size_t i = 0; i < count; ++i) {
    TakeFrom(&parts_[(static_cast<size_t>(thread) + i) % count], i == 0, thread);
  }
}

void ThreadPool::TakeFrom(Part* part, bool own, int thread) {
  uint64_t tasks = part->tasks.load(std::memory_order_acquire);
  for (uint32_t first, end; first = First(tasks), end = End(tasks), first != end;) {
    const uint64_t rest = own ? Range(first + 1, end) : Range(first, end - 1);
    if (!part->tasks.compare_exchange_weak(tasks, rest, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
      continue;
    }
    (*body_)(own ? first : end - 1, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1 && thread != 0) {
      unfinished_.notify_all();
    }
    tasks = part->tasks.load(std::memory_order_acquire);
  }
}

void ThreadPool::Work(int thread) {
  uint32_t seen = 0;
  while (true) {
    WaitWhile(loop_, seen);
    seen = loop_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    TakeTasks(thread);
  }
}

}  // namespace evald::native
