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
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ForEach(int64_t tasks, int64_t work,
                         const std::function<void(int64_t, int)>& body) {
  if (workers_.empty() || tasks <= 1 || work < kWorkMin) {
    for (int64_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  body_ = &body;
  tasks_ = tasks;
  next_.store(0, std::memory_order_relaxed);
  busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  TakeTasks(0);
  for (int left = busy_.load(std::memory_order_acquire); left != 0;
       left = busy_.load(std::memory_order_acquire)) {
    WaitWhile(busy_, left);
  }
}

void ThreadPool::TakeTasks(int thread) {
  for (int64_t task = next_.fetch_add(1, std::memory_order_relaxed); task < tasks_;
       task = next_.fetch_add(1, std::memory_order_relaxed)) {
    (*body_)(task, thread);
  }
}

void ThreadPool::Work(int thread) {
  uint32_t seen = 0;
  while (true) {
    WaitWhile(round_, seen);
    seen = round_.load(std::memory_order_acquire);
    if (stop_.load()) return;
    TakeTasks(thread);
    if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_all();
  }
}

}  // namespace evald::native
