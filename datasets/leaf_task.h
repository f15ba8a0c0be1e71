#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "datasets/task_config.h"
#include "datasets/task_set.h"

namespace evald {

/// The content of a LeafTask.
struct LeafTask::State {
  TaskConfig config;
  /// A task of a run's own, not of a file: `config` then has only what results say of it
  std::optional<CommandSpec> command;
  std::optional<int64_t> limit;       ///< the first documents of the evaluated split
  std::optional<double> limit_share;  ///< in place of `limit`: a share of its documents, rounded up
  std::optional<bool> enable_thinking;
  ThinkEnd think_end;
  std::string request;  ///< the name by which the run asked for it: its own, a group's or a tag's
};

/// The task's definition from its configuration alone.
TaskDefinition DefinitionOf(const LeafTask::State& leaf);

/// Whether the folder holds a prepared task undamaged. A damaged one is removed, to be prepared
/// again; a process that has its files open keeps them.
bool IsPrepared(const std::filesystem::path& folder);

}  // namespace evald
