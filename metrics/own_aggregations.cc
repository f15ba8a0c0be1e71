#include "metrics/own_aggregations.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/filter_support.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/task_codes.h"

namespace evald {
namespace {

constexpr uint64_t kWaitingBytesMax = uint64_t{4} << 20;
constexpr uint64_t kValueBytesMax = uint64_t{1} << 20;

// The function that aggregates the metric; "" if the aggregation is built in.
std::string FunctionFor(const TaskDefinition& task, const std::string& metric) {
  return UsesTaskCode(task) ? OwnAggregation(AggregationFor(task, metric)) : "";
}

// All functions that the process imports, in the order in which a metric process would.
std::vector<std::string> FunctionsOf(const TaskDefinition& task) {
  std::vector<std::string> functions = ScoringFunctions(task);
  const auto add = [&](const std::string& function) {
    const bool known = std::find(functions.begin(), functions.end(), function) != functions.end();
    if (!function.empty() && !known) functions.push_back(function);
  };
  for (const MetricSpec& spec : task.metrics) add(OwnAggregation(spec.aggregation));
  return functions;
}

TaskCodeOptions ForAggregations(TaskCodeOptions options) {
  options.call_seconds = OwnAggregations::kSeconds;
  return options;
}

}  // namespace

bool HasOwnAggregations(const TaskDefinition& task) {
  return UsesTaskCode(task) &&
         std::any_of(task.metrics.begin(), task.metrics.end(), [](const MetricSpec& spec) {
           return !OwnAggregation(spec.aggregation).empty();
         });
}

void DropItems(const TaskDefinition& task, ScoredDocument* score) {
  for (FilterScore& filter : score->filters) {
    filter.python = nullptr;
    for (auto& [metric, value] : filter.metrics.items()) {
      if (!FunctionFor(task, metric).empty()) value = nullptr;
    }
  }
}

// The values of a metric under a filter.
struct OwnAggregations::Column {
  std::string function;
  TaskCode::Items items;
  Json waiting = Json::array();
};

OwnAggregations::OwnAggregations(const TaskDefinition& task, const PreparedTask& prepared,
                                 TaskCodeOptions options, std::function<bool()> stopped)
    : task_(task),
      code_(StartTaskCode(prepared, ForAggregations(std::move(options)), FunctionsOf(task),
                          std::move(stopped))) {}

OwnAggregations::~OwnAggregations() = default;

void OwnAggregations::Add(const ScoredDocument& score) {
  for (const FilterScore& filter : score.filters) {
    for (const auto& [metric, value] : filter.metrics.items()) {
      const std::string function = FunctionFor(task_, metric);
      if (function.empty()) continue;
      Json packed = Json::array({value});
      if (filter.python.is_object() && filter.python.contains(metric))
        packed.push_back(filter.python[metric]);
      waiting_bytes_ += BytesOf(packed);
      Column& column = columns_[{metric, filter.filter}];
      column.function = function;
      column.waiting.push_back(std::move(packed));
    }
  }
  if (waiting_bytes_ < kWaitingBytesMax) return;
  for (auto& [key, column] : columns_) Send(&column);
  waiting_bytes_ = 0;
}

void OwnAggregations::Send(Column* column) {
  if (column->waiting.empty()) return;
  code_->AddItems(column->function, std::exchange(column->waiting, Json::array()), &column->items);
}

Json OwnAggregations::Aggregate(const std::string& metric, const std::string& filter) {
  Column& column = columns_.at({metric, filter});
  Send(&column);
  // The values of process_results, of a task's own metrics, and those of generated answers are what
  // the harness has.
  const bool shaped = task_.process_results.empty() && task_.output_type != "generate_until";
  Json value = code_->Aggregate(column.function, column.items, shaped ? metric : "");
  if (BytesOf(value) <= kValueBytesMax) return value;
  throw Error(ErrorKind::kInput, fmt::format("the function '{}' gives a value of more than {}",
                                             column.function, HumanBytes(kValueBytesMax)));
}

}  // namespace evald
