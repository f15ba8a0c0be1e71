#pragma once

#include <functional>
#include <memory>

#include "evald/json.h"
#include "orchestrator/fleet/work_thread.h"
#include "orchestrator/run/run_directory.h"

namespace evald {

/// run.json of a run at work. The loop changes it and the files thread writes it, in the order of
/// the changes. Changes that come while a write waits are written together. Loop thread only.
class RunJson {
 public:
  /// `files` outlives it. Post work that must come after a change is on disk to `files` after the
  /// change.
  RunJson(RunDirectory directory, WorkThread* files);

  const Json& record() const { return directory_.record(); }
  /// Adds or replaces `members`. Calls `done` when they are on disk, or with the reason why not;
  /// `done` may outlive the RunJson.
  void Update(const Json& members, WorkThread::Done done = nullptr);
  /// Calls `then` once no change waits for the disk, perhaps at once. A failed write is reported to
  /// the `done` of its Update only.
  void WhenWritten(std::function<void()> then);
  /// The folder and its lock, for the end of the run. Call no Update after this.
  RunDirectory Take() { return std::move(directory_); }

 private:
  struct State;

  RunDirectory directory_;
  WorkThread* files_;
  std::shared_ptr<State> state_;
};

}  // namespace evald
