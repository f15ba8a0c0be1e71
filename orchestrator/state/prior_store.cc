#include "orchestrator/state/prior_store.h"

#include <fmt/format.h>

#include <cmath>

#include "base/jsonl.h"
#include "base/log.h"

namespace evald::prior_store {
namespace {

constexpr const char* kSchema = "evald-priors/1";

// A member of the JSON form. It must be finite and not negative.
double Amount(const Json& json, const char* name, const std::string& where) {
  const double value = Field<double>(json, name, where);
  if (std::isfinite(value) && value >= 0) return value;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {}: found {}, expected a number of at least 0", where, name, value));
}

int64_t Count(const Json& json, const char* name, const std::string& where) {
  const auto value = Field<int64_t>(json, name, where);
  if (value >= 0) return value;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {}: found {}, expected a number of at least 0", where, name, value));
}

Json CostToJson(const TaskCost& cost) {
  return {{"task", cost.task},
          {"task_key", cost.task_key},
          {"device", cost.place.device},
          {"model", cost.place.model},
          {"model_bytes", cost.place.model_bytes},
          {"generates", cost.generates},
          {"ended", cost.ended},
          {"prepare_s", cost.prepare_s},
          {"documents", cost.documents},
          {"tokens_in", cost.tokens_in},
          {"tokens_out", cost.tokens_out},
          {"device_s", cost.device_s},
          {"device_deviation_s", cost.device_deviation_s},
          {"longest_s", cost.longest_s},
          {"scored", cost.scored},
          {"score_s", cost.score_s},
          {"score_deviation_s", cost.score_deviation_s}};
}

TaskCost CostFromJson(const Json& json, const std::string& where) {
  TaskCost cost;
  cost.task = Field<std::string>(json, "task", where);
  cost.task_key = Field<std::string>(json, "task_key", where);
  cost.place.device = Field<std::string>(json, "device", where);
  cost.place.model = Field<std::string>(json, "model", where);
  cost.place.model_bytes = Amount(json, "model_bytes", where);
  cost.generates = Field<bool>(json, "generates", where);
  cost.ended = Amount(json, "ended", where);
  cost.prepare_s = Amount(json, "prepare_s", where);
  cost.documents = Count(json, "documents", where);
  cost.tokens_in = Amount(json, "tokens_in", where);
  cost.tokens_out = Amount(json, "tokens_out", where);
  cost.device_s = Amount(json, "device_s", where);
  cost.device_deviation_s = Amount(json, "device_deviation_s", where);
  cost.longest_s = Amount(json, "longest_s", where);
  cost.scored = Count(json, "scored", where);
  cost.score_s = Amount(json, "score_s", where);
  cost.score_deviation_s = Amount(json, "score_deviation_s", where);
  return cost;
}

}  // namespace

void Add(Database& database, const TaskCost& cost) {
  database
      .Prepare(
          "INSERT OR REPLACE INTO costs (task_key, device, model, ended, cost) VALUES (?, ?, ?, ?, "
          "?)")
      .Bind(cost.task_key)
      .Bind(cost.place.device)
      .Bind(cost.place.model)
      .Bind(cost.ended)
      .Bind(CostToJson(cost).dump())
      .Run();
  database
      .Prepare(
          "DELETE FROM costs WHERE task_key = ?1 AND device = ?2 AND model = ?3 AND ended NOT IN "
          "(SELECT ended FROM costs WHERE task_key = ?1 AND device = ?2 AND model = ?3 ORDER BY "
          "ended DESC LIMIT ?4)")
      .Bind(cost.task_key)
      .Bind(cost.place.device)
      .Bind(cost.place.model)
      .Bind(int64_t{kRunsKept})
      .Run();
}

std::vector<TaskCost> All(Database& database) {
  std::vector<TaskCost> costs;
  Statement rows = database.Prepare("SELECT cost FROM costs ORDER BY ended DESC");
  while (rows.Step()) {  // a damaged estimate counts as none
    try {
      costs.push_back(CostFromJson(ParseJson(rows.Text(0), "state.db: costs"), "state.db: costs"));
    } catch (const Error& e) {
      log::Warn("passed over: {}", e.what());
    }
  }
  return costs;
}

Json ToJson(const std::vector<TaskCost>& costs) {
  Json list = Json::array();
  for (const TaskCost& cost : costs) list.push_back(CostToJson(cost));
  return {{"schema", kSchema}, {"costs", std::move(list)}};
}

std::vector<TaskCost> FromJson(const Json& json, const std::string& where) {
  const auto schema = Field<std::string>(json, "schema", where);
  if (schema != kSchema) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: schema: found '{}', expected '{}'", where, schema, kSchema),
                "export the priors again with `evald priors --export FILE`");
  }
  std::vector<TaskCost> costs;
  const Json list = Field<Json>(json, "costs", where);
  if (!list.is_array()) throw Error(ErrorKind::kInput, where + ": costs: expected an array");
  for (size_t i = 0; i < list.size(); ++i)
    costs.push_back(CostFromJson(list[i], fmt::format("{}: costs[{}]", where, i)));
  return costs;
}

}  // namespace evald::prior_store
