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

/// The one writer of the database: a thread that runs posted work. If posts pile up, many share one
/// transaction (group commit). When `done` is called, the rows are on disk.
class DatabaseThread {
 public:
  /// From now on only this thread uses `store`. If a transaction fails, `failed` is called on the
  /// loop, and nothing more is written.
  DatabaseThread(RunStore* store, Loop* loop, std::function<void(std::exception_ptr)> failed);
  /// Finishes all posted work.
  ~DatabaseThread();

  /// Runs `work` in a transaction on this thread, then `done` on the loop. Any thread may call it.
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
