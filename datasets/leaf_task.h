#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "datasets/task_config.h"
#include "datasets/task_set.h"

namespace evald {

/// The content of a LeafTask.
struct LeafTask::State {
  TaskConfig config;
  std::optional<int64_t> limit;  ///< the first documents of the evaluated split
  std::optional<bool> enable_thinking;
  ThinkEnd think_end;
};

}  // namespace evald
