#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "orchestrator/fleet/work_thread.h"
#include "orchestrator/service/fair_queue.h"

namespace evald {

/// Threads that have submissions, watches and resumed runs judged. A judgement has evald-prepare read what a
/// configuration names, which may take a minute. So users take turns (FairQueue): between two judgements of one user
/// there is one of each other user whose judgements wait.
class Judging {
 public:
  static constexpr int kThreads = 2;
  static constexpr size_t kWaitingMax = 256;
  static constexpr size_t kWaitingPerUserMax = 32;

  /// `loop` outlives this.
  explicit Judging(Loop* loop);
  /// Waits for what is under way; what waits is dropped, and its `done` is not called.
  ~Judging();

  /// Runs `work` on a thread when it is the user's turn, then `done` on the loop, with what `work` threw. Where the
  /// answer is not kYes, neither is called. Any thread.
  Taken Post(const std::string& user, std::function<void()> work, WorkThread::Done done);

 private:
  void Main();

  Loop* loop_;
  std::mutex mutex_;
  std::condition_variable wake_;
  FairQueue<LoopTask> queue_{kWaitingMax, kWaitingPerUserMax};
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace evald
