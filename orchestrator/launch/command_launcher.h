#pragma once

#include <string>
#include <vector>

#include "orchestrator/launch/launcher.h"

namespace evald {

/// The section `command` of a launcher in serve.yaml: programs with their arguments.
struct CommandLauncherSettings {
  std::string prefix;  ///< of the names of this service's jobs
  std::vector<std::string> start, stop, list;
  std::vector<std::string> log;    ///< empty: logs are not seen
  std::string evald;               ///< this program, on the nodes
  std::vector<std::string> agent;  ///< further arguments of `evald agent`
};

/// Jobs of any scheduler, by programs of the user (docs/slurm.md#other-schedulers):
///
///     start   starts an agent on a node, and writes the job's id to standard output. Variables:
///             EVALD_JOIN (a secret), EVALD_JOB_NAME, EVALD_EXCLUDED (nodes, with commas), EVALD
///             (the program), EVALD_AGENT_ARGUMENTS (quoted for a shell). Exit status 75 (EX_TEMPFAIL) says that the job may have been started,
///             any other but 0 that it was not
///     stop    ends the job EVALD_JOB or, if that is "", whatever is called EVALD_JOB_NAME
///     list    writes a line of JSON for each job whose name begins with EVALD_JOB_PREFIX: "job",
///             "name", "state" ("pending", "running" or "over"); it may have "node", "reason",
///             "starts_at" and "ends_at" (seconds since 1970)
///     log     writes the end of the job's log
class CommandLauncher : public Launcher {
 public:
  explicit CommandLauncher(CommandLauncherSettings settings) : settings_(std::move(settings)) {}

  SubmitAnswer Submit(const NodeJob& job, const std::string& join,
                      const std::vector<std::string>& excluded) override;
  std::vector<ListedJob> List() override;
  void Stop(const NodeJob& job) override;
  std::string LogEnd(const NodeJob& job) override;
  std::string HowToStop(const std::vector<std::string>& names) const override;

  /// Jobs of the output of `list`. Throws Error(kInfrastructure) that names the line.
  static std::vector<ListedJob> ParseList(const std::string& output, const std::string& prefix);

 private:
  ProgramCall StopCall(const NodeJob& job) const override;
  CommandLauncherSettings settings_;
};

}  // namespace evald
