#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/launch/allocation.h"

namespace evald {

/// The srun that starts an agent on each node of an allocation.
struct StepCall {
  std::vector<std::string> arguments;  ///< of srun
  std::filesystem::path log;           ///< of srun and of all agents
};
StepCall StepOf(const Allocation& allocation, const std::filesystem::path& evald,
                const std::vector<std::string>& agent, const std::filesystem::path& log);

/// A running srun, in a process group of its own: Ctrl-C does not reach the agents. It gets
/// SIGTERM, which it passes on to its agents, when this process dies.
class Step {
 public:
  /// `join` is the agents' EVALD_JOIN. Throws Error(kInfrastructure).
  Step(const StepCall& call, const std::string& join);
  /// Kills an srun that still runs.
  ~Step();
  Step(const Step&) = delete;

  /// How srun ended, "exit status 1"; nothing while it runs.
  std::optional<std::string> Ended();
  void Signal(int number);

 private:
  pid_t pid_ = 0;
  std::optional<std::string> ended_;
};

}  // namespace evald
