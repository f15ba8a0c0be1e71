#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"
#include "task_code/task_code.h"

namespace evald {

/// Whether an aggregation of the task is a function of its own.
bool HasOwnAggregations(const TaskDefinition& task);

/// Leaves null in place of the values that go to the task's own aggregations, which may be long.
void DropItems(const TaskDefinition& task, ScoredDocument* score);

/// The aggregations of a task that are functions of its own (docs/task-code.md). They run in a
/// process of their own, which also holds the values. One thread at a time.
class OwnAggregations {
 public:
  /// The longest time that an aggregation may take.
  static constexpr double kSeconds = 600;

  /// Starts the process and imports the functions. Throws like StartTaskCode. All calls throw
  /// Error(kInfrastructure) soon after `stopped` has become true.
  OwnAggregations(const TaskDefinition& task, const PreparedTask& prepared, TaskCodeOptions options,
                  std::function<bool()> stopped = nullptr);
  ~OwnAggregations();

  /// Takes the values of a document. Documents come in order of doc_id.
  void Add(const ScoredDocument& score);

  /// The function's value for a metric under a filter: mostly a number, in the form of scores
  /// files. Throws Error(kInput) if the function throws.
  Json Aggregate(const std::string& metric, const std::string& filter);

 private:
  struct Column;
  void Send(Column* column);

  TaskDefinition task_;
  std::unique_ptr<TaskCode> code_;
  std::map<std::pair<std::string, std::string>, Column> columns_;  ///< by metric and filter
  uint64_t waiting_bytes_ = 0;  ///< of values that the process does not have yet
};

}  // namespace evald
