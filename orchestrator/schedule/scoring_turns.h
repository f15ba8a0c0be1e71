#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/schedule/dispatch.h"

namespace evald {

/// Whose metric job a metric process gets that asks for one. Users share the metric processes by
/// time, as they share devices: the highest priority goes first; of its users the one whose jobs
/// have taken least of the processes' time lately, those at work included; of that user's runs each
/// in turn. A job that a process is at is not interrupted, so a user may be ahead by one job for
/// each process.
///
/// A metric process does one job at a time, and asks for the next when it has ended one. The past
/// counts half after ten minutes. A plain value; times are microseconds of any one clock.
class ScoringTurns {
 public:
  /// Which of `runs` goes first, all of which have a metric job. Nothing for no runs.
  std::optional<int64_t> Choose(const std::vector<DispatchRun>& runs, int64_t now) const;

  /// The process was given a job of the run.
  void Begin(const std::string& process, const DispatchRun& run, int64_t now);
  /// The process has ended its job, whatever came of it, or has itself ended. Nothing where it had
  /// none.
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
  std::map<int64_t, int64_t> turns_;    // by run: which job its last one was
  int64_t turn_ = 0;
};

}  // namespace evald
