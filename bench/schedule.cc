#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>

#include "bench/bench.h"
#include "orchestrator/run_machine/run_machine.h"
#include "orchestrator/schedule/policy.h"
#include "orchestrator/schedule/stealing.h"
#include "orchestrator/simulate/simulation.h"

namespace evald::bench {
namespace {

constexpr double kPlanBarSeconds = 1;          // for 100,000 trials
constexpr double kDecisionBarUs = 50;          // at 10,000 devices
constexpr double kSimulationBarSeconds = 300;  // a million trials
constexpr int kDevices = 10'000;
constexpr int kRounds = 5;  // measurements of each decision

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

double PeakMiB() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// A task of any kind: lengths and scoring costs differ by factors of a hundred.
TaskEstimate AnyTask(size_t task, double device_s, std::mt19937_64* random) {
  const auto factor = [&] {
    return std::exp(static_cast<double>((*random)() % 1000) / 1000 * 4.6 - 2.3);
  };
  TaskEstimate estimate;
  estimate.name = fmt::format("task {}", task);
  estimate.dataset = static_cast<int>(task);
  estimate.size = 1;
  estimate.device_s = device_s * factor();
  estimate.request_s = estimate.device_s * 64;
  estimate.score_s = (*random)() % 4 == 0 ? 0.1 * factor() : 0;
  return estimate;
}

// Seconds of each decision in a sequence. The sequence is played several times. Equal calls do
// equal work, so the shortest time of a decision is its cost. Any time beyond that belongs to the
// machine: even the processor's clock charges a thread for interrupts and for the work of the
// machine's host.
class Latencies {
 public:
  explicit Latencies(size_t decisions)
      : least_us_(decisions, std::numeric_limits<double>::infinity()) {}

  /// Plays one round: `decide(i)` for each decision in turn, each measured.
  template <typename Decide>
  void Play(Decide decide) {
    ++rounds_;
    const Thread before = Now();
    for (size_t i = 0; i < least_us_.size(); ++i) {
      const double wall_us = ClockUs(CLOCK_MONOTONIC), cpu_us = ClockUs(CLOCK_THREAD_CPUTIME_ID);
      decide(i);
      const double cpu = ClockUs(CLOCK_THREAD_CPUTIME_ID) - cpu_us,
                   wall = ClockUs(CLOCK_MONOTONIC) - wall_us;
      least_us_[i] = std::min(least_us_[i], cpu);
      worst_cpu_us_ = std::max(worst_cpu_us_, cpu);
      worst_wall_us_ = std::max(worst_wall_us_, wall);
    }
    const Thread after = Now();
    preempted_ += after.preempted - before.preempted;
    faults_ += after.faults - before.faults;
  }

  Json Report() {
    return {{"p50_us", At(0.5)},
            {"p99_us", At(0.99)},
            {"worst_us", At(1)},
            {"decisions", least_us_.size()},
            {"rounds", rounds_},
            {"worst_of_all_rounds_us", {{"processor", worst_cpu_us_}, {"wall", worst_wall_us_}}},
            {"preempted", preempted_},
            {"page_faults", faults_}};
  }

 private:
  struct Thread {
    int64_t preempted = 0, faults = 0;
  };

  static double ClockUs(clockid_t clock) {
    struct timespec time{};
    ::clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  }
  static Thread Now() {
    struct rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return {usage.ru_nivcsw, usage.ru_minflt};
  }
  double At(double share) {
    const auto nth = least_us_.begin() +
                     static_cast<ptrdiff_t>(share * static_cast<double>(least_us_.size() - 1));
    std::nth_element(least_us_.begin(), nth, least_us_.end());
    return *nth;
  }

  std::vector<double> least_us_;
  int rounds_ = 0;
  double worst_cpu_us_ = 0, worst_wall_us_ = 0;
  int64_t preempted_ = 0, faults_ = 0;
};

// There are as many tasks as trials. So each decision has all tasks to choose from, and each
// changes one.
double PlanSeconds(size_t trials) {
  std::mt19937_64 random(1);
  OpenWork work(100, 64, 1600);
  for (size_t t = 0; t < trials; ++t) work.Add(AnyTask(t, 1, &random), {{0, 40}});
  const auto policy = MakePolicy("elastic");
  const Stopwatch watch;
  for (size_t planned = 0; planned < trials; ++planned) {
    const std::vector<Cut> cuts = policy->Next(work, static_cast<int>(planned % 100));
    if (cuts.empty())
      throw std::runtime_error(fmt::format("the work was enough for {} trials only", planned));
    for (const Cut& cut : cuts) work.Take(cut.task, cut.documents);
  }
  return watch.seconds();
}

// A device asks and gets documents, and the estimate of a task is corrected.
Latencies Decisions(int count) {
  constexpr size_t kTasks = 10'000;
  Latencies latencies(static_cast<size_t>(count));
  for (int round = 0; round < kRounds; ++round) {
    std::mt19937_64 random(2);
    OpenWork work(kDevices, 64, kDevices * 16);
    for (size_t t = 0; t < kTasks; ++t) work.Add(AnyTask(t, 1, &random), {{0, 1'000'000}});
    std::vector<std::pair<size_t, TaskEstimate>> learned;
    for (int i = 0; i < count; ++i) {
      const size_t task = random() % kTasks;
      learned.emplace_back(task, AnyTask(task, 1, &random));
    }
    const auto policy = MakePolicy("elastic");
    policy->Next(work, 0);
    latencies.Play([&](size_t i) {
      work.Expect(learned[i].first, learned[i].second);
      for (const Cut& cut : policy->Next(work, static_cast<int>(i % kDevices)))
        work.Take(cut.task, cut.documents);
    });
  }
  return latencies;
}

// The work of the service when a worker ends a trial and asks for the next: slices are reported,
// costs measured, the trial is done, another one is cut and leased.
Latencies Leases(int count) {
  constexpr size_t kTasks = 1000;
  Latencies latencies(static_cast<size_t>(count));
  for (int round = 0; round < kRounds; ++round) {
    std::mt19937_64 random(5);
    std::vector<MachineTask> tasks(kTasks);
    RunMachine machine({}, {});
    for (size_t t = 0; t < kTasks; ++t) {
      tasks[t].name = fmt::format("task {}", t);
      tasks[t].documents = 200'000;
    }
    machine.SetTasks(tasks);
    for (size_t t = 0; t < kTasks; ++t) {
      Prior prior;
      prior.estimate = AnyTask(t, 1, &random);
      prior.estimate.documents = tasks[t].documents;
      machine.Expect(t, prior);
    }
    PlanSetup setup;
    setup.devices = kDevices;
    setup.places = 64;
    setup.score_slots = kDevices * 16;
    machine.Plan(setup);
    std::vector<TrialLease> held;
    for (int d = 0; d < kDevices; ++d) held.push_back(machine.LeaseTrial(d, 0).value());
    latencies.Play([&](size_t i) {
      const auto now = static_cast<int64_t>(i) * 10;
      const auto worker = static_cast<Holder>(i % kDevices);
      TrialLease& lease = held[i % kDevices];
      machine.WorkerHeard(worker, now);
      for (const LeasedSlice& slice : lease.slices) {
        machine.SliceReported(worker, lease.trial, lease.attempt, slice.task, slice.documents);
        machine.Measured(worker, slice.task, slice.documents.size(),
                         static_cast<double>(slice.documents.size()), 64);
      }
      machine.TrialDone(worker, lease.trial, lease.attempt);
      lease = machine.LeaseTrial(worker, now).value();
    });
  }
  return latencies;
}

// Each device reports its waiting work, and one device is idle.
Latencies StealDecisions(int count) {
  Latencies latencies(static_cast<size_t>(count));
  for (int round = 0; round < kRounds; ++round) {
    std::mt19937_64 random(3);
    OpenWork work(kDevices, 64, kDevices * 16);
    for (size_t t = 0; t < 1000; ++t) work.Add(AnyTask(t, 0.1, &random), {});
    Stealing stealing(0.01);
    const auto report = [&](double now, int device) {
      std::vector<WaitingDocuments> waiting;
      for (int slice = 0; slice < 4; ++slice) {
        waiting.push_back(
            {device, slice, random() % 1000, {0, 1 + static_cast<int64_t>(random() % 64)}});
      }
      stealing.Report(now, device, std::move(waiting), work);
    };
    for (int d = 0; d < kDevices; ++d) report(0, d);
    latencies.Play([&](size_t i) {
      const double now = static_cast<double>(i) * 1e-5;
      const int thief = static_cast<int>(i % kDevices);
      const auto steal = stealing.Next(now, thief);
      report(now, steal ? steal->device : thief);
    });
  }
  return latencies;
}

struct Simulated {
  SimResult result;
  double seconds = 0;
  int64_t documents = 0;
};

// Documents take a minute on average and one of 64 places, so a second of a device each. A trial
// has sixteen.
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
      task.place_s.push_back(
          static_cast<float>(scale * (0.5 + static_cast<double>(random() % 1024) / 1024)));
    }
    simulated.documents += task.documents;
    estimates.push_back(TrueEstimate(task, cluster.places));
  }
  const Stopwatch watch;
  simulated.result = Simulation(cluster, 15e9, tasks, estimates, {}).Run();
  simulated.seconds = watch.seconds();
  if (simulated.result.documents_scored != simulated.documents) {
    throw std::runtime_error(fmt::format("the simulation scored {} of {} documents",
                                         simulated.result.documents_scored, simulated.documents));
  }
  return simulated;
}

Json Report(const Simulated& simulated, int devices) {
  return {{"seconds", simulated.seconds},
          {"devices", devices},
          {"trials", simulated.result.trials},
          {"documents", simulated.documents},
          {"events", simulated.result.events},
          {"events_per_s", static_cast<double>(simulated.result.events) / simulated.seconds},
          {"simulated_s", simulated.result.makespan_s},
          {"peak_mib", PeakMiB()}};
}

}  // namespace

// The cost of scheduling: planning, a decision, a steal, and the simulation of a large cluster.
Result RunSchedule(const Options& options) {
  const int decisions = options.quick ? 5'000 : 100'000;
  Json plan = Json::object();
  double plan_s = 0;
  for (const size_t trials : {size_t{25'000}, size_t{50'000}, size_t{100'000}}) {
    plan_s = PlanSeconds(trials);
    plan[fmt::format("{}", trials)] = plan_s;
  }
  Latencies next = Decisions(decisions), lease = Leases(decisions),
            steal = StealDecisions(decisions);
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
                    {"lease_at_10000_devices", lease.Report()},
                    {"steal_at_10000_devices", steal.Report()},
                    {"decision_bar_us", kDecisionBarUs},
                    {"simulations", simulations},
                    {"simulation_bar_s", kSimulationBarSeconds}};
  return result;
}

}  // namespace evald::bench
