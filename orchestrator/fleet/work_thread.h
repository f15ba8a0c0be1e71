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

/// Work for another thread, and a call on the loop after it.
struct LoopTask {
  /// Called on the loop with the error that the work threw, or nothing.
  using Done = std::function<void(std::optional<Error> error)>;

  std::function<void()> work;
  Done done;  ///< may be null: then an error of the work is dropped

  /// Does the work on the calling thread, then has `loop` call `done`. The work is destroyed before
  /// that.
  void Run(Loop* loop) &&;
};

/// A thread for work that the loop may not wait for: writing and fsyncing files, looking through
/// folders, long computations. Posts to one WorkThread are done one after another, in their order.
class WorkThread {
 public:
  /// The fate of waiting work when the WorkThread is destroyed.
  enum class AtEnd { kFinish, kDrop };
  using Done = LoopTask::Done;

  /// `name` is the thread's name for debuggers, at most 15 characters. `loop` outlives this.
  WorkThread(const std::string& name, Loop* loop, AtEnd at_end);
  /// Waits for the work under way.
  ~WorkThread();

  /// Runs `work` on the thread, then `done` on the loop. Any thread. Without `done`, an error of
  /// `work` is dropped.
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

/// The exception being handled, as an Error; another type becomes kInternal. Only within a catch
/// block.
Error CurrentError();

}  // namespace evald
