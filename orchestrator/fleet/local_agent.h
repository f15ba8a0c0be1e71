#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace evald {

/// The agent of the service's own host: a process of its own (`evald agent --socket`), so that its
/// workers go on when the service is killed, and the next one finds them warm.
struct LocalAgent {
  std::filesystem::path program;  ///< the evald executable
  std::vector<std::string>
      arguments;                    ///< what it is started with; a running one must have been, too
  std::filesystem::path state_dir;  ///< with its lock and its log

  /// What an agent that was started so says of itself (AgentHello::config).
  std::string Config() const;
  /// Whether one runs: it holds the lock.
  bool Runs() const;
  /// Starts one that does not end with this process; gives its process id (0: not known). Throws
  /// Error(kInfrastructure).
  pid_t Spawn() const;
  /// Whether a process that Spawn started has not ended yet. False for 0.
  static bool Lives(pid_t pid);
};

/// The lock that a running agent holds in its root.
inline constexpr const char* kAgentLock = "agent.lock";
/// Where an orchestrator listens for the agent of its own host, in its state folder.
inline constexpr const char* kAgentSocket = "orchestrator.sock";

}  // namespace evald
