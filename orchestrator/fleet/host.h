#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "protocol/messages.h"

namespace evald {

/// A process that a host starts: a worker or a metric process.
struct ProcessSpec {
  std::string id;       ///< "w0", "m1": unique among the running ones
  std::string program;  ///< "evald-worker", …, of the host's own folder of programs (IsStartable)
  std::vector<std::string> arguments;  ///< the host adds --socket, --id and what only it knows
  std::string tag;  ///< what it was started for; a later orchestrator compares it
};

/// How a process ended.
struct ProcessExit {
  int exit_code = 0;
  int signal = 0;     ///< 0 unless a signal ended it
  std::string error;  ///< why it could not be started, or is lost; "" else
};
/// "exit status 3", "killed by signal 9".
std::string ToString(const ProcessExit& exit);

/// Where processes run: this process's own children (LocalHost), or those of an agent (RemoteHost).
/// Used on the loop's thread only; so are the callbacks.
class Host {
 public:
  struct Events {
    /// A message of process `id`; Hello first.
    std::function<void(const std::string& id, const protocol::Message& message)> message;
    /// The process has ended, and all it ever sent was delivered before.
    std::function<void(const std::string& id, const ProcessExit& exit)> exited;
  };

  virtual ~Host() = default;

  /// Throws Error(kInfrastructure) when the program cannot be started; where that is known only
  /// later, `exited` tells.
  virtual void Start(const ProcessSpec& spec) = 0;
  /// Sends to a connected process; without a connection the message is dropped.
  virtual void Send(const std::string& id, const protocol::Message& message) = 0;
  /// SIGKILL to the process and its group.
  virtual void Kill(const std::string& id) = 0;
  /// Ends all processes that need not outlive the orchestrator: Stop to all, and SIGKILL to those
  /// that still run after `grace`. Calls `done` when none is left.
  virtual void StopAll(std::chrono::milliseconds grace, std::function<void()> done) = 0;
};

}  // namespace evald
