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

/// Threads for users' work that may take minutes. Users take turns (FairQueue): a user has one task
/// at work, and after it every other user with waiting tasks has one.
class FairThreads {
 public:
  struct Limits {
    int threads = 2;
    size_t waiting_max = SIZE_MAX;
    size_t waiting_per_user_max = SIZE_MAX;
  };

  /// `name` is the threads' name for debuggers, at most 15 characters. `loop` outlives this.
  FairThreads(const std::string& name, Loop* loop, Limits limits);
  /// Waits for work under way. Waiting work is dropped without calling its `done`.
  ~FairThreads();

  /// Runs `work` on a thread when the user's turn comes, then `done` on the loop, with the
  /// exception that `work` threw. If the answer is not kYes, neither is called. Any thread.
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
