// A million random events over hosts, workers, metric processes and runs. After each event the
// fleet and the runs agree on the holders. No trial is leased twice at once except as a backup, and
// none to a worker that is gone (TinyFleet::Check and its executor, which also checks each order
// against the state of its process). After each episode no fault occurs any more, and every run
// must come to its end. If no fault may cost a run anything, each of its documents must be scored
// once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {
namespace {

constexpr int kNever = 1'000'000;

FleetMachine::Options OptionsFor(bool mild) {
  if (!mild) return {.worker_restarts_max = 3, .metric_restarts_max = 3};
  return {.worker_restarts_max = kNever,
          .metric_restarts_max = kNever,
          .device_limits = {kNever, 600'000'000}};
}

class Episode {
 public:
  Episode(uint64_t seed, bool mild) : random_(seed), mild_(mild), fleet_(OptionsFor(mild)) {
    fleet_.prompt = false;
    fleet_.AddHost("local", Devices(1 + (slow_ ? 2 : Below(3))), 1 + Below(2));
    for (int i = Below(3); i > 0; --i)
      fleet_.AddHost(fmt::format("h{}", i), Devices(1 + Below(3)), Below(2));
    for (const auto& [name, host] : fleet_.machine.hosts()) hosts_.push_back(name);
  }

  void Play(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      Step();
      fleet_.Check();
      fleet_.Take();
    }
    if (!testing::Test::HasFailure()) Calm();
  }
  const TinyFleet& fleet() const { return fleet_; }
  int64_t runs_ended = 0, runs_done = 0;

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }

  std::vector<std::string> Devices(int count) {
    std::vector<std::string> devices;
    const bool gpu = OneIn(3);
    for (int i = 0; i < count; ++i)
      devices.push_back(fmt::format("{}{}", gpu ? "cuda:GPU-" : "cpu:", i));
    return devices;
  }

  TinyProcess* AnyProcess() {
    if (fleet_.processes.empty()) return nullptr;
    auto process = fleet_.processes.begin();
    std::advance(process, Below(static_cast<int>(fleet_.processes.size())));
    return process->second.get();
  }

  TinyRun* AnyRun() {
    if (fleet_.runs.empty()) return nullptr;
    auto run = fleet_.runs.begin();
    std::advance(run, Below(static_cast<int>(fleet_.runs.size())));
    return &run->second;
  }

  void Step() {
    const int what = Below(1000);
    if (what < 720) return Ordinary(AnyProcess());
    if (what < 800) return Time();
    if (what < 860) return Runs();
    if (what < 870 && slow_ && !OneIn(5)) return;
    if (what < 864) return Hosts();
    if (what < 870) return Fault(AnyProcess());
    Ordinary(AnyProcess());
  }

  void Time() {
    fleet_.now += OneIn(400) ? 65'000'000 : OneIn(20) ? 3'000'000 : Below(400'000);
    fleet_.Tick();
    for (int i = Below(4); i > 0; --i) {
      if (TinyProcess* process = AnyProcess(); process != nullptr && !process->dead)
        fleet_.Beat(process);
    }
  }

  // A message arrives, or a process takes its next step.
  void Ordinary(TinyProcess* process) {
    if (process == nullptr) return;
    if (OneIn(3) && fleet_.DeliverTo(process)) return;
    if (OneIn(2) && fleet_.DeliverFrom(process)) return;
    if (process->dead) return void(fleet_.DeliverFrom(process));
    if (!process->engine) return BeginOrNot(process);
    if (process->metric_process) {
      if (process->asked == 0 && process->jobs.size() < 2) return fleet_.Want(process);
      return fleet_.EndJob(process, OneIn(20));
    }
    if (process->target && !process->loaded)
      return OneIn(2) ? fleet_.Loaded(process) : Pulls(process);
    if (process->loaded && process->asked == 0 && process->leases.size() < 2 && OneIn(2))
      return fleet_.Want(process);
    // other workers take over its late work
    const bool slow = slow_ && process->id.ends_with("w0");
    if (process->leases.empty() || OneIn(3) || (slow && !OneIn(100))) return fleet_.Beat(process);
    OneIn(30) ? fleet_.FailTrial(process, mild_ || OneIn(2)) : fleet_.EndSlice(process);
  }

  void Pulls(TinyProcess* process) {
    process->outbox.push_back([this, id = process->id, bytes = Below(10)] {
      fleet_.machine.Heard(id, news::Pulled{bytes, 10}, fleet_.now);
    });
  }

  void BeginOrNot(TinyProcess* process) {
    if (process->metric_process || !OneIn(8)) return fleet_.Hello(process);
    if (process->on_gpu && OneIn(2)) {
      return process->outbox.push_back([this, id = process->id] {
        fleet_.machine.Heard(id, news::Waits{"another has it"}, fleet_.now);
      });
    }
    if (mild_ || !OneIn(40)) return;
    fleet_.SayFailed(process, "settings: unknown key", false);
    fleet_.Die(process, "exit status 2", true);
  }

  void Fault(TinyProcess* process) {
    if (process == nullptr || process->dead) return;
    if (process->metric_process || OneIn(2)) return fleet_.Die(process);
    // A failure that would repeat itself answers a Load. At any other time it would be taken for
    // the answer to a Load that is under way, and that Load's own answer for the answer to the next
    // Load.
    const bool loads = process->target && !process->loaded;
    if (process->engine)
      fleet_.SayFailed(process, "a kernel failed", mild_ || !loads || !OneIn(3), OneIn(2));
    if (loads) process->target.reset();
  }

  void Hosts() {
    const std::string host = hosts_[static_cast<size_t>(Below(static_cast<int>(hosts_.size())))];
    const auto& at = fleet_.machine.hosts().at(host);
    if (at.left || (!at.here && OneIn(3))) return fleet_.AgentAnew(host, !at.left && OneIn(2));
    if (OneIn(4)) return fleet_.HostEnds(host, OneIn(4) ? -1 : Below(400));
    if (!at.here) return fleet_.HostIs(host, HostNews::kBack);
    if (OneIn(4)) return fleet_.AgentAnew(host, OneIn(2));
    if (OneIn(6) && host != "local") return fleet_.HostIs(host, HostNews::kLeaving);
    if (OneIn(6) && host != "local") return fleet_.HostIs(host, HostNews::kLeft);
    fleet_.HostIs(host, HostNews::kAway);
  }

  void Runs() {
    TinyRun* run = AnyRun();
    for (auto& [number, of] : fleet_.runs) {
      if (of.over()) return End(&of);
    }
    if (run == nullptr || (static_cast<int>(fleet_.runs.size()) < runs_max_ && OneIn(4)))
      return Add();
    const int64_t number = run->view.number;
    if (!run->staged) {
      if (OneIn(2)) return fleet_.Stage(number);
      run->view.followable = run->view.followable.value_or(0) + 1;
    } else if (OneIn(60) && !mild_) {
      return fleet_.Fail(number, "cancelled");
    } else if (OneIn(4)) {
      run->view.priority = Below(3);
    }
    fleet_.Changed(number);
  }

  void Add() {
    RunView view;
    view.number = next_run_++;
    view.priority = Below(3);
    view.user = OneIn(2) ? "ann" : "bob";
    view.load = OneIn(4) ? "" : fmt::format("c{}", Below(3));
    view.uses_devices = OneIn(2);
    view.profile = view.uses_devices ? "native" : fmt::format("p{}", Below(2));
    view.checkpoint_bytes = OneIn(2) ? 0 : 1e9 * Below(20);
    view.max_attempts = mild_ ? kNever : 3;
    std::vector<MachineTask> tasks;
    for (int t = Below(slow_ ? 1 : 3); t >= 0; --t)
      tasks.push_back({fmt::format("t{}", t), 1 + Below(60), OneIn(4)});
    if (slow_) tasks[0].documents += 40 + Below(100);  // makes trials worth taking work from
    fleet_.AddRun(view, tasks, view.load.empty() || OneIn(2), mild_ ? kNever : 3);
  }

  void End(TinyRun* run) {
    ++(run->done() && run->failure.empty() ? runs_done : runs_ended);
    if (mild_) {
      ASSERT_EQ(run->failure, "");
      int64_t documents = 0;
      for (const MachineTask& task : run->machine.tasks()) documents += task.documents;
      ASSERT_EQ(static_cast<int64_t>(run->scored.size()), documents);
      for (const auto& [document, times] : run->scored) ASSERT_EQ(times, 1);
    }
    // Fleet::Remove is called after the run has said that nothing more happens.
    fleet_.Fail(run->view.number, "over");
    fleet_.Remove(run->view.number, OneIn(2));
  }

  // From here on no fault occurs.
  void Calm() {
    for (const std::string& host : hosts_) {
      const auto& at = fleet_.machine.hosts().at(host);
      if (!at.here || at.leaving || at.ends_us != 0) fleet_.AgentAnew(host, !at.left && OneIn(2));
    }
    std::vector<int64_t> waiting;
    for (auto& [number, run] : fleet_.runs) waiting.push_back(number);
    for (const int64_t number : waiting) {
      if (!fleet_.runs.at(number).staged) fleet_.Stage(number);
    }
    fleet_.prompt = true;
    if (slow_) Stragglers();
    for (int round = 0; round < 1500 && !testing::Test::HasFailure(); ++round) {
      Nudge();
      fleet_.WorkAll(1);
      fleet_.Check();
      fleet_.Take();
      for (auto run = fleet_.runs.begin(); run != fleet_.runs.end();) {
        TinyRun& of = (run++)->second;
        if (of.over()) End(&of);
      }
      if (fleet_.runs.empty()) return;
    }
    if (!testing::Test::HasFailure()) FAIL() << "it does not end: " << Stuck();
  }

  // Some workers only give signs of life. Others take over their late work.
  void Stragglers() {
    for (int round = 0; round < 40 && !testing::Test::HasFailure(); ++round) {
      Nudge();
      std::vector<std::string> ids;
      for (const auto& [id, process] : fleet_.processes) {
        if (!id.ends_with("w0")) ids.push_back(id);
      }
      for (const std::string& id : ids) {
        if (fleet_.processes.count(id) > 0 && !fleet_.At(id).dead) fleet_.Works(id);
      }
      fleet_.Pass(1);
      fleet_.Check();
      fleet_.Take();
    }
  }

  // Each process repeats its last step: hello, the end of a load, a heartbeat.
  void Nudge() {
    for (const auto& [id, process] : fleet_.processes) {
      if (process->dead) continue;
      if (!process->engine) fleet_.Hello(process.get());
      if (process->target && !process->loaded && process->inbox.empty())
        fleet_.Loaded(process.get());
      fleet_.Beat(process.get());
    }
  }

  std::string Stuck() const {
    std::string text;
    for (const auto& [number, run] : fleet_.runs) {
      text += fmt::format(
          "\n  run {} (load '{}', profile {}): planned {}, wants workers {}, open {}, leased {}",
          number, run.view.load, run.view.profile, run.view.planned, run.view.wants_workers,
          run.machine.has_trials(), run.machine.trials().leased());
      text += fmt::format(", jobs {} + {}, waits for '{}'", run.machine.jobs().queued(),
                          run.machine.jobs().leased(), run.waiting);
    }
    for (const WorkerSlot& slot : fleet_.machine.workers()) {
      text += fmt::format("\n  {} ({}): {}, profile {}, loading {}", slot.id, slot.device,
                          Name(slot.state()), slot.profile, slot.loading.value_or("-"));
      text += fmt::format(", wants {}, holds {}, restarts {}", slot.wants, slot.held.size(),
                          slot.restarts);
    }
    for (const MetricProcessSlot& slot : fleet_.machine.metric_processes()) {
      text += fmt::format("\n  {}: {}, wants {}", slot.id, Name(slot.state), slot.wants);
    }
    return text;
  }

  std::mt19937_64 random_;
  bool mild_;
  bool slow_ = OneIn(2);
  int runs_max_ = slow_ ? 1 : 1 + Below(4);
  TinyFleet fleet_;
  std::vector<std::string> hosts_;
  int64_t next_run_ = 1;
};

TEST(FleetProperty, AMillionEvents) {
  const char* given = std::getenv("EVALD_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  fmt::print("EVALD_TEST_SEED={}\n", seed);
  const int64_t most = std::getenv("EVALD_FULL") != nullptr ? 10'000'000 : 1'000'000;
  int64_t events = 0, done = 0, ended = 0, episodes = 0, backups = 0, stolen = 0, revoked = 0,
          abandoned = 0;
  for (; events < most; ++episodes) {
    SCOPED_TRACE(fmt::format("EVALD_TEST_SEED={}, episode {}", seed, episodes));
    std::seed_seq mix{seed, static_cast<uint64_t>(episodes)};
    uint32_t of_episode[2];
    mix.generate(of_episode, of_episode + 2);
    Episode episode(of_episode[0] | static_cast<uint64_t>(of_episode[1]) << 32, episodes % 2 == 0);
    episode.Play(3000);
    if (HasFailure()) return;
    events += episode.fleet().events;
    backups += episode.fleet().backups;
    stolen += episode.fleet().stolen;
    revoked += episode.fleet().revoked;
    abandoned += episode.fleet().abandoned;
    done += episode.runs_done;
    ended += episode.runs_ended;
  }
  fmt::print("{} events in {} episodes: {} runs done, {} otherwise at their end\n", events,
             episodes, done, ended);
  fmt::print("{} backups, {} revoked, {} stolen, {} abandoned\n", backups, revoked, stolen,
             abandoned);
  EXPECT_GT(done, episodes);
  for (const int64_t each : {backups, stolen, revoked, abandoned, ended})
    EXPECT_GT(each, episodes / 20);
}

}  // namespace
}  // namespace evald
