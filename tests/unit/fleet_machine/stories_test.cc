// The order in which runs get workers: a fleet of made-up hosts, story by story.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Most of these runs have a checkpoint.
RunView A(int64_t number, const std::string& load = "c1", const std::string& profile = "p") {
  return ViewOf(number, load, profile);
}

TEST(FleetStory, AWorkerIsStartedLoadsAndGetsTrialsUntilTheRunIsDone) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  EXPECT_THAT(fleet.Take(), ElementsAre("devices 1"));
  fleet.AddRun(A(1));
  EXPECT_THAT(fleet.Take(), ElementsAre("start w0 p", "start m0"));
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kStarting);
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), ElementsAre("load w0 1", "told 1 w0", "lease w0 1"));
  EXPECT_EQ(fleet.machine.FindWorker("w0")->held.size(), 1u);
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
  EXPECT_THAT(fleet.Take(), Contains("job m0 1 own"));
  fleet.Check();
}

TEST(FleetStory, TwoRunsShareOneWorkerByPriorityThenAge) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(A(1, "c1"));
  fleet.Deliver();
  RunView urgent = A(2, "c2");
  urgent.priority = 5;
  fleet.AddRun(urgent);
  fleet.Take();
  fleet.Works("w0");
  EXPECT_THAT(fleet.Take(), Contains("load w0 2"));
  while (!fleet.runs.at(2).done()) {
    fleet.WorkAll(1);
    ASSERT_LT(fleet.now, 100'000'000);
  }
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
  EXPECT_THAT(fleet.Take(), Contains("load w0 1")) << "it goes back to the run of lower priority";
}

TEST(FleetStory, UsersOfOnePriorityShareTheDevices) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  RunView first = A(1, "c1"), second = A(2, "c2");
  first.user = "ann";
  second.user = "bob";
  fleet.AddRun(first, {{"t", 4000}});
  fleet.AddRun(second, {{"t", 4000}});
  fleet.Deliver();
  Log log;
  for (int i = 0; i < 400 && !testing::Test::HasFailure(); ++i) {
    fleet.Works("w0");
    for (const std::string& line : fleet.Take()) {
      if (line.starts_with("load")) log.push_back(line);
    }
  }
  // The estimate of a trial is half a second. Devices change users after a difference of 30
  // seconds.
  ASSERT_GE(log.size(), 4u);
  EXPECT_THAT(Log(log.begin(), log.begin() + 4),
              ElementsAre("load w0 1", "load w0 2", "load w0 1", "load w0 2"));
  EXPECT_LT(log.size(), 20u) << "and not with every trial";
}

// An older run of another user has many jobs that take long.
TEST(FleetStory, UsersShareTheMetricProcesses) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  RunView first = A(1), second = A(2);
  first.user = "ann";
  second.user = "bob";
  fleet.AddRun(first, {{"t", 200}, {"u", 200}, {"v", 200}});
  fleet.Deliver();
  while (!fleet.At("m0").jobs.empty() || fleet.runs.at(1).machine.jobs().queued() < 3) {
    if (fleet.At("m0").jobs.size() == 1 && fleet.runs.at(1).machine.jobs().queued() >= 3) break;
    fleet.Works("w0");
    ASSERT_LT(fleet.events, 10'000);
  }
  fleet.AddRun(second, {{"t", 8}});
  while (fleet.runs.at(2).machine.jobs().queued() == 0) {
    fleet.Works("w0");
    ASSERT_LT(fleet.events, 10'000);
  }
  fleet.Take();
  fleet.Pass(8);
  fleet.Works("m0");
  EXPECT_THAT(fleet.Take(), Contains("job m0 2 own")) << "and not the next of the older run";
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done() && fleet.runs.at(2).done());
}

TEST(FleetStory, AnotherProfileGetsTheSlotOnceTheWorkerHoldsNothing) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(A(1, "c1", "p"));
  fleet.Deliver();
  RunView other = A(2, "c2", "q");
  other.priority = 1;
  fleet.AddRun(other);
  fleet.Take();
  fleet.Want(&fleet.At("w0"));
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), IsEmpty()) << "it works off what it holds, and gets no more";
  fleet.Works("w0");
  EXPECT_THAT(fleet.Take(), ElementsAre("job m0 1 own", "stop w0", HasSubstr("lost w0"),
                                        "start w0 q", "load w0 2", "told 2 w0", "lease w0 2"));
  EXPECT_EQ(fleet.machine.FindWorker("w0")->restarts, 0) << "nobody failed";
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done() && fleet.runs.at(2).done());
}

TEST(FleetStory, AWorkerOfTheSameProfileIsKept) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(A(1, "c1"));
  fleet.WorkAll();
  fleet.Remove(1, true);
  fleet.Take();
  fleet.AddRun(A(2, "c2"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(2).done());
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("load w0 2"));
  EXPECT_THAT(log, Contains("drop c1")) << "nobody uses it once the worker has loaded another";
  EXPECT_THAT(log, Not(Contains(HasSubstr("start w0"))));
}

TEST(FleetStory, WhoHasTheCheckpointOfAnotherRunNeedsNoLoad) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(A(1, "c1"));
  fleet.WorkAll();
  fleet.Take();
  fleet.AddRun(A(2, "c1"));
  fleet.WorkAll();
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("told 2 w0"));
  EXPECT_THAT(log, Not(Contains("load w0 2")));
  EXPECT_TRUE(fleet.runs.at(2).done());
}

TEST(FleetStory, ARunThatHasNothingIsAskedOnceUntilItChanges) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0", "cpu:1"});
  fleet.AddRun(A(1, "c1"), {{"t", 1}});
  fleet.AddRun(A(2, "c1"), {{"t", 1}});
  fleet.Deliver();
  // Both workers asked when each run had one trial.
  EXPECT_EQ(
      fleet.machine.FindWorker("w0")->held.size() + fleet.machine.FindWorker("w1")->held.size(),
      2u);
  const Log log = fleet.Take();
  EXPECT_LE(std::count(log.begin(), log.end(), "lease w1 1"), 1);
  EXPECT_LE(std::count(log.begin(), log.end(), "lease w0 1"), 2);
  fleet.Check();
}

TEST(FleetStory, AWantThatCrossedALoadIsVoid) {
  TinyFleet fleet;
  fleet.prompt = false;
  fleet.AddHost("local", {"cpu:0"});
  fleet.AddRun(A(1));
  TinyProcess& w0 = fleet.At("w0");
  fleet.Hello(&w0);
  fleet.DeliverFrom(&w0);
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kLoading);
  fleet.Says("w0", news::Want{1});
  EXPECT_THAT(fleet.Take(), Contains("ignored w0: want when loading"));
  fleet.Loaded(&w0);
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Not(Contains("lease w0 1")));
  fleet.Want(&w0);
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Contains("lease w0 1"));
}

TEST(FleetStory, AnIdleWorkerFollowsAStagingAndLoadsWhatBecomesOfIt) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"});
  fleet.AddHost("far", {"cpu:0"});
  fleet.AddRun(A(1), {{"t", 8}}, false);
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("follow"))));
  fleet.runs.at(1).view.followable = 1;
  fleet.Changed(1);
  EXPECT_THAT(fleet.Take(), ElementsAre("follow w0 1")) << "not where nothing is staged";
  fleet.Says("w0", news::Idle{});
  EXPECT_THAT(fleet.Take(), IsEmpty()) << "it is told once";
  fleet.runs.at(1).view.followable = 2;
  fleet.Changed(1);
  EXPECT_THAT(fleet.Take(), ElementsAre("follow w0 1")) << "it is staged anew";
  fleet.Deliver();
  fleet.Stage(1);
  EXPECT_THAT(fleet.Take(), ElementsAre("load w0 1"));
}

TEST(FleetStory, NobodyFollowsWhoseCheckpointARunMayAskFor) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(A(1, "c1"));
  fleet.WorkAll();
  fleet.AddRun(A(2, "c2"), {{"t", 8}}, false);
  fleet.runs.at(2).view.followable = 1;
  fleet.Take();
  fleet.Changed(2);
  EXPECT_THAT(fleet.Take(), Not(Contains("follow w0 2")));
  fleet.Remove(1);
  EXPECT_THAT(fleet.Take(), Contains("follow w0 2"));
}

TEST(FleetStory, ProcessorsServeANativeRunOnlyWhereNoGpuIsUsable) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"});
  fleet.AddHost("gpu", {"cuda:GPU-a"});
  RunView view = A(1, "");
  view.uses_devices = true;
  fleet.AddRun(view);
  fleet.Deliver();
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("load gpu.w0 1"));
  EXPECT_THAT(log, Not(Contains("load w0 1")));
  EXPECT_TRUE(fleet.runs.at(1).view.engine->own_gpu);
  fleet.HostIs("gpu", HostNews::kLeft);
  fleet.Pass(3);
  EXPECT_THAT(
      fleet.Take(),
      Contains("waiting 1: a device of the kind that it began on (gpu): cuda:GPU-a of host gpu, "
               "which has left"));
  EXPECT_THAT(fleet.machine.FindWorker("w0")->held, IsEmpty())
      << "of one run all numbers come from one kind of engine";
  RunView later = A(2, "");
  later.uses_devices = true;
  fleet.AddRun(later);
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Contains("lease w0 2")) << "no GPU is there for a run that begins now";
}

TEST(FleetStory, ASmallRunStaysWhereItsCheckpointIs) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"});
  fleet.AddHost("far", {"cpu:0"});
  RunView view = A(1);
  view.checkpoint_bytes = 10e9;  // takes ten seconds to arrive
  fleet.AddRun(view, {{"t", 8}});
  fleet.Deliver();
  fleet.Pass(1);
  EXPECT_THAT(fleet.Take(), Not(Contains("load far.w0 1")));
  RunView large = A(2);
  large.checkpoint_bytes = 10e9;
  fleet.AddRun(large, {{"t", 10'000}});
  fleet.Deliver();
  fleet.Pass(1);
  EXPECT_THAT(fleet.Take(), Contains("load far.w0 2"));
  EXPECT_THAT(fleet.machine.hosts().at("far").staged, Contains("c1"));
}

// A local host and far ones, whose loads end when the test says so.
struct Spreading {
  explicit Spreading(int hosts, FleetMachine::Options options = {}) : fleet(options) {
    fleet.on_load = [this](TinyProcess* process) {
      process->host == "local" ? fleet.Loaded(process) : loading.push_back(process);
    };
    fleet.AddHost("local", {"cpu:0"});
    for (int i = 1; i <= hosts; ++i) fleet.AddHost("far" + std::to_string(i), {"cpu:0", "cpu:1"});
    RunView view = A(1);
    view.checkpoint_bytes = 10e9;  // takes ten seconds to arrive
    fleet.AddRun(view, {{"t", 1'000'000}});
    fleet.Deliver();
    fleet.Pass(1);
  }
  std::set<std::string> hosts() const {
    std::set<std::string> names;
    for (const TinyProcess* process : loading) names.insert(process->host);
    return names;
  }
  void EndAll() {
    for (TinyProcess* process : std::exchange(loading, {})) fleet.Loaded(process);
    fleet.Deliver();
    fleet.Pass(0.5);
  }
  TinyFleet fleet;
  std::vector<TinyProcess*> loading;
};

TEST(FleetStory, HostsGetACheckpointInTurn) {
  Spreading story(8);
  EXPECT_EQ(story.hosts().size(), 1u);
  EXPECT_EQ(story.loading.size(), 2u) << "both workers of the host wait for one copy";
  story.fleet.Pass(9);
  story.EndAll();
  EXPECT_EQ(story.hosts().size(), 2u);
  story.fleet.Pass(20);  // beside each other they take twice as long
  story.EndAll();
  EXPECT_EQ(story.hosts().size(), 1u);
}

TEST(FleetStory, ACheckpointIsThereOnceAWorkerPullsIt) {
  Spreading story(3);
  ASSERT_EQ(story.hosts().size(), 1u);
  TinyProcess& first = *story.loading[0];
  story.fleet.Pass(9);
  const auto pulls = [&](int64_t bytes) {
    first.outbox.push_back([&, bytes] {
      story.fleet.machine.Heard(first.id, {news::Pulled{bytes, 100}}, story.fleet.now);
    });
    story.fleet.Deliver();
    story.fleet.Pass(0.5);
  };
  for (int i = 0; i < 3; ++i) pulls(100);  // of the checkpoint before
  EXPECT_EQ(story.hosts().size(), 1u);
  pulls(1);
  EXPECT_THAT(story.fleet.machine.hosts().at(first.host).staged, Contains("c1"));
  EXPECT_EQ(story.hosts().size(), 3u) << "the next hosts need not wait for the worker";
}

TEST(FleetStory, ALateCopyKeepsNobodyWaiting) {
  Spreading story(3);
  ASSERT_EQ(story.hosts().size(), 1u);
  story.fleet.Pass(25);
  EXPECT_EQ(story.hosts().size(), 1u);
  story.fleet.Pass(10);
  EXPECT_EQ(story.hosts().size(), 2u);
}

TEST(FleetStory, HostsThatPassACheckpointOnGetItAtOnce) {
  FleetMachine::Options options;
  options.hosts_pass_on = true;
  EXPECT_EQ(Spreading(8, options).hosts().size(), 8u);
}

TEST(FleetStory, AnyHostLoadsWhereNoneHasADeviceBeside) {
  TinyFleet fleet;
  fleet.AddHost("local", {});
  fleet.AddHost("far", {"cpu:0"});
  RunView view = A(1);
  view.checkpoint_bytes = 10e9;
  fleet.AddRun(view);
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Contains("load far.w0 1"));
}

TEST(FleetStory, AnIdleWorkerTakesOverWhatAnotherHasNotBegun) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0", "cpu:1"});
  fleet.AddRun(A(1), {{"t", 80}});
  fleet.Deliver();
  fleet.EndSlice(&fleet.At("w1"));
  for (int i = 0; i < 40; ++i) {  // w0 only gives signs of life
    fleet.now += 500'000;
    fleet.Works("w1");
    for (const char* id : {"w0", "w1"}) fleet.Beat(&fleet.At(id));
    fleet.Deliver();
    fleet.Check();
  }
  EXPECT_THAT(fleet.Take(), Contains("steal w1 1")) << "nothing is open, and a worker asks";
}

TEST(FleetStory, WhatAnotherCommittedMeanwhileIsRevoked) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0", "cpu:1"}, 1);
  TinyRun& run = fleet.AddRun(A(1), {{"t", 2}});
  fleet.Deliver();
  for (int i = 0; i < 600; ++i) {
    fleet.now += 500'000;
    fleet.Works("w1");
    for (const char* id : {"w0", "w1"}) fleet.Beat(&fleet.At(id));
    fleet.Deliver();
    for (const WorkerSlot& slot : fleet.machine.workers()) {
      for (const HeldTrial& held : slot.held) {
        if (!run.machine.is_backup(held.trial)) continue;
        fleet.Take();
        fleet.Works(slot.id);
        EXPECT_THAT(fleet.Take(),
                    Contains(HasSubstr(slot.id == "w0" ? "revoke w1 1." : "revoke w0 1.")));
        fleet.Check();
        return;
      }
    }
  }
  FAIL() << "no backup of what is late was leased: " << testing::PrintToString(fleet.Take());
}

TEST(FleetStory, WorkersLetGoOfACheckpointThatNobodyNeedsWhereSpaceIsWanted) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(A(1, "c1"));
  fleet.WorkAll();
  EXPECT_FALSE(fleet.machine.FreeStaged(fleet.now)) << "a run may ask for it";
  fleet.Remove(1, true);
  EXPECT_THAT(fleet.dropped, IsEmpty()) << "a worker has it loaded";
  fleet.Take();
  EXPECT_TRUE(fleet.machine.FreeStaged(fleet.now));
  EXPECT_TRUE(fleet.machine.FreeStaged(fleet.now)) << "it is on its way out";
  fleet.Tick();
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), ElementsAre("stop w0", HasSubstr("lost w0"), "start w0 p", "drop c1"));
  EXPECT_FALSE(fleet.machine.FreeStaged(fleet.now));
}

TEST(FleetStory, SpaceOfACheckpointThatIsStillBeingLoadedForNobodyComes) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.on_load = [](TinyProcess*) {};
  fleet.AddRun(A(1, "c1"));
  fleet.Deliver();
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kLoading);
  fleet.Remove(1, true);
  EXPECT_THAT(fleet.dropped, IsEmpty()) << "a worker loads it";
  EXPECT_TRUE(fleet.machine.FreeStaged(fleet.now));
  fleet.AddRun(A(2, "c1"));
  EXPECT_FALSE(fleet.machine.FreeStaged(fleet.now)) << "another run needs it now";
  fleet.Remove(2);
  EXPECT_TRUE(fleet.machine.FreeStaged(fleet.now));
  fleet.Pass(10);
  fleet.Deliver();
  EXPECT_THAT(fleet.dropped, ElementsAre("c1"));
  EXPECT_FALSE(fleet.machine.FreeStaged(fleet.now));
}

TEST(FleetStory, WhatLiesWhereItIsReadTakesNoSpace) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  RunView view = A(1, std::string(kUnstagedLoad) + "/models/m");
  fleet.AddRun(view, {{"t", 8}});
  fleet.runs.at(1).view.fingerprint = "";
  fleet.Changed(1);
  fleet.WorkAll();
  fleet.Remove(1);
  EXPECT_FALSE(fleet.machine.FreeStaged(fleet.now));
}

// If nothing changed for other processes, an event looks at its own process only. The test prints
// the figure.
TEST(FleetStory, AThousandWorkersThatAskAndAHundredRunsThatWantNothing) {
  FleetMachine machine({});
  HostSpec host{"local", "", true, {}, 0};
  std::vector<AdoptedProcess> processes;
  const EngineFacts engine{"native", "1", "processor", false};
  for (int i = 0; i < 1000; ++i) {
    host.devices.push_back("cpu:" + std::to_string(i));
    processes.push_back({"w" + std::to_string(i), true, "p", false, true, "c0", engine, 1});
  }
  machine.HostAdded(host, 1);
  machine.HostReady("local", processes, {}, 1);
  for (int64_t number = 1; number <= 100; ++number) {
    RunView view = A(number, "c" + std::to_string(number % 10));
    view.fingerprint = view.load;
    view.engine = engine;
    view.planned = true;
    machine.RunChanged(view, 1);
  }
  machine.TakeOrders();
  const auto begin = std::chrono::steady_clock::now();
  for (int round = 0; round < 20; ++round) {
    for (const AdoptedProcess& process : processes) machine.Heard(process.id, news::Want{1}, 2);
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  EXPECT_TRUE(machine.TakeOrders().empty());
  std::cout << took.count() / 20'000 << " microseconds for each event\n";
  RunView wants = A(10, "c0");
  wants.fingerprint = "c0";
  wants.engine = engine;
  wants.planned = wants.wants_workers = true;
  machine.RunChanged(wants, 3);
  std::set<std::string> asked;
  for (std::vector<Order> orders = machine.TakeOrders(); !orders.empty();
       orders = machine.TakeOrders()) {
    ASSERT_EQ(orders.size(), 1u) << "one after another: the first may get all that there is";
    const auto& lease = std::get<order::LeaseTrial>(orders[0]);
    EXPECT_TRUE(asked.insert(lease.worker).second) << "each once";
    machine.Answered(answer::NothingToLease{lease.worker, lease.run}, 3);
  }
  EXPECT_EQ(asked.size(), 1000u);
}

TEST(FleetStory, ScoresAreMadeWhereTheGenerationsLie) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddHost("far", {}, 1);
  fleet.AddRun(A(1), {{"t", 1}});
  fleet.Deliver();
  fleet.Take();
  fleet.Works("w0");
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("job m0 1 own"));
  EXPECT_EQ(fleet.At("m0").jobs.size(), 1u);
  EXPECT_EQ(fleet.At("far.m0").jobs.size(), 0u);
}

TEST(FleetStory, ABusyHostsScoresAreMadeElsewhere) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 0);
  fleet.AddHost("far", {}, 1);
  fleet.AddRun(A(1), {{"t", 1}});
  fleet.Deliver();
  fleet.Works("w0");
  EXPECT_THAT(fleet.Take(), Contains("job far.m0 1"));
  EXPECT_EQ(fleet.At("far.m0").jobs.size(), 1u);
}

}  // namespace
}  // namespace evald
