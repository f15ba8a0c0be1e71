#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evald/task.h"
#include "prepared/prepared_task.h"
#include "task_code/task_code.h"

namespace evald {

/// The task's own functions that its scoring calls, in the order in which they are imported:
/// process_results, metrics and filters.
std::vector<std::string> ScoringFunctions(const TaskDefinition& task);

/// Starts a process for the functions of a prepared task, which gets the files that are kept with
/// the task, and imports these functions. Its calls end soon after `stopped` has become true, which
/// may be null. Throws like TaskCode, and Error(kInput) if this host does not run task code.
std::unique_ptr<TaskCode> StartTaskCode(const PreparedTask& prepared,
                                        const TaskCodeOptions& options,
                                        const std::vector<std::string>& functions,
                                        std::function<bool()> stopped);

/// The process that runs the functions of tasks while they are scored. It gets the files that are
/// kept with a prepared task, so that scoring needs no folder of task files. Tasks whose functions
/// are in other files get a process of their own, since these may belong to other users. The
/// process ends before a task without functions is scored. One thread at a time.
class TaskCodes {
 public:
  /// The longest time that a function may take for a document.
  static constexpr double kSecondsPerDocument = 60;

  explicit TaskCodes(TaskCodeOptions options) : options_(std::move(options)) {
    options_.call_seconds = kSecondsPerDocument;
  }

  /// The process for the task's functions; null if the task has none. It stays until the next call.
  /// Throws like TaskCode, and Error(kInput) if this host does not run task code.
  TaskCode* For(const PreparedTask& prepared);

  /// The next call starts a process anew.
  void Drop() { code_.reset(); }

 private:
  TaskCodeOptions options_;
  std::unique_ptr<TaskCode> code_;
  std::string hash_;  ///< of the files that `code_` has
};

}  // namespace evald
