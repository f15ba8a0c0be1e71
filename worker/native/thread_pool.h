#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace evald::native {

/// Spreads loops over a fixed number of threads, including the caller's. The caller never waits for
/// a thread that has not begun: on a busy machine it does the tasks itself. One caller at a time.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(task, thread) once for every task in [0, tasks), with thread in [0, threads()), and
  /// returns when all are done. `body` must not throw. Each thread begins with its own part, in
  /// order, so that it reads memory sequentially. A thread that has finished its part takes tasks
  /// from the end of another's. `work` is the total work, in multiply-adds or the like: a loop that
  /// would end before another thread has woken is left to the caller.
  void ForEach(int64_t tasks, int64_t work,
               const std::function<void(int64_t task, int thread)>& body);

 private:
  /// One thread's tasks that are not taken yet: the first in the lower half, the end in the upper
  /// half. Only a thread that takes a task looks at body_, so a worker that wakes too late does no
  /// harm.
  struct alignas(64) Part {
    std::atomic<uint64_t> tasks{0};
  };

  void Work(int thread);
  void TakeTasks(int thread);
  void TakeFrom(Part* part, bool own, int thread);

  std::vector<Part> parts_;  ///< by thread
  std::vector<std::thread> workers_;
  const std::function<void(int64_t, int)>* body_ = nullptr;
  std::atomic<uint32_t> loop_{0};        ///< counts loops; workers wait for a change
  std::atomic<uint32_t> unfinished_{0};  ///< tasks of the current loop that are not done
  std::atomic<bool> stop_{false};
};

}  // namespace evald::native
