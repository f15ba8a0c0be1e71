#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace evald::native {

/// Spreads loops over a fixed number of threads, the caller's among them. The caller never waits
/// for a thread that has not begun: on a busy machine it does the tasks itself. One caller at a
/// time.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(task, thread) once for every task in [0, tasks), thread in [0, threads()), and
  /// returns when all are done. `body` must not throw. Each thread begins with a part of its own,
  /// in order, so that it reads on in memory where it is; who has done with that takes over from
  /// the end of another's.
  /// `work` says how much there is to do in all, in multiply-adds or the like: a loop that is over
  /// before another thread has woken is left to the caller.
  void ForEach(int64_t tasks, int64_t work,
               const std::function<void(int64_t task, int thread)>& body);

 private:
  /// One thread's tasks that nobody has taken yet: the first in the lower half, the end in the
  /// upper one. Only who takes a task looks at body_, so a worker that wakes too late harms
  /// nothing.
  struct alignas(64) Part {
    std::atomic<uint64_t> tasks{0};
  };

  void Work(int thread);
  void TakeTasks(int thread);
  void TakeFrom(Part* part, bool own, int thread);

  std::vector<Part> parts_;  ///< by thread
  std::vector<std::thread> workers_;
  const std::function<void(int64_t, int)>* body_ = nullptr;
  std::atomic<uint32_t> loop_{0};        ///< counts loops; workers wait for it to change
  std::atomic<uint32_t> unfinished_{0};  ///< tasks of the current loop that are not done
  std::atomic<bool> stop_{false};
};

}  // namespace evald::native
