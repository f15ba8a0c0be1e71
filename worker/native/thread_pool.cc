#include "worker/native/thread_pool.h"

namespace evald::native {
namespace {

// Loops follow each other closely, so a waiting thread looks a while before it sleeps; not long,
// since workers may have fewer cores than threads.
constexpr int kSpins = 2000;

// Some microseconds of one core.
constexpr int64_t kWorkMin = 1 << 18;

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

ThreadPool::ThreadPool(int threads) {
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
  const auto count = static_cast<uint32_t>(tasks);
  unfinished_.store(count, std::memory_order_relaxed);
  const uint32_t loop = loop_.load(std::memory_order_relaxed) + 1;
  tickets_.store(uint64_t{loop} << 32 | count, std::memory_order_release);
  loop_.store(loop, std::memory_order_release);
  loop_.notify_all();
  TakeTasks(0);
  for (uint32_t left = unfinished_.load(std::memory_order_acquire); left != 0;
       left = unfinished_.load(std::memory_order_acquire)) {
    WaitWhile(unfinished_, left);
  }
}

void ThreadPool::TakeTasks(int thread) {
  uint64_t tickets = tickets_.load(std::memory_order_acquire);
  while (static_cast<uint32_t>(tickets) != 0) {
    if (!tickets_.compare_exchange_weak(tickets, tickets - 1, std::memory_order_acq_rel,
                                        std::memory_order_acquire)) {
      continue;
    }
    (*body_)(static_cast<uint32_t>(tickets) - 1, thread);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1 && thread != 0) {
      unfinished_.notify_all();
    }
    tickets = tickets_.load(std::memory_order_acquire);
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
