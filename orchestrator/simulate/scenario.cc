#include "orchestrator/simulate/scenario.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace evald {
namespace {

struct Case {
  std::string name;
  std::string policy;
  std::optional<Decouplings> decouplings;
};

// Evald's policy without one thing each. Without priors there is no order and no size to go by: datasets
// as they come.
std::vector<Case> Ablations() {
  Decouplings all;
  std::vector<Case> cases;
  const auto without = [&](const char* name, const char* policy, bool Decouplings::*what) {
    Decouplings changed = all;
    changed.*what = false;
    cases.push_back({std::string("elastic without ") + name, policy, changed});
  };
  without("load_once", "elastic", &Decouplings::load_once);
  without("score_elsewhere", "elastic", &Decouplings::score_elsewhere);
  without("use_priors", "decoupled-fifo", &Decouplings::use_priors);
  without("prepare_once", "elastic", &Decouplings::prepare_once);
  without("stay_warm", "elastic", &Decouplings::stay_warm);
  return cases;
}

std::vector<Case> CasesOf(const Scenario& scenario) {
  std::vector<Case> cases;
  for (const std::string& policy : scenario.policies) cases.push_back({policy, policy, std::nullopt});
  if (scenario.ablate) {
    for (Case& ablation : Ablations()) cases.push_back(std::move(ablation));
  }
  return cases;
}

// The datasets in another order; parts of one stay together.
Workload Shuffled(const Workload& workload, std::mt19937_64* random) {
  std::vector<int> order(static_cast<size_t>(workload.dataset_count()));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[(*random)() % i]);
  Workload shuffled = workload;
  shuffled.datasets.clear();
  for (size_t place = 0; place < order.size(); ++place) {
    for (SimDataset dataset : workload.datasets) {
      if (dataset.dataset != order[place]) continue;
      dataset.dataset = static_cast<int>(place);
      shuffled.datasets.push_back(std::move(dataset));
    }
  }
  return shuffled;
}

std::vector<TaskEstimate> Expected(const Scenario& scenario, const Workload& workload,
                                   const std::vector<SimTask>& tasks, std::mt19937_64* random) {
  if (scenario.no_priors) return GuessedEstimates(workload, scenario.cluster);
  std::vector<TaskEstimate> estimates;
  for (const SimTask& task : tasks) {
    TaskEstimate estimate = TrueEstimate(task, scenario.cluster.places);
    const auto wrong = [&] {
      const double unit = static_cast<double>((*random)() >> 11) * 0x1p-53;
      return std::exp((2 * unit - 1) * std::log(scenario.prior_error));
    };
    const double device = wrong();
    estimate.device_s *= device;
    estimate.request_s *= device;
    estimate.score_s *= wrong();
    estimates.push_back(std::move(estimate));
  }
  return estimates;
}

double BoundOf(const Scenario& scenario, const std::vector<SimTask>& tasks) {
  // No simulation is needed for it, but it is made of what one knows.
  SimResult facts;
  facts.stage_s = scenario.workload.model.bytes / scenario.cluster.storage_bytes_per_s;
  facts.first_generation_s = 1e300;
  for (const SimTask& task : tasks) {
    const TaskEstimate truth = TrueEstimate(task, scenario.cluster.places);
    const auto documents = static_cast<double>(truth.documents);
    facts.device_work_s += truth.device_s * documents;
    facts.longest_request_s = std::max(facts.longest_request_s, truth.request_s);
    facts.score_work_s += truth.score_s * documents;
    for (const float place_s : task.place_s) {
      facts.first_generation_s = std::min(facts.first_generation_s, static_cast<double>(place_s));
    }
  }
  return facts.bound_s(scenario.cluster);
}

}  // namespace

ScenarioResult RunScenario(const Scenario& scenario, const std::function<void(int, int)>& progress) {
  const std::vector<Case> cases = CasesOf(scenario);
  ScenarioResult result;
  for (const Case& one : cases) result.policies.push_back({one.name, {}});
  int done = 0;
  for (int draw = 0; draw < scenario.draws; ++draw) {
    std::mt19937_64 random(scenario.seed * 1'000'003 + static_cast<uint64_t>(draw));
    const Workload workload = scenario.shuffle ? Shuffled(scenario.workload, &random) : scenario.workload;
    const std::vector<SimTask> tasks = DrawTasks(workload, scenario.cluster, random());
    const std::vector<TaskEstimate> estimates = Expected(scenario, workload, tasks, &random);
    result.bounds_s.push_back(BoundOf(scenario, tasks));
    for (size_t i = 0; i < cases.size(); ++i) {
      Simulation::Options options;
      options.policy = cases[i].policy;
      options.decouplings = cases[i].decouplings;
      options.seed = scenario.seed + static_cast<uint64_t>(draw);
      options.faults.trial_failure_rate = scenario.trial_failure_rate;
      if (scenario.lose_node_at > 0) options.faults.node_lost_at_s = scenario.lose_node_at * result.bounds_s.back();
      options.keep_spans = scenario.keep_spans;
      if (scenario.no_priors) options.weight = 1;
      Simulation simulation(scenario.cluster, workload.model.bytes, tasks, estimates, options);
      result.policies[i].draws.push_back(simulation.Run());
      progress(++done, scenario.draws * static_cast<int>(cases.size()));
    }
  }
  return result;
}

}  // namespace evald
