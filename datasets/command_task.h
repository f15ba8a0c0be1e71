#pragma once

#include <filesystem>
#include <memory>

#include "datasets/leaf_task.h"
#include "datasets/task_set.h"

/// Tasks whose score a program of the user's computes (CommandSpec). Such a task has one document
/// with one request: the program is to run. It reads no data.
namespace evald {

/// The task of `request`, whose `command` is set.
std::shared_ptr<LeafTask::State> CommandTaskOf(const TaskRequest& request);

/// Like DescribeTask, for a task with a command.
TaskDefinition DescribeCommandTask(const LeafTask::State& task);

/// Like PrepareTask, for a task with a command. The content key covers the whole specification, so
/// that another command or another variable is another task.
std::filesystem::path PrepareCommandTask(const LeafTask::State& task,
                                         const PrepareOptions& options);

}  // namespace evald
