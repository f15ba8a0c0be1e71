#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "datasets/task_data.h"
#include "evald/error.h"

namespace evald {

/// Collects why tasks of a run cannot be prepared, so that one error names all of it.
class Missing {
 public:
  /// Why a task cannot be scored or prepared.
  void Add(const std::string& task, const Error& error);
  /// A split of a task's data, if it was not found.
  void Add(const std::string& task, const SplitFound& split);

  /// Throws the one error that was added, or Error(kInput) with a part for each cause and the tasks
  /// that it stops. Does nothing if none was added. `tasks` is the number of the run's tasks.
  void ThrowIfAny(size_t tasks) const;

 private:
  struct Cause {
    std::string key;   ///< equal for tasks that are stopped by the same
    std::string text;  ///< without the task
    Error error;       ///< the first task's
    std::vector<std::string> tasks;
  };
  void AddCause(const std::string& task, std::string key, std::string text, const Error& error);

  std::vector<Cause> causes_;
};

}  // namespace evald
