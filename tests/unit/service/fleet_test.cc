// A fleet with a made-up host. A failure while one run is served, or over one message, affects that
// run only.
#include "orchestrator/service/fleet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/clock.h"
#include "base/file_hash.h"
#include "base/jsonl.h"
#include "evald/engine_info.h"
#include "evald/generation.h"
#include "orchestrator/config/eval_config.h"
#include "orchestrator/fleet_machine/events.h"
#include "orchestrator/run/run_ending.h"
#include "orchestrator/service/process_id.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

// A host whose processes send the messages that the test chooses.
class FakeHost : public Host {
 public:
  explicit FakeHost(Events events) : events_(std::move(events)) {}

  void Start(const ProcessSpec& spec) override {
    if (spec.id == "w0") started.push_back(spec);
  }
  void Send(const std::string& id, const protocol::Message& message) override {
    if (refuses && refuses(message))
      throw Error(ErrorKind::kInfrastructure, "this one cannot be sent");
    sent.emplace_back(id, message);
  }
  void Kill(const std::string& id) override { killed.push_back(id); }
  void StopAll(std::chrono::milliseconds, std::function<void()> done) override { done(); }

  void Says(const std::string& id, const protocol::Message& message) {
    events_.message(id, message);
  }
  void Ends(const std::string& id, const ProcessExit& exit) { events_.exited(id, exit); }
  template <typename Kind>
  std::vector<Kind> Sent() const {
    std::vector<Kind> found;
    for (const auto& [id, message] : sent) {
      if (const auto* kind = std::get_if<Kind>(&message)) found.push_back(*kind);
    }
    return found;
  }

  std::function<bool(const protocol::Message&)> refuses;
  std::vector<ProcessSpec> started;  // as worker w0
  std::vector<std::string> killed;
  std::vector<std::pair<std::string, protocol::Message>> sent;

 private:
  Events events_;
};

class FleetTest : public testing::Test {
 protected:
  explicit FleetTest(double stall_timeout_s = 1800)
      : store_(folder_ / "state"),
        database_(&store_, &loop_, [](std::exception_ptr) { FAIL() << "the database"; }),
        fleet_(&loop_, FleetOptions{.log_dir = folder_.path(),
                                    .worker_restarts_max = 3,
                                    .stall_timeout_s = stall_timeout_s,
                                    .needless_load_s = 0}) {
    std::ofstream(folder_ / "sums.jsonl") << "{\"question\": \"1 plus 1?\", \"answer\": \"2\"}\n"
                                          << "{\"question\": \"2 plus 1?\", \"answer\": \"3\"}\n";
    std::ofstream(folder_ / "sums.yaml")
        << "task: sums\ndataset_path: json\n"
           "dataset_kwargs: {data_files: {test: sums.jsonl}}\n"
           "output_type: generate_until\ntest_split: test\n"
           "doc_to_text: '{{question}}'\ndoc_to_target: '{{answer}}'\n"
           "metric_list: [{metric: exact_match}]\n";
    fleet_.AddHost(&host_, {kLocalHost, {"cpu:0"}, 1, 1});
    fleet_.HostReady(kLocalHost, {}, {});
  }
  ~FleetTest() override {
    for (const auto& run : runs_) EndRun(run->TakeEnding());
    runs_.clear();
  }

  std::shared_ptr<Evaluation> AddRun(int priority, const Json& engine = {{"name", "emulated"}},
                                     const std::string& user = "") {
    const int64_t number = static_cast<int64_t>(runs_.size()) + 1;
    const Json yaml = {{"tasks", {"sums"}},
                       {"task_dirs", {"."}},
                       {"engine", engine},
                       {"cache_dir", "cache"},
                       {"state_dir", "state"},
                       {"output", {{"dir", "runs"}, {"name", "run" + std::to_string(number)}}}};
    EvalConfig config = ParseEvalConfig(yaml.dump(), folder_ / "eval.yaml", {});
    RunDirectory directory = RunDirectory::Create(config);
    database_.Post([id = directory.id(), path = directory.path()](RunStore& store) {
      store.OpenRun(id, path);
    });
    auto run = std::make_shared<Evaluation>(
        config, std::move(directory), number, 1,
        Evaluation::Support{&loop_, &database_, &finisher_, &files_, EVALD_BINARY_DIR},
        Evaluation::Hooks{
            [this, number] { fleet_.RunChanged(number); }, [] {},
            [](const std::string&, const Json&) {},
            [this](const std::string& process) { return fleet_.WitnessOf(process); }});
    runs_.push_back(run);
    fleet_.Add(run, priority, user);
    run->Start();
    return run;
  }

  // Runs the loop until `so` is true.
  void Until(const std::function<bool()>& so) {
    std::function<void()> look = [&] {
      if (so()) return loop_.Stop();
      loop_.After(std::chrono::milliseconds(2), look);
    };
    look();
    loop_.Run();
    loop_.context().restart();
  }

  static Json Engine() {
    EngineInfo engine;
    engine.name = "emulated";
    engine.version = "1";
    engine.kinds = {RequestKind::kGenerateUntil};
    engine.concurrency = 4;
    engine.device = "a made-up one";
    return ToJson(engine);
  }

  // Plans both runs: worker w0 has loaded the checkpoint that both need.
  void PlanBoth() {
    host_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
    const protocol::Loaded loaded{"", Engine(), Json::object()};
    host_.Says("w0", loaded);
    for (const auto& run : runs_) run->Loaded("w0", loaded);  // a second call has no effect
    Until([&] {
      return std::all_of(runs_.begin(), runs_.end(),
                         [](const auto& run) { return run->planned() || run->over(); });
    });
    for (const auto& run : runs_) ASSERT_TRUE(run->planned()) << "it failed on the way";
    fleet_.Tick();  // it looks at what has changed
  }

  // Worker w0 has done its lease.
  void EndTrial(const protocol::Lease& lease) {
    for (const protocol::Slice& slice : lease.slices) {
      protocol::SliceDone done;
      done.trial = lease.trial;
      done.attempt = lease.attempt;
      done.task = slice.task;
      done.first = slice.first;
      done.end = slice.end;
      done.file = slice.file;
      host_.Says("w0", done);
    }
  }

  // Waits until the worker is started for the `number`-th time. Returns its --settings.
  std::string StartedWith(size_t number) {
    Until([&] {
      fleet_.Tick();
      return host_.started.size() >= number;
    });
    const std::vector<std::string>& arguments = host_.started[number - 1].arguments;
    return *(std::find(arguments.begin(), arguments.end(), "--settings") + 1);
  }
  Json Worker() const { return fleet_.Workers()[0]; }

  TemporaryFolder folder_;
  Loop loop_;
  RunStore store_;
  DatabaseThread database_;
  TaskFinisher finisher_{&loop_};
  WorkThread files_{"files", &loop_, WorkThread::AtEnd::kFinish};
  Fleet fleet_;
  FakeHost host_{fleet_.EventsOf(kLocalHost)};
  std::vector<std::shared_ptr<Evaluation>> runs_;
};

// A second host, whose agent may lie.
class LyingHostTest : public FleetTest {
 protected:
  LyingHostTest() {
    fleet_.AddHost(&liar_, {"gpu1", {"cpu:9"}, 1, 1, "wk"});
    fleet_.HostReady("gpu1", {}, {});
  }
  static protocol::SliceDone DoneOf(const protocol::Lease& lease) {
    protocol::SliceDone done;
    done.trial = lease.trial;
    done.attempt = lease.attempt;
    done.task = lease.slices.at(0).task;
    done.first = lease.slices[0].first;
    done.end = lease.slices[0].end;
    done.file = lease.slices[0].file;
    done.hash = "5e0b";
    done.bytes = 100;
    return done;
  }
  // Writes the file that `done` reports, with an answer for each of its documents.
  static void WriteAnswers(protocol::SliceDone* done) {
    {
      std::ofstream file(done->file);
      for (int64_t document = done->first; document < done->end; ++document) {
        Generation generation;
        generation.doc_id = document;
        generation.text = "2";
        file << ToLine(ToJson(generation)) << '\n';
      }
    }
    const FileHash content = HashOfFile(done->file);
    done->bytes = content.bytes;
    done->hash = content.hash;
  }
  // A planned run. Both hosts have loaded its checkpoint.
  std::shared_ptr<Evaluation> Planned() {
    const auto run = AddRun(0);
    liar_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
    PlanBoth();
    liar_.Says("w0", protocol::Loaded{"", Engine(), Json::object()});
    return run;
  }
  protocol::Lease LeasedTo(FakeHost* host) {
    host->Says("w0", protocol::Want{1});
    const auto leases = host->Sent<protocol::Lease>();
    EXPECT_FALSE(leases.empty());
    return leases.empty() ? protocol::Lease{} : leases.back();
  }
  // Processes that hold a trial or job of the run.
  static std::vector<std::string> Holders(const Evaluation& run) {
    return run.Silent(MonotonicMicros() + int64_t{3600} * 1'000'000);
  }
  void Ticks() {
    for (int i = 0; i < 3; ++i) fleet_.Tick();
  }

  FakeHost liar_{fleet_.EventsOf("gpu1")};
};

TEST_F(LyingHostTest, EndsNoTrialThatItDoesNotHold) {
  const auto run = Planned();
  const protocol::Lease lease = LeasedTo(&host_);
  liar_.Says("w0",
             protocol::TrialFailed{lease.trial, lease.attempt, false, "made up", false, "sums"});
  liar_.Says("w0", protocol::TrialFailed{lease.trial, lease.attempt, false, "made up"});
  liar_.Says("w0", protocol::Shortened{lease.trial, lease.attempt, "sums", lease.slices[0].first,
                                       lease.slices[0].first + 1});
  liar_.Says("w0", DoneOf(lease));
  liar_.Says("w0", protocol::TrialDone{lease.trial, lease.attempt, 1});
  EXPECT_FALSE(run->ending());
  EXPECT_EQ(Holders(*run), std::vector<std::string>{"w0"});
  host_.Says("w0", DoneOf(lease));
  host_.Says("w0", protocol::TrialDone{lease.trial, lease.attempt, 1});
  EXPECT_TRUE(Holders(*run).empty());
  Until([&] { return run->View(0).wants_metric_processes; });
}

TEST_F(LyingHostTest, ThatRefusesALoadGetsNothingMoreOfTheRunAndTheOthersGoOn) {
  const auto run = AddRun(0);
  liar_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
  liar_.Says("w0", protocol::TrialFailed{-1, 0, false, "no"});
  Ticks();
  EXPECT_FALSE(run->ending());
  EXPECT_EQ(run->View(0).doubted, std::set<std::string>{"gpu1"});
  PlanBoth();
  const size_t sent = liar_.sent.size();
  liar_.Says("w0", protocol::Want{1});
  EXPECT_EQ(liar_.sent.size(), sent);
  LeasedTo(&host_);
}

TEST_F(LyingHostTest, IsBelievedWhereNoOtherHostIsThere) {
  const auto run = AddRun(0);
  fleet_.HostIs(kLocalHost, HostNews::kAway);
  liar_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
  liar_.Says("w0", protocol::TrialFailed{-1, 0, false, "no"});
  EXPECT_FALSE(run->ending());
  Ticks();
  EXPECT_TRUE(run->ending());
  EXPECT_NE(run->TakeEnding().problems.at(0).find("worker gpu1.w0: no"), std::string::npos);
  runs_.clear();
}

TEST_F(LyingHostTest, ThatRefusesATaskLeavesItsTrialToOthers) {
  const auto run = Planned();
  const protocol::Lease lease = LeasedTo(&liar_);
  liar_.Says("w0",
             protocol::TrialFailed{lease.trial, lease.attempt, false, "cannot", false, "sums"});
  Ticks();
  EXPECT_FALSE(run->ending());
  const protocol::Lease again = LeasedTo(&host_);
  EXPECT_EQ(again.trial, lease.trial);
  host_.Says("w0",
             protocol::TrialFailed{again.trial, again.attempt, false, "cannot", false, "sums"});
  EXPECT_TRUE(run->ending()) << "the service's own host is believed";
}

TEST_F(LyingHostTest, ThatFailsAgainAndAgainGetsNothingMoreWhileAnotherHostIsThere) {
  const auto run = Planned();
  for (int i = 0; i < HostDoubts::kFailuresMax; ++i) {
    const protocol::Lease lease = LeasedTo(&liar_);
    liar_.Says("w0", protocol::TrialFailed{lease.trial, lease.attempt, true, "disk full"});
  }
  const size_t leases = liar_.Sent<protocol::Lease>().size();
  liar_.Says("w0", protocol::Want{1});
  Ticks();
  EXPECT_EQ(liar_.Sent<protocol::Lease>().size(), leases);
  fleet_.HostIs(kLocalHost, HostNews::kAway);
  Ticks();
  EXPECT_EQ(liar_.Sent<protocol::Lease>().size(), leases + 1) << "no other host is left";
  EXPECT_TRUE(run->View(0).doubted.empty());
  EXPECT_FALSE(run->ending());
}

TEST_F(LyingHostTest, ThatReportsAFileThatIsNotThereHasItsSliceDoneAgain) {
  const auto run = Planned();
  const protocol::Lease lease = LeasedTo(&liar_);
  liar_.Says("w0", DoneOf(lease));
  liar_.Says("w0", protocol::TrialDone{lease.trial, lease.attempt, 1});
  host_.Says("w0", protocol::Want{1});
  Until([&] { return !host_.Sent<protocol::Lease>().empty(); });
  EXPECT_FALSE(run->ending());
  const protocol::Lease again = host_.Sent<protocol::Lease>().back();
  host_.Says("w0", DoneOf(again));  // this report is believed
  host_.Says("w0", protocol::TrialDone{again.trial, again.attempt, 1});
  Until([&] { return run->View(0).wants_metric_processes; });
}

TEST_F(LyingHostTest, WhoseFileIsThereHasItCommitted) {
  const auto run = Planned();
  const protocol::Lease lease = LeasedTo(&liar_);
  protocol::SliceDone done = DoneOf(lease);
  WriteAnswers(&done);
  liar_.Says("w0", done);
  liar_.Says("w0", protocol::TrialDone{lease.trial, lease.attempt, 1e8});
  Until([&] { return run->View(0).wants_metric_processes; });
  EXPECT_TRUE(run->View(0).doubted.empty());
}

TEST_F(LyingHostTest, HasComputedForNoLongerThanItHeldTheTrial) {
  const auto run = Planned();
  const protocol::Lease lease = LeasedTo(&liar_);
  protocol::SliceDone done = DoneOf(lease);
  done.device_seconds = done.longest_seconds = 1e9;
  liar_.Says("w0", done);
  const protocol::TrialDone end{lease.trial, lease.attempt, 1e9};
  const auto seconds = run->Heard("gpu1.w0", end);
  ASSERT_TRUE(seconds);
  EXPECT_LT(*seconds, 100);
  EXPECT_FALSE(run->Heard("gpu1.w0", end)) << "once";
}

TEST_F(LyingHostTest, IsForgottenWithItsProcesses) {
  const auto run = Planned();
  EXPECT_FALSE(fleet_.ForgetHost("gpu1")) << "it is there";
  const protocol::Lease lease = LeasedTo(&liar_);
  fleet_.HostIs("gpu1", HostNews::kAway);
  EXPECT_FALSE(fleet_.ForgetHost("gpu1")) << "it holds a trial";
  fleet_.HostIs("gpu1", HostNews::kBack);
  liar_.Says("w0", protocol::TrialFailed{lease.trial, lease.attempt, true, "disk full"});
  fleet_.HostIs("gpu1", HostNews::kAway);
  EXPECT_TRUE(fleet_.ForgetHost("gpu1"));
  EXPECT_EQ(fleet_.Hosts().size(), 1u);
  EXPECT_EQ(fleet_.HostState("gpu1"), "");
  EXPECT_EQ(fleet_.Workers().size(), 1u);
  liar_.Says("w0", protocol::Want{1});  // a late message
  Ticks();
  AddRun(0);  // gets no row for a slot without a process
  LeasedTo(&host_);
  EXPECT_FALSE(run->ending());
}

template <typename Kind>
std::function<bool(const protocol::Message&)> RefusesFor(const std::string& run) {
  return [run](const protocol::Message& message) {
    const auto* kind = std::get_if<Kind>(&message);
    return kind != nullptr && kind->run == run;
  };
}

TEST_F(FleetTest, WhatFailsForOneRunEndsItAndTheOthersAreServedInTheSameRound) {
  const auto first = AddRun(10), second = AddRun(0);
  PlanBoth();
  host_.refuses = RefusesFor<protocol::Lease>(first->id());
  host_.Says("w0", protocol::Want{1});
  EXPECT_TRUE(first->ending());
  EXPECT_FALSE(second->ending());
  const auto leases = host_.Sent<protocol::Lease>();
  ASSERT_EQ(leases.size(), 1u) << "the fleet leases no more";
  EXPECT_EQ(leases[0].run, second->id());
}

TEST_F(FleetTest, WhatFailsOverAMetricJobEndsTheRunThatItIsOf) {
  const auto first = AddRun(0), second = AddRun(10);
  PlanBoth();
  host_.Says("w0", protocol::Want{1});
  const auto leases = host_.Sent<protocol::Lease>();
  ASSERT_EQ(leases.size(), 1u);
  ASSERT_EQ(leases[0].run, second->id());
  EndTrial(leases[0]);
  Until([&] { return second->View(0).wants_metric_processes; });
  host_.refuses = RefusesFor<protocol::Job>(second->id());
  host_.Says("m0", protocol::Hello{protocol::kVersion, "metric", "m0", 2, Json::object(), ""});
  host_.Says("m0", protocol::Want{1});
  EXPECT_TRUE(second->ending());
  EXPECT_FALSE(first->ending()) << "the oldest run has nothing to do with it";
}

TEST_F(FleetTest, UsersShareTheMetricProcesses) {
  const Json engine = {{"name", "emulated"}};
  const auto first = AddRun(0, engine, "ann"), second = AddRun(0, engine, "ann"),
             third = AddRun(0, engine, "bob");
  PlanBoth();
  Until([&, given = size_t{0}]() mutable {
    host_.Says("w0", protocol::Want{1});
    const auto leases = host_.Sent<protocol::Lease>();
    for (; given < leases.size(); ++given) EndTrial(leases[given]);
    return first->View(0).wants_metric_processes && second->View(0).wants_metric_processes &&
           third->View(0).wants_metric_processes;
  });
  host_.Says("m0", protocol::Hello{protocol::kVersion, "metric", "m0", 2, Json::object(), ""});
  host_.Says("m0", protocol::Want{1});
  ASSERT_EQ(host_.Sent<protocol::Job>().size(), 1u);
  EXPECT_EQ(host_.Sent<protocol::Job>()[0].run, first->id());
  host_.Says("m0", protocol::Want{1});  // it has ended the job in some way
  ASSERT_EQ(host_.Sent<protocol::Job>().size(), 2u);
  EXPECT_EQ(host_.Sent<protocol::Job>()[1].run, third->id())
      << "and not the next run of ann, who has had her turn";
}

TEST_F(FleetTest, WhatFailsOverAMessageOfNoRunEndsNone) {
  const auto first = AddRun(0), second = AddRun(0);
  fleet_.on_change = [](const std::string&) {
    throw Error(ErrorKind::kInfrastructure, "nobody can be told");
  };
  PlanBoth();  // the worker says hello, loads and is ready
  fleet_.on_change = nullptr;
  EXPECT_FALSE(first->ending());
  EXPECT_FALSE(second->ending());
  host_.Says("w0", protocol::Want{1});
  EXPECT_EQ(host_.Sent<protocol::Lease>().size(), 1u);
}

TEST_F(FleetTest, AnEventThatComesWhileOrdersAreCarriedOutWaitsForThem) {
  const auto run = AddRun(0);
  PlanBoth();
  host_.refuses = [&](const protocol::Message& message) {
    if (std::holds_alternative<protocol::Lease>(message)) host_.Ends("w0", {0, 9, ""});
    return false;
  };
  host_.Says("w0", protocol::Want{1});
  EXPECT_FALSE(run->ending());
  EXPECT_EQ(Worker()["state"], "restarting");
  EXPECT_EQ(Worker()["trials"], 0);
  host_.refuses = nullptr;
  StartedWith(2);
  host_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
  host_.Says("w0", protocol::Loaded{"", Engine(), Json::object()});
  host_.Says("w0", protocol::Want{1});
  const auto leases = host_.Sent<protocol::Lease>();
  ASSERT_EQ(leases.size(), 2u);
  EXPECT_EQ(leases[1].trial, leases[0].trial);
  EXPECT_EQ(leases[1].attempt, 2);
}

TEST_F(FleetTest, ARunThatChangesByItselfIsLookedAtInATurnOfItsOwn) {
  const auto run = AddRun(0);
  PlanBoth();
  run->Pause(true);
  fleet_.Tick();
  host_.Says("w0", protocol::Want{1});
  EXPECT_TRUE(host_.Sent<protocol::Lease>().empty());
  run->Pause(false);
  EXPECT_TRUE(host_.Sent<protocol::Lease>().empty()) << "the run is called while it calls";
  Until([&] { return !host_.Sent<protocol::Lease>().empty(); });
}

// An agent's description of the worker to a new orchestrator.
protocol::HeldProcess HeldWorker(const std::string& tag, const Json& engine) {
  protocol::HeldProcess held{
      "w0", "evald-worker", {"--engine", "emulated", "--settings", "its own"}, tag, 77, engine};
  held.loading = true;
  held.loaded = {{"engine", engine}, {"report", Json::object()}};
  held.wants = 1;
  return held;
}

TEST_F(FleetTest, AWorkerOfAnEarlierLifeGoesOnWithItsRun) {
  const auto run = AddRun(0);
  fleet_.HostReady(kLocalHost, {HeldWorker(run->profile().Tag(), Engine())}, {});
  EXPECT_EQ(Worker()["pid"], 77);
  EXPECT_EQ(Worker()["fingerprint"], "");
  Until([&] { return run->ending() || !host_.Sent<protocol::Lease>().empty(); });
  EXPECT_EQ(host_.Sent<protocol::Lease>().size(), 1u) << "the trial that it had asked for before";
  EXPECT_TRUE(host_.Sent<protocol::Load>().empty());
  EXPECT_EQ(host_.started.size(), 1u) << "for the run, before the worker was known of";
}

TEST_F(FleetTest, AWorkerWhoseProfileNoRunHasIsStartedAgainAsItWas) {
  fleet_.HostReady(kLocalHost, {HeldWorker("of an earlier life", Engine())}, {});
  host_.Ends("w0", {0, 9, ""});
  EXPECT_EQ(StartedWith(1), "its own");
  EXPECT_EQ(host_.started[0].tag, "of an earlier life");
}

TEST_F(FleetTest, AHostsProcessesThatItHasNoSlotForAreEndedAndWhatMakesNoSenseIsRefused) {
  protocol::HeldProcess held = HeldWorker("t", Engine());
  held.id = "w7";
  fleet_.HostReady(kLocalHost, {held}, {});
  EXPECT_EQ(host_.killed, std::vector<std::string>{"w7"});
  held = HeldWorker("t", Engine());
  held.loaded["engine"] = {{"name", 7}};
  EXPECT_ANY_THROW(fleet_.HostReady(kLocalHost, {held}, {}));
  EXPECT_EQ(Worker()["pid"], 0) << "nothing of it was taken";
}

// More runs than restarts of a worker (worker_restarts_max).
constexpr int kRunsMany = 8;
const protocol::Hello kWithoutEngine{protocol::kVersion, "worker", "w0", 1, Json(), ""};
const Json kGood = {{"name", "emulated"}, {"delay_ms", 1}};

Json Bad(int number) { return {{"name", "emulated"}, {"delay_ms", 100 + number}}; }

TEST_F(FleetTest, SettingsThatAWorkerRefusesEndTheirRunAloneAndCostTheDeviceNothing) {
  for (int i = 0; i < kRunsMany; ++i) AddRun(10, Bad(i));
  const auto good = AddRun(0, kGood);
  for (size_t i = 0; i < kRunsMany; ++i) {
    EXPECT_EQ(StartedWith(i + 1), "{\"delay_ms\":" + std::to_string(100 + i) + "}");
    const size_t sent = host_.sent.size();
    host_.Says("w0", kWithoutEngine);
    fleet_.Tick();
    EXPECT_EQ(host_.sent.size(), sent) << "it has no engine to load anything with";
    if (i % 2 == 0)
      host_.Says("w0", protocol::TrialFailed{-1, 0, false, "key 'delay_ms': too much", false});
    host_.Ends("w0", {2, 0, ""});  // some workers report no more than that
    ASSERT_TRUE(runs_[i]->ending());
    for (size_t other = i + 1; other < runs_.size(); ++other) EXPECT_FALSE(runs_[other]->ending());
    const RunEnding ending = runs_[i]->TakeEnding();
    EXPECT_EQ(ending.failure, ErrorKind::kInput);
    EXPECT_NE(ending.problems.at(0).find(i % 2 == 0 ? "too much" : "exit status 2"),
              std::string::npos)
        << ending.problems[0];
    fleet_.Remove(runs_[i]->number());
  }
  EXPECT_EQ(StartedWith(kRunsMany + 1), R"({"delay_ms":1})");
  EXPECT_EQ(Worker()["restarts"], 0);
  EXPECT_EQ(Worker()["state"], "starting");
  EXPECT_FALSE(good->ending());
  runs_.erase(runs_.begin(), runs_.end() - 1);
}

TEST_F(FleetTest, ARunWhoseWorkerDiesAtEachStartLeavesTheDeviceToOthers) {
  const auto bad = AddRun(10, Bad(0)), good = AddRun(0, kGood);
  const int attempts = bad->config().workers.max_attempts;
  for (int i = 1; i <= attempts; ++i) {
    EXPECT_EQ(StartedWith(static_cast<size_t>(i)), R"({"delay_ms":100})");
    EXPECT_FALSE(bad->ending());
    host_.Ends("w0", {0, 11, ""});
  }
  EXPECT_EQ(StartedWith(static_cast<size_t>(attempts) + 1), R"({"delay_ms":1})");
  EXPECT_TRUE(bad->ending());
  EXPECT_FALSE(good->ending());
  EXPECT_EQ(Worker()["restarts"], 0);
}

TEST_F(FleetTest, RestartsThatOneRunsSettingsUsedUpAreThereForAnother) {
  const auto bad = AddRun(10, Bad(0));
  StartedWith(1);
  const protocol::Loaded loaded{"", Engine(), Json::object()};
  host_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
  host_.Says("w0", loaded);  // other workers have loaded it, so the end counts against the worker
  const auto good = AddRun(0, kGood);
  size_t starts = 1;
  for (; host_.started.back().tag.find("100") != std::string::npos && starts < 50; ++starts) {
    host_.Ends("w0", {0, 11, ""});
    StartedWith(starts + 1);
  }
  EXPECT_EQ(StartedWith(starts), R"({"delay_ms":1})");
  EXPECT_TRUE(bad->ending());
  EXPECT_FALSE(good->ending());
}

// The worker is there and was sent the run's checkpoint.
class FleetLoadTest : public FleetTest {
 protected:
  explicit FleetLoadTest(double stall_timeout_s = 1800) : FleetTest(stall_timeout_s) {
    run_ = AddRun(0);
    StartedWith(1);
    host_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
    Until([&] { return !host_.Sent<protocol::Load>().empty(); });
  }
  void TickFor(std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    Until([&] {
      fleet_.Tick();
      return std::chrono::steady_clock::now() >= end;
    });
  }
  std::shared_ptr<Evaluation> run_;
};

TEST_F(FleetLoadTest, ALoadThatNoRunNeedsAnyMoreEndsForTheNextRun) {
  TickFor(std::chrono::milliseconds(20));
  EXPECT_TRUE(host_.killed.empty()) << "its run needs it";
  EXPECT_TRUE(host_.Sent<protocol::Stop>().empty());
  run_->Cancel("cancelled");
  fleet_.Remove(run_->number());
  const auto next = AddRun(0, kGood);
  TickFor(std::chrono::milliseconds(20));
  EXPECT_TRUE(!host_.Sent<protocol::Stop>().empty() || !host_.killed.empty()) << "it loads on";
  host_.Ends("w0", {0, 0, ""});
  StartedWith(2);
  EXPECT_EQ(Worker()["restarts"], 0) << "the device is not at fault";
  for (size_t start = 2; StartedWith(start) != R"({"delay_ms":1})";
       ++start) {  // the worker may be asked to stop once more
    ASSERT_LT(start, 4u) << "the next run gets no worker";
    host_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
    TickFor(std::chrono::milliseconds(20));
    host_.Ends("w0", {0, 0, ""});
  }
}

TEST_F(FleetLoadTest, ALoadThatARunOfTheSameNeedsGoesOn) {
  const auto other = AddRun(0);
  run_->Cancel("cancelled");
  fleet_.Remove(run_->number());
  TickFor(std::chrono::milliseconds(20));
  EXPECT_TRUE(host_.killed.empty());
  EXPECT_TRUE(host_.Sent<protocol::Stop>().empty());
}

// In these tests a load stalls at once.
class FleetStallTest : public FleetLoadTest {
 protected:
  FleetStallTest() : FleetLoadTest(0) {}
};

TEST_F(FleetStallTest, AWorkerWhoseLoadDoesNotComeOnIsKilledAndItsDeviceIsNotAtFault) {
  for (size_t times = 1; times <= 2; ++times) {
    Until([&] { return host_.Sent<protocol::Load>().size() == times; });
    TickFor(std::chrono::milliseconds(20));
    ASSERT_FALSE(host_.killed.empty()) << "its load may take for ever";
    host_.killed.clear();
    host_.Ends("w0", {0, 9, ""});
    EXPECT_EQ(fleet_.Hosts()[0]["devices"][0]["set_aside"], Json());
    StartedWith(times + 1);
    host_.Says("w0", protocol::Hello{protocol::kVersion, "worker", "w0", 1, Engine(), ""});
  }
}

// The host is there for four seconds. Its worker hands back after three, and ends nothing.
TEST_F(FleetTest, BeforeAHostEndsItsWorkerIsToldToHandBackAndIsRevoked) {
  const auto run = AddRun(0);
  fleet_.HostEnds(kLocalHost, 4);
  EXPECT_NEAR(fleet_.Hosts()[0]["ends_at"].get<double>(), WallSeconds() + 4, 1);
  PlanBoth();
  host_.Says("w0", protocol::Want{1});
  ASSERT_EQ(host_.Sent<protocol::Lease>().size(), 1u);
  const protocol::Lease lease = host_.Sent<protocol::Lease>()[0];
  const int64_t begin_us = MonotonicMicros();
  const auto tick_until = [&](int64_t at_us) {
    Until([&] {
      fleet_.Tick();
      return MonotonicMicros() - begin_us > at_us;
    });
  };
  tick_until(2'500'000);
  EXPECT_TRUE(host_.Sent<protocol::Shorten>().empty());
  tick_until(3'950'000);
  const auto shorten = host_.Sent<protocol::Shorten>();
  ASSERT_EQ(shorten.size(), lease.slices.size());
  EXPECT_EQ(shorten[0].trial, lease.trial);
  EXPECT_EQ(shorten[0].end, lease.slices[0].first + 1);
  ASSERT_EQ(host_.Sent<protocol::Revoke>().size(), 1u);
  EXPECT_EQ(host_.Sent<protocol::Revoke>()[0].trial, lease.trial);
  EXPECT_EQ(Worker()["trials"], 0);
  host_.Ends("w0", {0, 9, ""});
  EXPECT_FALSE(run->ending());
  EXPECT_EQ(Worker()["restarts"], 0);
  fleet_.HostEnds(kLocalHost, -1);
  EXPECT_TRUE(fleet_.Hosts()[0]["ends_at"].is_null());
}

}  // namespace
}  // namespace evald
