#include "orchestrator/simulate/report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/version.h"
#include "orchestrator/simulate/presets.h"

namespace evald {
namespace {

using ValueOf = std::function<double(size_t draw)>;

SimSpreadOver Over(size_t draws, const ValueOf& value) {
  std::vector<double> values;
  for (size_t draw = 0; draw < draws; ++draw) values.push_back(value(draw));
  return Summarise(std::move(values));
}

double MeanOver(size_t draws, const ValueOf& value) {
  double sum = 0;
  for (size_t draw = 0; draw < draws; ++draw) sum += value(draw);
  return sum / static_cast<double>(draws);
}

const PolicyOutcome& Coupled(const ScenarioResult& result) {
  return *std::find_if(result.policies.begin(), result.policies.end(),
                       [](const PolicyOutcome& policy) { return policy.name == "coupled"; });
}

std::map<std::string, double> DeviceTime(const PolicyOutcome& policy) {
  std::map<std::string, double> shares;
  const size_t draws = policy.draws.size();
  double used = 0;
  for (const std::string& cause : DeviceTimeCauses()) {
    shares[cause] = MeanOver(draws, [&](size_t draw) {
      const SimResult& one = policy.draws[draw];
      if (cause == "generate") return one.generate_share;
      const auto found = one.lost_shares.find(cause);
      return found == one.lost_shares.end() ? 0.0 : found->second;
    });
    used += shares[cause];
  }
  shares["idle"] = std::max(0.0, 1 - used);
  return shares;
}

PolicyReport MakePolicyReport(const Scenario& scenario, const ScenarioResult& result,
                              const PolicyOutcome& policy) {
  const std::vector<SimResult>& draws = policy.draws;
  const std::vector<SimResult>& coupled = Coupled(result).draws;
  const size_t count = draws.size();
  const auto over = [&](const ValueOf& value) { return Over(count, value); };
  PolicyReport report;
  report.name = policy.name;
  report.decouplings = policy.decouplings;
  report.makespan_s = over([&](size_t i) { return draws[i].makespan_s; });
  report.ratio_to_bound =
      over([&](size_t i) { return draws[i].makespan_s / result.bounds[i].total_s(); });
  report.ratio_to_left_bound = over([&](size_t i) {
    return draws[i].makespan_s / std::max(result.bounds[i].total_s(), draws[i].left_bound_s);
  });
  report.ratio_to_unknowing_bound = over([&](size_t i) {
    return draws[i].makespan_s / std::max(result.bounds[i].unknowing_s(), draws[i].left_bound_s);
  });
  report.speedup_vs_coupled =
      over([&](size_t i) { return coupled[i].makespan_s / draws[i].makespan_s; });
  report.gpu_idle_share = over([&](size_t i) { return draws[i].idle_share; });
  report.device_time = DeviceTime(policy);
  for (size_t task = 0; task < scenario.workload.datasets.size(); ++task) {
    report.task_scored_s.push_back(
        over([&](size_t i) { return draws[i].task_scored_s[task]; }).p50);
  }
  report.startup_s = scenario.cluster.start_s;
  report.trials = MeanOver(count, [&](size_t i) { return static_cast<double>(draws[i].trials); });
  report.nodes_staged =
      MeanOver(count, [&](size_t i) { return static_cast<double>(draws[i].nodes_staged); });
  report.trials_failed =
      MeanOver(count, [&](size_t i) { return static_cast<double>(draws[i].trials_failed); });
  report.documents_again =
      MeanOver(count, [&](size_t i) { return static_cast<double>(draws[i].documents_again); });
  report.trials_backed_up =
      MeanOver(count, [&](size_t i) { return static_cast<double>(draws[i].trials_backed_up); });
  report.estimate_error = MeanOver(count, [&](size_t i) { return draws[i].estimate_error; });
  report.documents_scored = draws[0].documents_scored;
  for (const SimResult& draw : draws)
    report.documents_scored = std::min(report.documents_scored, draw.documents_scored);
  report.published_speedup = PublishedSpeedup(scenario, policy.name);
  return report;
}

Json ToJson(const Decouplings& value) {
  return {{"load_once", value.load_once},
          {"score_elsewhere", value.score_elsewhere},
          {"use_priors", value.use_priors},
          {"prepare_once", value.prepare_once},
          {"stay_warm", value.stay_warm}};
}

Json ToJson(const SimReport& report, const PolicyReport& policy) {
  Json tasks = Json::object();
  for (size_t i = 0; i < report.tasks.size(); ++i) tasks[report.tasks[i]] = policy.task_scored_s[i];
  Json time = Json::object();
  for (const std::string& cause : DeviceTimeCauses()) time[cause] = policy.device_time.at(cause);
  time["idle"] = policy.device_time.at("idle");
  Json json = {{"name", policy.name},
               {"makespan_s", policy.makespan_s.p50},
               {"ratio_to_bound", policy.ratio_to_bound.p50},
               {"speedup_vs_coupled", policy.speedup_vs_coupled.p50},
               {"gpu_idle_share", policy.gpu_idle_share.p50},
               {"device_time", time},
               {"startup_in_makespan", !policy.decouplings.stay_warm},
               {"decouplings", ToJson(policy.decouplings)},
               {"trials", policy.trials},
               {"nodes_staged", policy.nodes_staged},
               {"documents_scored", policy.documents_scored},
               {"estimate_error", policy.estimate_error},
               {"over_draws",
                {{"makespan_s", ToJson(policy.makespan_s)},
                 {"ratio_to_bound", ToJson(policy.ratio_to_bound)},
                 {"ratio_to_unknowing_bound", ToJson(policy.ratio_to_unknowing_bound)},
                 {"speedup_vs_coupled", ToJson(policy.speedup_vs_coupled)},
                 {"gpu_idle_share", ToJson(policy.gpu_idle_share)}}},
               {"task_scored_s", tasks}};
  if (report.scenario.has_faults()) {
    json["trials_failed"] = policy.trials_failed;
    json["documents_again"] = policy.documents_again;
    json["trials_backed_up"] = policy.trials_backed_up;
    json["over_draws"]["ratio_to_left_bound"] = ToJson(policy.ratio_to_left_bound);
  }
  if (policy.published_speedup) json["published_speedup"] = *policy.published_speedup;
  return json;
}

Json ClusterJson(const SimCluster& cluster) {
  return {{"name", cluster.name},
          {"nodes", cluster.nodes},
          {"devices", cluster.devices()},
          {"score_slots", cluster.score_slots()},
          {"staging", Name(cluster.staging)},
          {"places", cluster.places}};
}

Json ArgumentsJson(const Scenario& scenario) {
  return {{"draws", scenario.draws},
          {"seed", scenario.seed},
          {"prior_error", scenario.prior_error},
          {"no_priors", scenario.no_priors},
          {"file_order", !scenario.shuffle},
          {"fail_rate", scenario.trial_failure_rate},
          {"lose_node_at", scenario.lose_node_at},
          {"slow_device", scenario.slow_device},
          {"slow_node", scenario.slow_node},
          {"policies", scenario.policies},
          {"ablate", scenario.ablate}};
}

}  // namespace

Json ToJson(const SimSpreadOver& value) {
  return {{"min", value.least},
          {"p5", value.p5},
          {"p50", value.p50},
          {"p95", value.p95},
          {"max", value.most}};
}

SimSpreadOver Summarise(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  return {values.front(), at(0.05), at(0.5), at(0.95), values.back()};
}

const std::vector<std::string>& DeviceTimeCauses() {
  static const std::vector<std::string> causes = {"generate", "start", "load", "prepare", "score"};
  return causes;
}

SimReport MakeReport(const Scenario& scenario, const ScenarioResult& result) {
  SimReport report;
  report.scenario = scenario;
  for (const SimDataset& dataset : scenario.workload.datasets) {
    report.tasks.push_back(dataset.name);
    report.documents += dataset.documents;
  }
  report.bound_s =
      Over(result.bounds.size(), [&](size_t draw) { return result.bounds[draw].total_s(); });
  report.unknowing_bound_s =
      Over(result.bounds.size(), [&](size_t draw) { return result.bounds[draw].unknowing_s(); });
  std::vector<SimBound> bounds = result.bounds;
  const auto middle = bounds.begin() + static_cast<ptrdiff_t>(bounds.size() / 2);
  std::nth_element(bounds.begin(), middle, bounds.end(),
                   [](const SimBound& a, const SimBound& b) { return a.total_s() < b.total_s(); });
  report.bound = *middle;
  for (const PolicyOutcome& policy : result.policies) {
    if (!policy.reference) report.policies.push_back(MakePolicyReport(scenario, result, policy));
  }
  return report;
}

Json ToJson(const SimReport& report) {
  const Scenario& scenario = report.scenario;
  Json policies = Json::array();
  for (const PolicyReport& policy : report.policies) policies.push_back(ToJson(report, policy));
  return {
      {"schema", "evald-simulation/1"},
      {"evald_version", kEvaldVersion},
      {"arguments", ArgumentsJson(scenario)},
      {"workload",
       {{"name", scenario.workload.name},
        {"datasets", scenario.workload.dataset_count()},
        {"tasks", report.tasks.size()},
        {"documents", report.documents}}},
      {"cluster", ClusterJson(scenario.cluster)},
      {"bound_s", report.bound_s.p50},
      {"unknowing_bound_s", report.unknowing_bound_s.p50},
      {"bound",
       {{"stage_s", report.bound.stage_s},
        {"device_work_s", report.bound.work_s},
        {"longest_request_s", report.bound.longest_request_s},
        {"long_requests_s", report.bound.long_requests_s},
        {"scoring_s", report.bound.scoring_s},
        {"in_order_s", report.bound.in_order_s},
        {"over_draws", ToJson(report.bound_s)}}},
      {"startup",
       {{"engine_s", scenario.cluster.start_s}, {"prepare_dataset_s", scenario.cluster.prepare_s}}},
      {"policies", std::move(policies)}};
}

}  // namespace evald
