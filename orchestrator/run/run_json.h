#pragma once

#include <functional>
#include <memory>

#include "evald/json.h"
#include "orchestrator/fleet/work_thread.h"
#include "orchestrator/run/run_directory.h"

namespace evald {

/// run.json of a run at work. The loop changes it and the files thread writes it, in the order of
/// the changes; changes that come while a write waits are written together. Loop thread only.
class RunJson {
 public:
  /// `files` outlives it. What is to happen after a change is on disk is posted to `files` after
  /// the change.
  RunJson(RunDirectory directory, WorkThread* files);

  const Json& record() const { return directory_.record(); }
  /// Adds or replaces `members`. `done` hears when they are on disk, or why they are not; it may
  /// outlive the RunJson.
  void Update(const Json& members, WorkThread::Done done = nullptr);
  /// Calls `then` once no change waits for the disk any more, which may be at once. Whether a write
  /// failed is for the `done` of its Update.
  void WhenWritten(std::function<void()> then);
  /// The folder and its lock, for who ends the run. Nothing is updated after this.
  RunDirectory Take() { return std::move(directory_); }

 private:
  struct State;

  RunDirectory directory_;
  WorkThread* files_;
  std::shared_ptr<State> state_;
};

}  // namespace evald
