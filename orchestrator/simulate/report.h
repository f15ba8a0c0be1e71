#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/simulate/scenario.h"

namespace evald {

/// A quantity over draws. Percentiles interpolate linearly between the two nearest.
struct SimSpreadOver {
  double least = 0, p5 = 0, p50 = 0, p95 = 0, most = 0;
};
/// `values` has at least one value.
SimSpreadOver Summarise(std::vector<double> values);
Json ToJson(const SimSpreadOver& value);

/// The uses of devices' time, in the order in which they are shown.
const std::vector<std::string>& DeviceTimeCauses();

/// One policy over all draws.
struct PolicyReport {
  std::string name;
  Decouplings decouplings;
  SimSpreadOver makespan_s;
  SimSpreadOver ratio_to_bound;
  /// Of the bound of schedules that do not know which documents are long
  SimSpreadOver ratio_to_unknowing_bound;
  SimSpreadOver ratio_to_left_bound;  ///< with faults, of what they left to do
  SimSpreadOver speedup_vs_coupled;
  SimSpreadOver gpu_idle_share;  ///< device time without a request, after the weights are in
  std::map<std::string, double>
      device_time;                    ///< shares of all device time by cause, means over draws
  std::vector<double> task_scored_s;  ///< medians over draws, by task
  double startup_s = 0;               ///< of an engine; within the makespan unless it stays warm
  double nodes_staged = 0;            ///< that got the checkpoint
  double trials = 0, trials_failed = 0, trials_backed_up = 0,
         documents_again = 0;    ///< means over draws
  int64_t documents_scored = 0;  ///< least of all draws
  double estimate_error = 1;     ///< factor, mean over draws
  std::optional<double> published_speedup;
};

/// What a scenario came to; plain values, in seconds.
struct SimReport {
  Scenario scenario;
  std::vector<std::string> tasks;
  int64_t documents = 0;
  SimBound bound;  ///< of the draw in the middle
  SimSpreadOver bound_s, unknowing_bound_s;
  std::vector<PolicyReport> policies;  ///< those asked for
};

SimReport MakeReport(const Scenario& scenario, const ScenarioResult& result);

/// docs/simulate.md, "What --json prints".
Json ToJson(const SimReport& report);
/// The table for people.
std::string ReportText(const SimReport& report);

}  // namespace evald
