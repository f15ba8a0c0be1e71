#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "metrics/sandbox/sandbox.h"
#include "protocol/channel.h"
#include "task_code/task_code.h"

namespace evald {

struct MetricProcessOptions {
  std::string id;                ///< the agent's name for this process: "m0"
  std::filesystem::path socket;  ///< the agent's Unix socket
  SandboxOptions sandbox;
  TaskCodeOptions task_code;
  std::filesystem::path judge_cache;  ///< answers of judges (metrics/judge/answer_cache.h)
};

/// The memory that a metric process may take, without its sandboxed programs. If scoring takes
/// more, the job fails with an error that names the task, and is not tried again.
inline constexpr uint64_t kMetricMemoryMax = uint64_t{2} << 30;

/// Serves an agent: asks for one job at a time, scores it, and reports. Ends at Stop, at Drain
/// after the last job, or if the agent is gone. A thread of its own receives messages and sends a
/// heartbeat twice a second, also while a job runs. Returns the exit status: 0, or 3 if the agent
/// is gone. If the sandbox cannot be made, Hello says so, and only jobs that run code fail.
int RunMetricProcess(const MetricProcessOptions& options);

/// The same on an open connection.
int RunMetricProcessOn(protocol::Channel* channel, const MetricProcessOptions& options);

}  // namespace evald
