#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// The agent of the service's own host. It is a process of its own (`evald agent --socket`), so
/// that its workers go on when the service is killed, and the next service finds them warm.
struct LocalAgent {
  std::filesystem::path program;       ///< the evald executable
  std::vector<std::string> arguments;  ///< its command line; a running agent must have the same
  std::filesystem::path state_dir;     ///< holds its lock and its log

  /// The value of AgentHello::config for an agent with this command line.
  std::string Config() const;
  /// Whether an agent runs: it holds the lock.
  bool Runs() const;
  /// Starts an agent that outlives this process. Returns its process id (0: not known). Throws
  /// Error(kInfrastructure).
  pid_t Spawn() const;
  /// Whether a process that Spawn started still runs. False for 0.
  static bool Lives(pid_t pid);
};

/// The lock that a running agent holds in its root.
inline constexpr const char* kAgentLock = "agent.lock";
/// The socket in the state folder on which an orchestrator listens for the agent of its own host.
inline constexpr const char* kAgentSocket = "orchestrator.sock";

}  // namespace evald
