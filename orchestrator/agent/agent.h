#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "metrics/sandbox_options.h"
#include "orchestrator/agent/dialer.h"

namespace evald {

struct AgentOptions {
  OrchestratorAddress orchestrator;
  std::string name;  ///< of this host, among the orchestrator's
  std::filesystem::path binaries;
  std::filesystem::path root;  ///< lock, logs and, away from the orchestrator's files, the spool
  std::filesystem::path staging_root;
  uint64_t staging_keep = 0;  ///< bytes of checkpoints that may stay without a use
  std::vector<std::string> devices = {"cpu:0"};
  int threads = 0;  ///< of each worker; 0: as the orchestrator says
  int metric_processes = 1;
  SandboxOptions sandbox;
  std::string config_id;  ///< what it was started with, told to the orchestrator
  double linger_s = 600;  ///< without an orchestrator: then processes end, and on the
                          ///< orchestrator's own host the agent
};

/// The one owner of what belongs to a host: starts worker and metric processes as an orchestrator
/// says and keeps them at work while it is away. The next orchestrator finds them warm; what they
/// held for the one before is revoked, and what they wrote stays.
class Agent {
 public:
  /// Takes the root's lock. Throws Error(kUsage) when another agent has it, Error(kInfrastructure).
  explicit Agent(AgentOptions options);
  ~Agent();

  /// Works until told to end: by the orchestrator of its own host, by SIGTERM or SIGINT (trials
  /// under way are finished; a second one ends at once), or by a root that is gone.
  void Run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace evald
