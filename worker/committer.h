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

/// Sends a message to the agent. Any thread may call it; it does not throw.
using Sender = std::function<void(const protocol::Message&)>;

/// Publishes finished files on a thread of its own, so that no device waits for a disk. Says
/// SliceDone for each, TrialDone after a trial's last, and TrialFailed when a file cannot be
/// committed; then the trial is over and the rest of its files stay as `.part`.
class Committer {
 public:
  explicit Committer(Sender send);
  /// Commits what is queued, then returns.
  ~Committer();

  void Commit(std::shared_ptr<TrialState> trial, OpenTrial::Complete slice);
  void FinishTrial(std::shared_ptr<TrialState> trial, double device_seconds);
  /// Says Revoked once what was queued before has been done: no file of the trial changes after it.
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
