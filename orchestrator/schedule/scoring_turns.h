#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/schedule/dispatch.h"

namespace evald {

/// Decides which run's metric job a metric process gets. Users share the metric processes by time,
/// as they share devices. Runs of the highest priority go first. Among their users, the user goes
/// first whose jobs took the fewest seconds of metric processes lately, including jobs that are
/// running. The runs of one user take turns. A job at work is not interrupted, so a user may be
/// ahead by one job for each process.
/// A metric process does one job at a time and asks for the next after that job. Time that a job
/// used ten minutes ago counts half. A plain value; times are microseconds of any one clock.
class ScoringTurns {
 public:
  /// Chooses the run that goes first. All `runs` have a metric job. Nothing if there are no runs.
  std::optional<int64_t> Choose(const std::vector<DispatchRun>& runs, int64_t now) const;

  /// The process was given a job of the run.
  void Begin(const std::string& process, const DispatchRun& run, int64_t now);
  /// The process has ended its job, whatever the outcome, or has itself ended. Does nothing if it
  /// had no job.
  void End(const std::string& process, int64_t now);
  /// The run is over.
  void Forget(int64_t run) { turns_.erase(run); }

 private:
  struct Job {
    std::string user;
    int64_t since = 0;
  };
  double SecondsOf(const std::string& user, int64_t now) const;

  DeviceUse used_;  // seconds of jobs that have ended, as of `aged_`
  int64_t aged_ = 0;
  std::map<std::string, Job> at_work_;  // by process
  std::map<int64_t, int64_t> turns_;    // by run: the turn of its last job
  int64_t turn_ = 0;
};

}  // namespace evald
