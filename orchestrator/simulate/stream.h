#pragma once

#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/simulate/report.h"

namespace evald {

/// A training run that leaves a checkpoint every so often, all evaluated on the same devices.
struct StreamReport {
  struct OfPolicy {
    std::string name;
    std::vector<double> latency_s;  ///< by checkpoint: from its arrival to its last score
    double load =
        0;  ///< device time of a checkpoint over that of an interval; above 1 it falls behind
    bool keeps_up() const { return load <= 1; }
  };
  double every_s = 0;
  std::vector<OfPolicy> policies;
};

/// Every draw is a checkpoint; all have to have kept their spans. Each checkpoint was simulated
/// alone. Its trials are queued when it arrives: a device that is free takes the next trial of the
/// oldest one. Staging goes on beside; a warm device pulls the weights when it changes checkpoints.
StreamReport MakeStream(const Scenario& scenario, const ScenarioResult& result, double every_s);

Json ToJson(const StreamReport& report);
std::string StreamText(const StreamReport& report);

}  // namespace evald
