#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "checkpoint/lease.h"
#include "evald/error.h"
#include "protocol/messages.h"
#include "protocol/seen_attempts.h"
#include "worker/command/command_run.h"
#include "worker/committer.h"
#include "worker/engine/engine.h"
#include "worker/open_trial.h"
#include "worker/timeline.h"

namespace evald {

/// A worker's work with its engine: loads the checkpoints that the agent names, keeps the engine
/// fed from the trials it holds, asks for the next trial before the last one has no requests left,
/// and hands finished requests to the committer. Knows no socket: messages come in through Post and
/// go out through the Sender.
///
/// Run belongs to one thread, the engine's; Post and Snapshot may be called from any.
class TrialLoop {
 public:
  /// `engine` must outlive the loop.
  TrialLoop(Engine* engine, Sender send);
  ~TrialLoop();

  /// Queues a message of the agent.
  void Post(protocol::Message message);

  /// Works until Stop, until Drain and everything held has been committed, or until the engine is
  /// broken. In the last case whole answers are committed, and a TrialFailed of trial -1 gives the
  /// reason.
  void Run();
  /// After Run: why the engine broke, if this ended the loop.
  const std::optional<std::string>& broken() const { return broken_; }

  /// The progress of each trial that is held; one entry with trial -1 if there is none.
  std::vector<protocol::Progress> Snapshot() const;

 private:
  struct InFlight {
    std::shared_ptr<OpenTrial> trial;
    Feed feed;  ///< its request without texts
    int64_t begin_us = 0;
  };
  using Trials = std::deque<std::shared_ptr<OpenTrial>>;

  void TakeMessages(bool wait);
  void Handle(protocol::Load&& load);
  void Handle(protocol::Follow&& follow);
  void Handle(protocol::Lease&& lease);
  void Handle(protocol::Revoke&& revoke);
  void Handle(protocol::Shorten&& shorten);
  void Handle(protocol::Drain&&) { draining_ = true; }
  void Handle(protocol::Stop&&) { stopping_ = true; }
  template <typename T>
  void Handle(T&&);

  void TakeUpWaiting();
  bool LeasesWait() const;
  void LoadCheckpoint(const protocol::Load& load);
  void FollowStaging(const protocol::Follow& follow);
  void Open(const protocol::Lease& lease);
  void FeedEngine();
  bool FeedFrom(const std::shared_ptr<OpenTrial>& trial);
  void StartCommand(uint64_t tag, const InFlight& entry);
  void AwaitCommand();
  void AskForMore();
  void Compute();
  void Charge(int64_t micros);
  void Keep(Finished&& finished);
  void FlushAndCommit();
  void StepFailed(const Error& error);
  bool Broke();
  void Fail(const std::shared_ptr<OpenTrial>& trial, const Error& error,
            const std::string& task = "");
  void Drop(const std::shared_ptr<OpenTrial>& trial);
  void TakeBackAll();
  void UpdateSnapshot();
  void NoteOldest(int64_t now);

  Engine* engine_;
  Sender send_;
  EngineInfo info_;
  StagedLease staged_;
  PreparedCache prepared_;
  Timeline timeline_;
  std::optional<Committer> committer_;

  Trials open_;
  /// Fed one at a time, each slice by slice, after a failed Step.
  std::set<std::shared_ptr<OpenTrial>> suspects_;
  std::unordered_map<uint64_t, InFlight> in_flight_;
  uint64_t next_tag_ = 1;
  /// Loads and Follows, and the leases behind them: a lease belongs to the checkpoint of the Load
  /// before it.
  std::deque<std::variant<protocol::Load, protocol::Lease, protocol::Follow>> waiting_;
  protocol::SeenAttempts leased_;
  std::optional<std::string> loaded_;  ///< fingerprint of the checkpoint that answers
  std::filesystem::path directory_;    ///< its folder; "" for an engine that needs none
  /// A program of the user's that answers the one request under way; the engine is then its
  struct Command {
    uint64_t tag = 0;
    std::unique_ptr<command::CommandRun> run;
  };
  std::optional<Command> command_;
  /// When the engine was last told to follow; none after the Load
  std::optional<int64_t> followed_us_;
  bool draining_ = false;
  bool stopping_ = false;
  std::optional<std::string> broken_;
  int wanted_ = 0;
  double requests_per_second_ = 0;

  struct Oldest {
    uint64_t tag = 0;
    int64_t begin_us = 0;
    std::string task;
  };
  std::map<std::pair<int64_t, int>, Oldest>
      oldest_;  ///< by trial and attempt: of its requests in the engine
  int64_t oldest_noted_us_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<protocol::Message> inbox_;
  std::vector<protocol::Progress> snapshot_;
  std::atomic<int64_t> round_us_;  ///< when the engine's thread last came round
};

}  // namespace evald
