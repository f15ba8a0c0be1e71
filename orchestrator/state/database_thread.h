#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "orchestrator/fleet/loop.h"
#include "orchestrator/state/run_store.h"

namespace evald {

/// The one writer of the database: a thread that runs what is posted to it, many posts in one
/// transaction when they pile up (group commit). What `done` reports is on disk.
class DatabaseThread {
 public:
  /// `store` is used by this thread alone from now on. `failed` is called on the loop when a
  /// transaction fails; nothing more is written after that.
  DatabaseThread(RunStore* store, Loop* loop, std::function<void(std::exception_ptr)> failed);
  /// Finishes what was posted.
  ~DatabaseThread();

  /// Runs `work` in a transaction on this thread, then `done` on the loop. From any thread.
  void Post(std::function<void(RunStore&)> work, std::function<void()> done = nullptr);

 private:
  struct Task {
    std::function<void(RunStore&)> work;
    std::function<void()> done;
  };
  void Main();
  void RunBatch(std::deque<Task>* batch);

  RunStore* store_;
  Loop* loop_;
  std::function<void(std::exception_ptr)> failed_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Task> queue_;
  bool ending_ = false;
  bool broken_ = false;
  std::thread thread_;
};

}  // namespace evald
