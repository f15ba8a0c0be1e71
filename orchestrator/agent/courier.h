#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "orchestrator/agent/checkpoint_fetch.h"
#include "orchestrator/agent/spool.h"
#include "orchestrator/fleet/loop.h"

namespace evald {

/// Stands between an agent's processes and an orchestrator whose files are not visible on this
/// host. A message to a process waits until the files that it names are here; a message from a
/// process waits until its files are at the orchestrator. Both then carry the receiver's paths.
/// Messages to and from one process keep their order; heartbeats do not wait. Files move on other
/// threads; everything else belongs to the loop's.
class Courier {
 public:
  struct Hooks {
    std::function<void(const std::string& id, const protocol::Message&)> to_process,
        to_orchestrator;
    /// A message of the orchestrator will not reach its process.
    std::function<void(const std::string& id, const protocol::Message&)> undelivered;
  };
  static constexpr std::chrono::milliseconds kFirstPause{200};

  /// At most `first_pause` passes before the first retry of a file; it doubles each time. `shelf`
  /// as CheckpointFetch has it.
  Courier(Loop* loop, OrchestratorAddress address, std::filesystem::path folder,
          const std::string& instance, StagerOptions staging, Hooks hooks,
          std::chrono::milliseconds first_pause = kFirstPause,
          std::shared_ptr<ChunkShelf> shelf = nullptr);
  ~Courier();

  void ToProcess(const std::string& id, const protocol::Message& message);
  void FromProcess(const std::string& id, const protocol::Message& message);
  /// The process has ended: calls `told` after all its messages are passed on.
  void Ended(const std::string& id, std::function<void()> told);
  /// Whether the orchestrator can be reached. While it cannot, a failed try to move a file does not
  /// count.
  void SetConnected(bool connected) { connected_ = connected; }
  /// Another orchestrator is there: drops all messages that are on their way.
  void BeginAnew();

 private:
  struct Errand {
    protocol::Message message;
    std::function<void()> told;  ///< called in place of a message
    uint64_t serial = 0;
  };
  struct Lane {  // one direction of one process
    std::deque<Errand> waiting;
    bool busy = false;
  };
  using LaneKey = std::pair<std::string, bool>;  // true: to the process
  struct Outcome {
    std::optional<protocol::Message> onward, back;
  };

  void Advance(const LaneKey& key);
  void Finish(const LaneKey& key, const std::shared_ptr<std::atomic<bool>>& conversation,
              uint64_t serial, const Outcome& outcome);
  Outcome Carry(const LaneKey& key, const protocol::Message& message,
                const std::atomic<bool>* over);
  protocol::Message Localize(const std::string& id, const protocol::Message& message,
                             const std::atomic<bool>* over);
  protocol::Message Give(const protocol::Message& message, const std::atomic<bool>* over);
  void DropLane(const LaneKey& key);
  void Work();

  Loop* loop_;
  OrchestratorAddress address_;
  Spool spool_;
  CheckpointFetch checkpoints_;
  Hooks hooks_;
  const std::chrono::milliseconds first_pause_;
  std::map<LaneKey, Lane> lanes_;
  uint64_t serials_ = 0;
  std::shared_ptr<std::atomic<bool>> over_;  ///< set when the conversation is over
  std::atomic<bool> connected_{false};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  std::mutex staged_mutex_;
  /// Checkpoints in use, by process. A process keeps its last one until the next is loaded.
  std::map<std::string, std::vector<std::shared_ptr<StagedCheckpoint>>> staged_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace evald
