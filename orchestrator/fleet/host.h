#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "protocol/messages.h"

namespace evald {

/// A process that a host starts: a worker or a metric process.
struct ProcessSpec {
  std::string id;       ///< "w0", "m1": unique among running processes
  std::string program;  ///< "evald-worker", …, from the host's own folder of programs (IsStartable)
  /// The host adds --socket, --id and what else it alone knows
  std::vector<std::string> arguments;
  /// The purpose that it was started for; a later orchestrator compares it
  std::string tag;
};

/// How a process ended.
struct ProcessExit {
  int exit_code = 0;
  int signal = 0;     ///< 0 unless a signal ended it
  std::string error;  ///< why it could not be started, or is lost; otherwise ""
};
/// "exit status 3", "killed by signal 9".
std::string ToString(const ProcessExit& exit);

/// A place where processes run: this process's own children (LocalHost), or an agent's
/// (RemoteHost). Loop thread only; so are the callbacks.
class Host {
 public:
  struct Events {
    /// A message of process `id`; Hello first.
    std::function<void(const std::string& id, const protocol::Message& message)> message;
    /// The process has ended. All its messages were delivered before.
    std::function<void(const std::string& id, const ProcessExit& exit)> exited;
  };

  virtual ~Host() = default;

  /// Throws Error(kInfrastructure) if the program cannot be started. If that is found out only
  /// later, `exited` tells.
  virtual void Start(const ProcessSpec& spec) = 0;
  /// Sends to a connected process. Without a connection the message is dropped.
  virtual void Send(const std::string& id, const protocol::Message& message) = 0;
  /// SIGKILL to the process and its group.
  virtual void Kill(const std::string& id) = 0;
  /// Ends all processes that need not outlive the orchestrator: sends Stop to all, and SIGKILL to
  /// those that still run after `grace`. Calls `done` when none is left.
  virtual void StopAll(std::chrono::milliseconds grace, std::function<void()> done) = 0;
};

}  // namespace evald
