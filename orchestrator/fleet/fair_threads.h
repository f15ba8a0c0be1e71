#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "orchestrator/fleet/fair_queue.h"
#include "orchestrator/fleet/work_thread.h"

namespace evald {

/// Threads for work of users that may take minutes. Users take turns (FairQueue): a user has one
/// task at work, and between two tasks of one user there is one of each other user whose tasks
/// wait.
class FairThreads {
 public:
  struct Limits {
    int threads = 2;
    size_t waiting_max = SIZE_MAX;
    size_t waiting_per_user_max = SIZE_MAX;
  };

  /// `name` is the threads', for debuggers: at most 15 characters. `loop` outlives this.
  FairThreads(const std::string& name, Loop* loop, Limits limits);
  /// Waits for what is under way; what waits is dropped, and its `done` is not called.
  ~FairThreads();

  /// Runs `work` on a thread when it is the user's turn, then `done` on the loop, with what `work`
  /// threw. Where the answer is not kYes, neither is called. Any thread.
  Taken Post(const std::string& user, std::function<void()> work, WorkThread::Done done);

 private:
  void Main();

  Loop* loop_;
  std::mutex mutex_;
  std::condition_variable wake_;
  FairQueue<LoopTask> queue_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace evald
