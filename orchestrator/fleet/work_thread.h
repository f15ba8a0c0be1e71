#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "evald/error.h"
#include "orchestrator/fleet/loop.h"

namespace evald {

/// Work for another thread, and what the loop does after it.
struct LoopTask {
  /// Called on the loop; with the error that the work threw, or nothing.
  using Done = std::function<void(std::optional<Error> error)>;

  std::function<void()> work;
  Done done;  ///< may be null: then what the work throws reaches nobody

  /// Does the work on the calling thread, then has `loop` call `done`. What the work holds goes
  /// before that.
  void Run(Loop* loop) &&;
};

/// A thread for what the loop may not wait for: files that are written and fsynced, folders that
/// are looked through, long computations. What is posted to one WorkThread is done one after the
/// other, in the order of the posts.
class WorkThread {
 public:
  /// What becomes of work that waits when the WorkThread is destroyed.
  enum class AtEnd { kFinish, kDrop };
  using Done = LoopTask::Done;

  /// `name` is the thread's, for debuggers: at most 15 characters. `loop` outlives it.
  WorkThread(const std::string& name, Loop* loop, AtEnd at_end);
  /// Waits for the work that is under way.
  ~WorkThread();

  /// Runs `work` on the thread, then `done` on the loop. From any thread. What `work` throws
  /// reaches nobody without `done`.
  void Post(std::function<void()> work, Done done = nullptr);

 private:
  void Main();

  Loop* loop_;
  AtEnd at_end_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<LoopTask> queue_;
  bool ending_ = false;
  std::thread thread_;
};

/// The exception that is being handled, as an Error: one that is no Error is kInternal. Only within
/// a catch block.
Error CurrentError();

}  // namespace evald
