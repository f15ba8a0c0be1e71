#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "metrics/process.h"
#include "metrics/sandbox_options.h"
#include "orchestrator/agent/dialer.h"

namespace evald {

struct AgentOptions {
  OrchestratorAddress orchestrator;
  std::string name;  ///< the host's name among the orchestrator's hosts
  std::filesystem::path binaries;
  /// Lock, logs and, if the orchestrator's files are not visible here, the spool
  std::filesystem::path root;
  std::filesystem::path staging_root;
  uint64_t staging_keep = 0;  ///< bytes of unused checkpoints that may stay
  std::vector<std::string> devices = {"cpu:0"};
  int threads = 0;  ///< of each worker; 0: the orchestrator's number
  int metric_processes = 1;
  SandboxOptions sandbox;
  TaskCodeOptions task_code;
  std::filesystem::path judge_cache;  ///< answers of judges
  /// Where other agents fetch checkpoints from this host: "" for all addresses and any port, "off"
  /// for nowhere, or an IP address and a port (peer_listener.h)
  std::string peer_listen;
  uint64_t peer_rate = 0;  ///< bytes a second that this host gives to others; 0: no limit
  std::string peer_host;   ///< how others call this host; "": as it is seen by the orchestrator
  std::string config_id;   ///< identifies the agent's command line; told to the orchestrator
  /// Without an orchestrator for so long, processes end; on its own host the agent ends, too
  double linger_s = 600;
  /// The agent was launched for this orchestrator alone: it ends, and its launcher's job with it,
  /// if the orchestrator refuses it, or stays away for `linger_s`
  bool launched = false;
  /// When this host ends, with all that runs on it, in seconds since 1970: the end of its job's
  /// time limit. 0: no end is known
  double ends_at = 0;
  /// Called on the loop's thread when an orchestrator has taken the agent for the first time.
  std::function<void()> taken;
};

/// The one owner of a host's processes. Starts worker and metric processes for an orchestrator and
/// keeps them at work while it is away. The next orchestrator finds them warm: leases of the one
/// before are revoked, and files that were written stay.
class Agent {
 public:
  /// Takes the root's lock. Throws Error(kUsage) if another agent has it, and
  /// Error(kInfrastructure).
  explicit Agent(AgentOptions options);
  ~Agent();

  /// Works until it is told to end: by the orchestrator of its own host, or by SIGTERM or SIGINT
  /// (trials under way are finished; a second signal ends at once). Also ends if the root is gone.
  /// Throws Error(kInfrastructure) if a launched agent is refused or stays alone.
  void Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace evald
