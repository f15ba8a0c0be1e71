#include "orchestrator/simulate/scenario.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "base/parallel.h"

namespace evald {
namespace {

constexpr const char* kReference = "coupled";

struct Case {
  std::string name;
  std::string policy;
  Decouplings decouplings;
  bool reference = false;
};

// Evald's policy without one thing each. Without priors there is no order and no size to go by:
// datasets as they come.
std::vector<Case> Ablations() {
  Decouplings all;
  std::vector<Case> cases;
  const auto without = [&](const char* name, const char* policy, bool Decouplings::* what) {
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
  for (const std::string& policy : scenario.policies) {
    cases.push_back({policy, policy, MakePolicy(policy)->decouplings()});
  }
  if (scenario.ablate) {
    for (Case& ablation : Ablations()) cases.push_back(std::move(ablation));
  }
  const bool compared = std::any_of(cases.begin(), cases.end(),
                                    [](const Case& one) { return one.name == kReference; });
  if (!compared)
    cases.push_back({kReference, kReference, MakePolicy(kReference)->decouplings(), true});
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

// From a draw's order of the datasets to the workload's.
void OrderAsWorkload(const Workload& workload, const Workload& drawn,
                     std::vector<double>* by_task) {
  std::map<std::string, double> values;
  for (size_t t = 0; t < by_task->size(); ++t) values[drawn.datasets[t].name] = (*by_task)[t];
  for (size_t t = 0; t < by_task->size(); ++t) (*by_task)[t] = values[workload.datasets[t].name];
}

Simulation::Options OptionsOf(const Scenario& scenario, const Case& one, int draw, double bound_s) {
  Simulation::Options options;
  options.policy = one.policy;
  options.decouplings = one.decouplings;
  options.seed = scenario.seed + static_cast<uint64_t>(draw);
  options.faults.trial_failure_rate = scenario.trial_failure_rate;
  if (scenario.lose_node_at > 0) options.faults.node_lost_at_s = scenario.lose_node_at * bound_s;
  options.faults.slow_device = scenario.slow_device;
  options.faults.slow_node = scenario.slow_node;
  options.keep_spans = draw < scenario.keep_spans;
  if (scenario.no_priors) options.weight = 1;
  return options;
}

// `done` is called after each simulation.
void RunDraw(const Scenario& scenario, const std::vector<Case>& cases, int draw,
             ScenarioResult* result, const std::function<void()>& done) {
  std::mt19937_64 random(scenario.seed * 1'000'003 + static_cast<uint64_t>(draw));
  const Workload workload =
      scenario.shuffle ? Shuffled(scenario.workload, &random) : scenario.workload;
  const std::vector<SimTask> tasks = DrawTasks(workload, scenario.cluster, random());
  const std::vector<TaskEstimate> estimates = Expected(scenario, workload, tasks, &random);
  const SimBound bound = BoundOf(tasks, scenario.cluster, workload.model.bytes);
  result->bounds[draw] = bound;
  for (size_t i = 0; i < cases.size(); ++i) {
    Simulation simulation(scenario.cluster, workload.model.bytes, tasks, estimates,
                          OptionsOf(scenario, cases[i], draw, bound.total_s()));
    SimResult& outcome = result->policies[i].draws[draw];
    outcome = simulation.Run();
    OrderAsWorkload(scenario.workload, workload, &outcome.task_scored_s);
    done();
  }
}

}  // namespace

ScenarioResult RunScenario(const Scenario& scenario,
                           const std::function<void(int, int)>& progress) {
  const std::vector<Case> cases = CasesOf(scenario);
  const auto draws = static_cast<size_t>(scenario.draws);
  ScenarioResult result;
  result.bounds.resize(draws);
  for (const Case& one : cases) {
    result.policies.push_back(
        {one.name, one.decouplings, one.reference, std::vector<SimResult>(draws)});
  }
  std::mutex mutex;
  int done = 0;
  const int all = scenario.draws * static_cast<int>(cases.size());
  ParallelFor(scenario.draws, scenario.threads, [&](int64_t draw) {
    RunDraw(scenario, cases, static_cast<int>(draw), &result, [&] {
      const std::lock_guard lock(mutex);
      progress(++done, all);
    });
  });
  return result;
}

}  // namespace evald
