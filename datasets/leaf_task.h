#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "datasets/task_config.h"
#include "datasets/task_set.h"

namespace evald {

/// What a LeafTask stands for.
struct LeafTask::State {
  TaskConfig config;
  std::optional<int64_t> limit;  ///< first documents of the evaluated split
};

}  // namespace evald
