#pragma once

#include <filesystem>
#include <string>

#include "metrics/sandbox/sandbox.h"
#include "protocol/channel.h"

namespace evald {

struct MetricProcessOptions {
  std::string id;                ///< what the agent calls this process: "m0"
  std::filesystem::path socket;  ///< the agent's Unix socket
  SandboxOptions sandbox;
};

/// Serves an agent until it says Stop, until Drain and the last job, or until it is gone: asks for
/// one job at a time, scores it, reports. A thread of its own receives and sends a heartbeat twice
/// a second, also while a job runs. Returns the exit status: 0, or 3 when the agent has gone. A
/// sandbox that cannot be made is told in Hello, and fails only the jobs that run code.
int RunMetricProcess(const MetricProcessOptions& options);

/// The same on an open connection.
int RunMetricProcessOn(protocol::Channel* channel, const MetricProcessOptions& options);

}  // namespace evald
