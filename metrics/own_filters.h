#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"
#include "task_code/task_code.h"

// Steps of filter pipelines that are a task's own Python (docs/task-code.md, "Filters").
namespace evald {

/// What a step did with the responses to one document.
struct OwnStep {
  Json given;
  bool lazy = false;  ///< the step got an iterator
  Json left;
  bool leaves_lazy = false;
};

/// {"step": number, "given", "lazy", "left"}.
Json ToJson(OwnStep step, size_t number);

/// A step: a function, or the class of a filter.
struct OwnFilter {
  std::string function;
  bool custom = false;  ///< a function of (responses, documents)
  Json settings = Json::object();

  /// Runs the step on one document alone. Throws Error(kInput) if the function throws, or gives
  /// what a filter does not.
  OwnStep Apply(TaskCode* code, Json responses, bool lazy, const PreparedDocument& document) const;
};

/// Nothing for a step that is built in, or unknown. Throws Error(kInput) for settings that Python
/// would not get as the harness gives them.
std::optional<OwnFilter> OwnFilterOf(const FilterStep& step);

/// Throws Error(kInput): the process may not run the task's own functions.
[[noreturn]] void RefuseOwnFilter(const OwnFilter& filter, const std::vector<std::string>& served);

/// Whether a built-in filter leaves an iterator, not a list, for the next step.
bool LeavesIterator(std::string_view filter);

/// Throws Error(kInput) for a setting of a metric or filter that is itself a function.
void RefuseFunctionsIn(const Json& settings, const std::string& whose);

/// Whether a step of the task's pipelines is its own.
bool HasOwnFilters(const TaskDefinition& task);

/// The harness hands a filter all documents at once, and evald one after another. So each own step
/// runs again at the end, on all documents in one call; it must leave the same of each. One thread
/// at a time.
class OwnFilterCheck {
 public:
  /// The longest time that a step may take for all documents.
  static constexpr double kSeconds = 600;

  /// Starts the process and imports the functions. Throws like StartTaskCode. All calls throw
  /// Error(kInfrastructure) soon after `stopped` has become true.
  OwnFilterCheck(const TaskDefinition& task, const PreparedTask& prepared, TaskCodeOptions options,
                 std::function<bool()> stopped = nullptr);
  ~OwnFilterCheck();

  /// `score` gives the own steps of a document's scores under each pipeline. Throws Error(kInput)
  /// with the first document whose responses come out differently.
  void Run(const std::function<ScoredDocument(int64_t document)>& score);

 private:
  struct Place;
  void RunStep(const Place& place, const std::function<ScoredDocument(int64_t)>& score);

  TaskDefinition task_;
  const PreparedTask& prepared_;
  uint64_t seed_;
  std::unique_ptr<TaskCode> code_;
};

}  // namespace evald
