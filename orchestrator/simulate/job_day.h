#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evald/json.h"
#include "orchestrator/simulate/cluster.h"
#include "orchestrator/simulate/report.h"

namespace evald {

/// How long evaluation jobs of a cluster take, as published: shares of jobs by their length.
struct JobLengths {
  std::string name;
  std::vector<double> at_most_share;  ///< of jobs that take at most 8, 16, 32, ... 8192 seconds
  /// The length that a share `u` of jobs, in [0, 1), does not exceed: log-uniform between the
  /// published points, from 1 to 16,384 seconds.
  double Quantile(double u) const;
};
/// Seren and Kalos, the two clusters of "Characterization of Large Language Model Development in
/// the Datacenter" (NSDI 2024).
const std::vector<JobLengths>& PublishedJobLengths();

/// Days on which checkpoints come at random, each with a job for each of its datasets.
struct JobDay {
  SimCluster cluster;
  std::vector<std::string> policies;
  int days = 1;
  uint64_t seed = 1;
  double load = 0.85;        ///< of the devices, were all jobs coupled
  int datasets = 63;         ///< jobs of a checkpoint
  double weights_bytes = 0;  ///< of a checkpoint
};

struct JobDayReport {
  struct OfPolicy {
    std::string name;
    SimSpreadOver latency_s;    ///< of a checkpoint: from its arrival to its last score
    double held_share = 0;      ///< of all device time
    double generate_share = 0;  ///< of the time held
  };
  struct OfCluster {
    std::string lengths;
    int64_t jobs = 0;  ///< over all days
    double mean_s = 0;
    std::vector<OfPolicy> policies;
  };
  JobDay day;
  std::vector<OfCluster> clusters;
};

/// docs/simulate.md, "A day of a cluster". Throws Error(kUsage) for a policy if no published figure
/// says how long its jobs hold a device.
JobDayReport SimulateJobDay(const JobDay& day);

Json ToJson(const JobDayReport& report);
std::string JobDayText(const JobDayReport& report);

}  // namespace evald
