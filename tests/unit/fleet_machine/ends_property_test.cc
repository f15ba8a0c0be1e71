// Random fleets of hosts that end at known times, in the middle of the work. Workers take as long
// as a document takes, which is not always what is expected. No trial is held when its host ends,
// no failure is counted (a trial has one attempt), and all documents are scored once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {
namespace {

constexpr double kStepSeconds = 0.1;
// The machine looks at the time at each step; the answer then takes as long
constexpr int64_t kAnswerMicros = 500'000;

class EndingEpisode {
 public:
  explicit EndingEpisode(uint64_t seed) : random_(seed) {
    wrong_ = OneIn(2) ? 1 : Between(0.3, 4);
    fleet_.AddHost("local", OneIn(3) ? std::vector<std::string>{} : Devices(1), 1);
    std::vector<MachineTask> tasks;
    for (int t = Below(3); t >= 0; --t)
      tasks.push_back({fmt::format("t{}", t), 20 + Below(200), OneIn(4)});
    AddHost();
    run_ = &fleet_.AddRun(ViewOf(1), std::move(tasks), true, 1);
  }

  // Until the run is done. Hosts come and go; in the end one without an end comes.
  void Play() {
    while (!run_->over()) {
      ASSERT_LT(fleet_.now, 20'000'000'000) << "it does not end: " << run_->waiting;
      if (hosts_ < 12 && OneIn(300)) AddHost();
      if (fleet_.now > 2'000'000'000 && !last_) {
        fleet_.AddHost("last", Devices(2), 1);
        last_ = true;
      }
      End();
      Compute();
      fleet_.Pass(kStepSeconds);
      fleet_.Take();
      fleet_.Check();
      CheckHeld();
      if (testing::Test::HasFailure()) return;
    }
    ASSERT_EQ(run_->failure, "");
    int64_t documents = 0;
    for (const MachineTask& task : run_->machine.tasks()) documents += task.documents;
    ASSERT_EQ(static_cast<int64_t>(run_->scored.size()), documents);
    for (const auto& [document, times] : run_->scored) ASSERT_EQ(times, 1);
    if (fleet_.backups > 0) return;
    for (const auto& [document, times] : run_->committed) ASSERT_EQ(times, 1);
  }
  int64_t handed_back = 0, ended = 0;

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  static std::vector<std::string> Devices(int count) {
    std::vector<std::string> devices;
    for (int i = 0; i < count; ++i) devices.push_back(fmt::format("cpu:{}", i));
    return devices;
  }

  void AddHost() {
    const std::string name = fmt::format("h{}", ++hosts_);
    fleet_.AddHost(name, Devices(1 + Below(3)), Below(2));
    fleet_.HostEnds(name, OneIn(2) ? Between(4, 60) : Between(60, 900));
  }

  // Hosts end: with all at once, or with their processes one after another before.
  void End() {
    std::vector<std::string> over;
    for (const auto& [name, host] : fleet_.machine.hosts()) {
      if (host.ends_us == 0 || !host.here) continue;
      if (fleet_.now >= host.ends_us) over.push_back(name);
      const bool soon = fleet_.now >= host.hands_back_us && host.ending;
      for (const size_t i : host.workers) {
        const auto process = fleet_.processes.find(fleet_.machine.workers()[i].id);
        if (soon && process != fleet_.processes.end() && OneIn(200)) fleet_.Die(&*process->second);
      }
    }
    for (const std::string& name : over) {
      ++ended;
      for (const WorkerSlot& slot : fleet_.machine.workers()) {
        if (slot.host == name) {
          EXPECT_TRUE(slot.held.empty()) << slot.id << " is killed with a trial";
        }
      }
      fleet_.HostIs(name, HostNews::kAway);
    }
  }

  void CheckHeld() {
    for (const auto& [name, host] : fleet_.machine.hosts()) {
      if (host.ends_us == 0) continue;
      for (const size_t i : host.workers) {
        const WorkerSlot& slot = fleet_.machine.workers()[i];
        if (!slot.held.empty() && host.ending) ++handed_back;
        ASSERT_TRUE(slot.held.empty() || fleet_.now < host.takes_back_us + kAnswerMicros)
            << slot.id << " holds a trial " << static_cast<double>(host.ends_us - fleet_.now) / 1e6
            << " s before its host ends";
      }
    }
  }

  // Each worker computes one document after another; each takes a second as expected, or longer.
  void Compute() {
    std::vector<std::string> ids;
    for (const auto& [id, process] : fleet_.processes) ids.push_back(id);
    for (const std::string& id : ids) {
      const auto found = fleet_.processes.find(id);
      if (found == fleet_.processes.end() || found->second->dead) continue;
      TinyProcess& process = *found->second;
      if (fleet_.away.count(process.host) > 0) continue;
      if (process.metric_process) {
        while (!process.jobs.empty()) fleet_.EndJob(&process);
        if (process.asked == 0) fleet_.Want(&process);
        continue;
      }
      if (OneIn(5)) fleet_.Beat(&process);
      if (process.leases.empty()) {
        if (process.loaded && process.asked == 0) fleet_.Want(&process);
        continue;
      }
      auto& lease = process.leases.begin()->second;
      double& spent = spent_[id];
      spent += kStepSeconds;
      if (spent < wrong_) continue;
      spent = 0;
      if (lease.begun < lease.trial.slices[lease.next].documents.size()) {
        ++lease.begun;
      } else {
        fleet_.EndSlice(&process);
      }
    }
  }

  std::mt19937_64 random_;
  TinyFleet fleet_;
  TinyRun* run_ = nullptr;
  double wrong_ = 1;  // seconds of a document
  int hosts_ = 0;
  bool last_ = false;
  std::map<std::string, double> spent_;  // on the document under way, by worker
};

TEST(EndsOfHostsProperty, NoTrialIsKilledAndEachDocumentIsScoredOnce) {
  const char* given = std::getenv("EVALD_TEST_SEED");
  const uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  fmt::print("EVALD_TEST_SEED={}\n", seed);
  const int episodes = std::getenv("EVALD_FULL") != nullptr ? 2000 : 150;
  int64_t handed_back = 0, ended = 0;
  for (int i = 0; i < episodes; ++i) {
    SCOPED_TRACE(fmt::format("EVALD_TEST_SEED={}, episode {}", seed, i));
    std::seed_seq mix{seed, static_cast<uint64_t>(i)};
    uint32_t of_episode[2];
    mix.generate(of_episode, of_episode + 2);
    EndingEpisode episode(of_episode[0] | static_cast<uint64_t>(of_episode[1]) << 32);
    episode.Play();
    if (HasFailure()) return;
    handed_back += episode.handed_back;
    ended += episode.ended;
  }
  fmt::print("{} hosts ended; steps with trials to hand back: {}\n", ended, handed_back);
  EXPECT_GT(ended, episodes / 2);
  EXPECT_GT(handed_back, episodes / 2);
}

}  // namespace
}  // namespace evald
