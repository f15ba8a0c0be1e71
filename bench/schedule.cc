#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>

#include "bench/bench.h"
#include "orchestrator/schedule/policy.h"
#include "orchestrator/schedule/stealing.h"
#include "orchestrator/simulate/simulation.h"

namespace evald::bench {
namespace {

constexpr double kPlanBarSeconds = 1;     // for 100,000 trials
constexpr double kDecisionBarUs = 50;     // at 10,000 devices
constexpr double kSimulationBarSeconds = 300;  // a million trials
constexpr int kDevices = 10'000;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Of this thread: what else runs on the machine is no part of a decision's time.
double ProcessorUs() {
  struct timespec time {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double PeakMiB() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Tasks of all kinds: lengths and scoring differ by factors of a hundred.
TaskEstimate AnyTask(size_t task, double device_s, std::mt19937_64* random) {
  const auto factor = [&] { return std::exp(static_cast<double>((*random)() % 1000) / 1000 * 4.6 - 2.3); };
  TaskEstimate estimate;
  estimate.name = fmt::format("task {}", task);
  estimate.dataset = static_cast<int>(task);
  estimate.size = 1;
  estimate.device_s = device_s * factor();
  estimate.request_s = estimate.device_s * 64;
  estimate.score_s = (*random)() % 4 == 0 ? 0.1 * factor() : 0;
  return estimate;
}

struct Latencies {
  std::vector<double> us;
  double At(double share) {
    const auto nth = us.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(us.size() - 1));
    std::nth_element(us.begin(), nth, us.end());
    return *nth;
  }
  Json Report() {
    const double p50 = At(0.5), p99 = At(0.99), worst = At(1);
    return {{"p50_us", p50}, {"p99_us", p99}, {"worst_us", worst}, {"decisions", us.size()}};
  }
};

// As many tasks as trials: each decision then has all of them to choose from, and each changes one.
double PlanSeconds(size_t trials) {
  std::mt19937_64 random(1);
  OpenWork work(100, 64, 1600);
  for (size_t t = 0; t < trials; ++t) work.Add(AnyTask(t, 1, &random), {{0, 40}});
  const auto policy = MakePolicy("elastic");
  const Stopwatch watch;
  for (size_t planned = 0; planned < trials; ++planned) {
    const std::vector<Cut> cuts = policy->Next(work, static_cast<int>(planned % 100));
    if (cuts.empty()) throw std::runtime_error(fmt::format("the work was enough for {} trials only", planned));
    for (const Cut& cut : cuts) work.Take(cut.task, cut.documents);
  }
  return watch.seconds();
}

// A device asks, gets documents, and something is learned of a task: what the service does at each ask.
Latencies Decisions(int count) {
  std::mt19937_64 random(2);
  OpenWork work(kDevices, 64, kDevices * 16);
  constexpr size_t kTasks = 10'000;
  for (size_t t = 0; t < kTasks; ++t) work.Add(AnyTask(t, 1, &random), {{0, 1'000'000}});
  const auto policy = MakePolicy("elastic");
  policy->Next(work, 0);
  Latencies latencies;
  for (int i = 0; i < count; ++i) {
    const size_t task = random() % kTasks;
    const TaskEstimate estimate = AnyTask(task, 1, &random);
    const double begin_us = ProcessorUs();
    work.Expect(task, estimate);
    for (const Cut& cut : policy->Next(work, i % kDevices)) work.Take(cut.task, cut.documents);
    latencies.us.push_back(ProcessorUs() - begin_us);
  }
  return latencies;
}

// Each device reports what it has waiting, and one of them is idle.
Latencies StealDecisions(int count) {
  std::mt19937_64 random(3);
  OpenWork work(kDevices, 64, kDevices * 16);
  for (size_t t = 0; t < 1000; ++t) work.Add(AnyTask(t, 0.1, &random), {});
  Stealing stealing(0.01);
  const auto report = [&](double now, int device) {
    std::vector<WaitingDocuments> waiting;
    for (int slice = 0; slice < 4; ++slice) {
      waiting.push_back({device, slice, random() % 1000, {0, 1 + static_cast<int64_t>(random() % 64)}});
    }
    stealing.Report(now, device, std::move(waiting), work);
  };
  for (int d = 0; d < kDevices; ++d) report(0, d);
  Latencies latencies;
  for (int i = 0; i < count; ++i) {
    const double now = i * 1e-5;
    const double begin_us = ProcessorUs();
    const auto theft = stealing.Next(now, i % kDevices);
    report(now, theft ? theft->device : i % kDevices);
    latencies.us.push_back(ProcessorUs() - begin_us);
  }
  return latencies;
}

struct Simulated {
  SimResult result;
  double seconds = 0;
  int64_t documents = 0;
};

// Documents of a minute on average, of 64 places: a second of a device each; sixteen to a trial.
Simulated SimulateTrials(int64_t trials, int devices) {
  SimCluster cluster;
  cluster.devices_per_node = 8;
  cluster.nodes = devices / 8;
  cluster.storage_bytes_per_s = 3e9;
  cluster.pcie_bytes_per_s = 25e9;
  cluster.places = 64;
  cluster.score_slots_per_node = 128;
  cluster.lease_s = 0.005;
  std::mt19937_64 random(4);
  std::vector<SimTask> tasks(2000);
  std::vector<TaskEstimate> estimates;
  Simulated simulated;
  for (size_t t = 0; t < tasks.size(); ++t) {
    SimTask& task = tasks[t];
    task.name = fmt::format("task {}", t);
    task.dataset = static_cast<int>(t);
    task.documents = trials * 16 / static_cast<int64_t>(tasks.size());
    task.slow_scoring = t % 10 == 0;
    task.score_s = task.slow_scoring ? 0.3 : 0.001;
    task.size = 1;
    const double scale = 20 + static_cast<double>(random() % 80);
    for (int64_t i = 0; i < task.documents; ++i) {
      task.place_s.push_back(static_cast<float>(scale * (0.5 + static_cast<double>(random() % 1024) / 1024)));
    }
    simulated.documents += task.documents;
    estimates.push_back(TrueEstimate(task, cluster.places));
  }
  const Stopwatch watch;
  simulated.result = Simulation(cluster, 15e9, tasks, estimates, {}).Run();
  simulated.seconds = watch.seconds();
  if (simulated.result.documents_scored != simulated.documents) {
    throw std::runtime_error(fmt::format("the simulation scored {} of {} documents", simulated.result.documents_scored,
                                         simulated.documents));
  }
  return simulated;
}

Json Report(const Simulated& simulated, int devices) {
  return {{"seconds", simulated.seconds},        {"devices", devices},
          {"trials", simulated.result.trials},   {"documents", simulated.documents},
          {"events", simulated.result.events},   {"events_per_s", static_cast<double>(simulated.result.events) / simulated.seconds},
          {"simulated_s", simulated.result.makespan_s}, {"peak_mib", PeakMiB()}};
}

}  // namespace

// What scheduling costs: planning, a decision, a theft, and the simulation of a large cluster.
Result RunSchedule(const Options& options) {
  const int decisions = options.quick ? 5'000 : 100'000;
  Json plan = Json::object();
  double plan_s = 0;
  for (const size_t trials : {size_t{25'000}, size_t{50'000}, size_t{100'000}}) {
    plan_s = PlanSeconds(trials);
    plan[fmt::format("{}", trials)] = plan_s;
  }
  Latencies next = Decisions(decisions), steal = StealDecisions(decisions);
  Json simulations = Json::array();
  if (options.quick) {
    simulations.push_back(Report(SimulateTrials(10'000, 800), 800));
  } else {
    for (const int64_t trials : {int64_t{250'000}, int64_t{500'000}, int64_t{1'000'000}}) {
      simulations.push_back(Report(SimulateTrials(trials, kDevices), kDevices));
    }
  }
  Result result;
  result.value = plan_s;
  result.unit = "s";
  result.baseline = "the bar for planning 100,000 trials";
  result.baseline_value = kPlanBarSeconds;
  result.smaller_is_better = true;
  result.target = 1;
  result.details = {{"plan_s_by_trials", plan},
                    {"decision_at_10000_devices", next.Report()},
                    {"steal_at_10000_devices", steal.Report()},
                    {"decision_bar_us", kDecisionBarUs},
                    {"simulations", simulations},
                    {"simulation_bar_s", kSimulationBarSeconds}};
  return result;
}

}  // namespace evald::bench
