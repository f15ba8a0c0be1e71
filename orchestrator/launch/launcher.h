#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/program.h"
#include "orchestrator/launch/node_job.h"

namespace evald {

/// Runs jobs on nodes: Slurm, or programs of the user. Calls block, for as long as the launcher's
/// programs take; one thread at a time. GiveUp alone may be called by any thread.
class Launcher {
 public:
  virtual ~Launcher() = default;

  /// Submits a job of one node that runs an agent. `join` is the text that tells the agent where to
  /// go (the variable EVALD_JOIN); it holds a token, so it never stands on a command line. Nodes in
  /// `excluded` are not to be used. Does not throw.
  virtual SubmitAnswer Submit(const NodeJob& job, const std::string& join,
                              const std::vector<std::string>& excluded) = 0;
  /// This user's jobs, also those that have just ended. Jobs of others may be among them. Throws
  /// Error(kInfrastructure).
  virtual std::vector<ListedJob> List() = 0;
  /// Ends the job with this id or, if the id is not known, all jobs with this name. No such job is
  /// no error. Throws Error(kInfrastructure).
  virtual void Stop(const NodeJob& job) = 0;
  /// From now on a job that waits is not to start on the nodes in `excluded`, and may start on all
  /// others. A job that has started stays where it is. A launcher that cannot change a job does
  /// nothing. Throws Error(kInfrastructure).
  virtual void Exclude(const NodeJob& /*job*/, const std::vector<std::string>& /*excluded*/) {}
  /// The last lines of the job's log; "" if the log is not visible here.
  virtual std::string LogEnd(const NodeJob& job) = 0;

  /// Nobody waits for the launcher any more: the call under way, and each later one, ends at once.
  void GiveUp() { given_up_ = true; }
  /// Has the launcher end the job as Stop does, without waiting for its answer. Does not throw.
  void StopUnanswered(const NodeJob& job) const;
  /// How a person ends jobs of these names, as a clause: "`scancel --name=a,b` ends them".
  virtual std::string HowToStop(const std::vector<std::string>& names) const = 0;

 protected:
  const std::atomic<bool>* given_up() const { return &given_up_; }
  /// The program that ends the job.
  virtual ProgramCall StopCall(const NodeJob& job) const = 0;

 private:
  std::atomic<bool> given_up_{false};
};

}  // namespace evald
