#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "protocol/messages.h"
#include "worker/open_trial.h"

namespace evald {

/// Sends a message to the agent. Any thread may call it. Does not throw.
using Sender = std::function<void(const protocol::Message&)>;

/// Publishes finished files on a thread of its own, so that no device waits for a disk. Sends
/// SliceDone for each file, TrialDone after the last file of a trial, and TrialFailed if a file
/// cannot be committed. After a failure the trial is over, and its other files stay as `.part`.
class Committer {
 public:
  explicit Committer(Sender send);
  /// Commits all queued files, then returns.
  ~Committer();

  void Commit(std::shared_ptr<TrialState> trial, OpenTrial::Complete slice);
  void FinishTrial(std::shared_ptr<TrialState> trial, double device_seconds);
  /// Sends Revoked after all work queued before: no file of the trial changes after it.
  void AnswerRevoke(const protocol::Revoke& revoke);

 private:
  void Queue(std::function<void()> work);
  void Work();

  Sender send_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace evald
