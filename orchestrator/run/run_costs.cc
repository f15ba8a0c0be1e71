#include "orchestrator/run/run_costs.h"

#include <algorithm>
#include <cmath>

namespace evald {

void PartMean::Add(double documents, double sum) {
  if (documents <= 0) return;
  documents_ += documents;
  sum_ += sum;
  squares_ += sum * sum / documents;
}

double PartMean::deviation() const {
  if (documents_ <= 0) return 0;
  const double mean = sum_ / documents_;
  return std::sqrt(std::max(0.0, squares_ / documents_ - mean * mean));
}

void RunCosts::SawSlice(size_t task, const std::string& device, int64_t documents,
                        int64_t tokens_in, int64_t tokens_out, double device_s, double longest_s) {
  Device& seen = generated_[task][device];
  seen.seconds.Add(static_cast<double>(documents), device_s);
  seen.tokens_in += static_cast<double>(tokens_in);
  seen.tokens_out += static_cast<double>(tokens_out);
  seen.longest_s = std::max(seen.longest_s, longest_s);
}

void RunCosts::SawJob(size_t task, int64_t documents, double slot_s) {
  scored_[task].Add(static_cast<double>(documents), slot_s);
}

std::vector<TaskCost> RunCosts::Measured(const Suite& suite, const CostPlace& place,
                                         double ended) const {
  std::vector<TaskCost> costs;
  for (const auto& [task, devices] : generated_) {
    const TaskFacts facts = FactsOf(suite.tasks[task]);
    for (const auto& [device, seen] : devices) {
      TaskCost cost;
      cost.task = facts.name;
      cost.task_key = facts.key;
      cost.place = place;
      cost.place.device = device;
      cost.generates = facts.generates;
      cost.ended = ended;
      cost.prepare_s = suite.tasks[task].prepare_s;
      cost.documents = static_cast<int64_t>(seen.seconds.documents());
      cost.tokens_in = seen.tokens_in;
      cost.tokens_out = seen.tokens_out;
      cost.device_s = seen.seconds.sum();
      cost.device_deviation_s = seen.seconds.deviation();
      cost.longest_s = seen.longest_s;
      const auto scored = scored_.find(task);
      if (scored != scored_.end()) {
        cost.scored = static_cast<int64_t>(scored->second.documents());
        cost.score_s = scored->second.sum();
        cost.score_deviation_s = scored->second.deviation();
      }
      costs.push_back(std::move(cost));
    }
  }
  return costs;
}

Json RunCosts::Report(const Suite& suite) const {
  Json tasks = Json::object();
  double weighted = 0, all = 0;
  for (const auto& [task, devices] : generated_) {
    if (task >= priors_.size()) continue;
    const Prior& prior = priors_[task];
    double documents = 0, device_s = 0;
    for (const auto& [device, seen] : devices) {
      documents += seen.seconds.documents();
      device_s += seen.seconds.sum();
    }
    const double expected = prior.estimate.device_s * documents;
    Json entry = {{"basis", prior.basis},
                  {"within_factor", prior.factor},
                  {"documents", documents},
                  {"expected_device_s", expected},
                  {"device_s", device_s}};
    if (expected > 0 && device_s > 0) {
      entry["factor"] = expected / device_s;
      weighted += device_s * std::abs(std::log(expected / device_s));
      all += device_s;
    }
    const auto scored = scored_.find(task);
    if (scored != scored_.end()) {
      entry["expected_score_s"] = prior.estimate.score_s * scored->second.documents();
      entry["score_s"] = scored->second.sum();
    }
    tasks[suite.tasks[task].definition.name] = std::move(entry);
  }
  return {{"tasks", std::move(tasks)},
          {"factor", all > 0 ? Json(std::exp(weighted / all)) : Json()}};
}

TaskFacts FactsOf(const SuiteTask& task) {
  TaskFacts facts;
  facts.name = task.definition.name;
  facts.key = task.prepared.filename().string();
  facts.generates = task.definition.output_type == "generate_until";
  facts.slow_scoring = task.definition.unsafe_code || UsesJudge(task.definition);
  facts.documents = task.documents;
  facts.tokens_in = task.tokens_in;
  facts.prefix_tokens = task.prefix_tokens;
  facts.tokens_out_most = task.tokens_out_most;
  if (task.definition.command) facts.declared_s = task.definition.command->time_limit_s;
  return facts;
}

}  // namespace evald
