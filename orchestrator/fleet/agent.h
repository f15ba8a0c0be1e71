#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "orchestrator/fleet/loop.h"
#include "protocol/messages.h"

namespace evald {

/// A process that the agent starts: a worker or a metric process.
struct ProcessSpec {
  std::string id;  ///< "w0", "m1": unique among the running ones
  std::filesystem::path program;
  std::vector<std::string> arguments;  ///< the agent adds --socket and --id
  std::filesystem::path log;           ///< its standard output and error are appended here
};

/// How a process ended.
struct ProcessExit {
  int exit_code = 0;
  int signal = 0;  ///< 0 unless a signal ended it
};
/// "exit status 3", "killed by signal 9".
std::string ToString(const ProcessExit& exit);

/// The owner of what belongs to this host: starts processes, watches them (pidfd), and speaks with
/// them over a Unix socket in a private folder. Each child is in a process group of its own and
/// gets SIGKILL when this process dies. Used on the loop's thread only; so are its callbacks.
class Agent {
 public:
  struct Events {
    /// A message of process `id`; Hello first.
    std::function<void(const std::string& id, const protocol::Message& message)> message;
    /// The process has ended, and all it ever sent was delivered before.
    std::function<void(const std::string& id, const ProcessExit& exit)> exited;
  };

  /// Listens at `directory`/agent.sock; the folder must exist and be private.
  Agent(Loop* loop, const std::filesystem::path& directory, Events events);
  /// Kills what still runs.
  ~Agent();

  /// Throws Error(kInfrastructure) when the program cannot be started.
  void Start(const ProcessSpec& spec);
  /// Sends to a connected process; without a connection the message is dropped.
  void Send(const std::string& id, const protocol::Message& message);
  /// SIGKILL to the process and its group.
  void Kill(const std::string& id);
  bool Running(const std::string& id) const;
  /// Sends Stop to all, and SIGKILL to those that still run after `grace`. Calls `done` when none is
  /// left.
  void StopAll(std::chrono::milliseconds grace, std::function<void()> done);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace evald
