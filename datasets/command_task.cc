#include "datasets/command_task.h"

#include <fmt/format.h>

#include "base/sha256.h"
#include "base/text.h"
#include "prepared/cache.h"
#include "prepared/prepared_task.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Must change whenever the same specification gives another prepared task than before.
constexpr int kFormatVersion = 1;

std::string KeyOf(const LeafTask::State& task) {
  const Json content = {{"command_format", kFormatVersion},
                        {"name", task.config.name},
                        {"command", ToJson(*task.command)}};
  return ContentKey(content.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// The request holds what a person sees of it; the program gets its words from the definition.
void Write(const LeafTask::State& task, PreparedTaskWriter* writer) {
  const Json spec = ToJson(*task.command);
  PreparedDocument document;
  // Runs are compared if this is equal: another time limit gives the same scores.
  document.doc = {{"command", spec.at("command")}, {"results", spec.at("results")}};
  document.target = "";
  Request request;
  request.kind = RequestKind::kGenerateUntil;
  request.context = Join(task.command->command, " ");
  request.sampling.max_gen_toks = 1;
  writer->Add(document, {request});
  writer->Finish();
}

}  // namespace

std::shared_ptr<LeafTask::State> CommandTaskOf(const TaskRequest& request) {
  auto state = std::make_shared<LeafTask::State>();
  state->command = request.command;
  state->request = request.name;
  TaskConfig& config = state->config;
  config.name = config.alias = request.name;
  config.where = request.where;
  config.filters = {{"none", {{"take_first", Json::object()}}}};
  for (const CommandScore& score : request.command->scores) {
    MetricSpec& metric = config.metrics.emplace_back();
    metric.metric = score.name;
    metric.function = kCommandMetric;
    metric.aggregation = "mean";
    metric.higher_is_better = score.higher_is_better;
  }
  config.dump = ToJson(*request.command);
  config.dump["task"] = request.name;
  config.dump["output_type"] = config.output_type;
  config.dump["num_fewshot"] = 0;
  config.dump["metric_list"] = Json::array();
  for (const MetricSpec& metric : config.metrics) {
    config.dump["metric_list"].push_back({{"metric", metric.metric},
                                          {"aggregation", metric.aggregation},
                                          {"higher_is_better", metric.higher_is_better}});
  }
  return state;
}

TaskDefinition DescribeCommandTask(const LeafTask::State& task) {
  TaskDefinition definition = DefinitionOf(task);
  definition.original_documents = definition.effective_documents = 1;
  definition.sources = {{"key", KeyOf(task)}, {"format", kFormatVersion}};
  return definition;
}

fs::path PrepareCommandTask(const LeafTask::State& task, const PrepareOptions& options) {
  MakePreparedCache(options.cache_dir);
  const std::string key = KeyOf(task);
  const fs::path folder = options.cache_dir / "prepared" / key;
  if (options.holds) options.holds(key);
  if (IsPrepared(folder)) return folder;
  const TaskDefinition definition = DescribeCommandTask(task);
  if (options.checker) options.checker(definition);
  PreparedTaskWriter writer(folder, ToJson(definition), options.prepared_bytes_max);
  Write(task, &writer);
  return folder;
}

}  // namespace evald
