// Faults of workers, checkpoints and settings, runs that are cancelled, and the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(FleetFaults, ACheckpointThatNoWorkerSurvivesEndsItsRunAlone) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "good"), {{"t", 400}});
  fleet.on_load = [&](TinyProcess* process) {
    if (process->target == "bad") {
      fleet.Die(process);
    } else {
      fleet.Loaded(process);
    }
  };
  RunView bad = ViewOf(2, "bad");
  bad.priority = 1;
  fleet.AddRun(bad);
  fleet.Deliver();
  for (int i = 0; i < 200 && !fleet.runs.at(2).view.ending; ++i) {
    fleet.WorkAll(1);
  }
  EXPECT_EQ(fleet.runs.at(2).failure, "worker w0: killed by signal 9");
  const Log log = fleet.Take();
  EXPECT_EQ(std::count(log.begin(), log.end(), "load w0 2"), 3) << "max_attempts";
  EXPECT_LE(fleet.machine.FindWorker("w0")->restarts, 1)
      << "the run has its attempts counted, not the worker";
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
}

TEST(FleetFaults, ACheckpointThatAnotherWorkerLoadsIsNotTheFault) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0", "cpu:1"}, 1);
  fleet.on_load = [&](TinyProcess* process) {
    process->id == "w0" ? fleet.Die(process) : fleet.Loaded(process);
  };
  fleet.AddRun(ViewOf(1, "c1"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
}

TEST(FleetFaults, PausesGrowAndRestartsAreBounded) {
  TinyFleet fleet({.worker_restarts_max = 3});
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 400}}, true, 100);
  fleet.Deliver();
  std::vector<int64_t> pauses;
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(fleet.StateOf("w0"), WorkerState::kReady);
    fleet.Dies("w0");
    if (fleet.StateOf("w0") != WorkerState::kPausing) break;
    pauses.push_back(fleet.machine.FindWorker("w0")->due_us - fleet.now);
    fleet.Pass(2);
  }
  EXPECT_THAT(pauses, ElementsAre(200'000, 400'000, 800'000));
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kGivenUp);
  EXPECT_EQ(fleet.runs.at(1).failure, "w0: killed by signal 9");
  fleet.AddRun(ViewOf(2));
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kStarting) << "another run, another chance";
}

TEST(FleetFaults, ProgressForgetsFailures) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 400}});
  fleet.Deliver();
  fleet.Dies("w0");
  fleet.Pass(1);
  EXPECT_EQ(fleet.machine.FindWorker("w0")->restarts, 1);
  fleet.Works("w0");
  EXPECT_EQ(fleet.machine.FindWorker("w0")->restarts, 0);
}

TEST(FleetFaults, ARunThatIsCancelledWhileItsWorkerLoads) {
  TinyFleet fleet;
  fleet.on_load = [](TinyProcess*) {};
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "c1"));
  fleet.Deliver();
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kLoading);
  fleet.Fail(1, "cancelled");
  fleet.Remove(1, true);
  EXPECT_THAT(fleet.dropped, IsEmpty()) << "it is being read";
  fleet.AddRun(ViewOf(2, "c2"));
  fleet.Take();
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), IsEmpty()) << "a load is not broken off at once";
  fleet.on_load = nullptr;
  fleet.Loaded(&fleet.At("w0"));
  fleet.Deliver();
  const Log log = fleet.Take();
  EXPECT_THAT(log, Not(Contains("told 1 w0")));
  EXPECT_THAT(log, Contains("load w0 2"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(2).done());
  EXPECT_THAT(fleet.dropped, Contains("c1"));
}

TEST(FleetFaults, ALoadThatNobodyNeedsEnds) {
  TinyFleet fleet;
  fleet.on_load = [&](TinyProcess* process) {
    if (process->target == "c2") fleet.Loaded(process);
  };
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.AddRun(NativeView(1, "c1"));
  fleet.Deliver();
  fleet.AddRun(NativeView(2, "c2"));
  fleet.Fail(1, "cancelled");
  fleet.Take();
  fleet.Pass(4);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("stop"))));
  fleet.Pass(2);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("stop w0"));
  EXPECT_THAT(log, Contains("start w0 native"));
  EXPECT_THAT(log, Contains("load w0 2"));
  EXPECT_THAT(log, Not(Contains(HasSubstr("(at fault)"))));
  EXPECT_EQ(fleet.machine.FindWorker("w0")->restarts, 0);
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(2).done());
}

TEST(FleetFaults, ALoadThatASecondRunWantsGoesOn) {
  TinyFleet fleet;
  fleet.on_load = [](TinyProcess*) {};
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "c1"));
  fleet.AddRun(ViewOf(2, "c1"));
  fleet.Deliver();
  fleet.Fail(1, "cancelled");
  fleet.Take();
  fleet.Pass(60);
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kLoading);
  fleet.Fail(2, "cancelled");
  fleet.Tick();
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kStopping)
      << "nothing has come for longer than five seconds";
}

TEST(FleetFaults, ALoadThatDoesNotComeOnIsKilledAndTheDeviceIsNotAtFault) {
  TinyFleet fleet({.load_stall_s = 100});
  fleet.on_load = [](TinyProcess*) {};
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.AddRun(NativeView(1, "c1"));
  fleet.Deliver();
  for (int64_t bytes = 1; bytes <= 3; ++bytes) {  // slow progress is no stall
    fleet.Pass(80);
    fleet.Says("w0", news::Pulled{bytes, 10});
  }
  EXPECT_EQ(fleet.machine.FindWorker("w0")->pulled, 3);
  fleet.Says("w0", news::Pulled{3, 10});
  fleet.Pass(99);
  fleet.Says("w0", news::Pulled{3, 10});
  fleet.Take();
  fleet.Pass(2);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains(HasSubstr("kill w0: its load has not come on for 1")));
  EXPECT_THAT(log,
              Contains(HasSubstr("lost w0: worker w0 (cuda:GPU-a): its load has not come on")));
  EXPECT_THAT(log, Not(Contains(HasSubstr("(at fault)"))));
}

TEST(FleetFaults, ALoadOnAHostThatIsAwayIsWaitedFor) {
  TinyFleet fleet({.load_stall_s = 100});
  fleet.on_load = [](TinyProcess*) {};
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "c1"));
  fleet.Deliver();
  fleet.HostIs("far", HostNews::kAway);
  fleet.Pass(300);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("kill"))));
  fleet.HostIs("far", HostNews::kBack);
  fleet.Pass(99);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("kill"))));
  fleet.Pass(2);
  EXPECT_THAT(fleet.Take(), Contains(HasSubstr("kill far.w0: its load has not come on")));
}

TEST(FleetFaults, WhatARunThatIsOverLeavesIsRevoked) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 40}});
  fleet.Deliver();
  fleet.Fail(1, "cancelled");
  fleet.Take();
  fleet.Remove(1);
  EXPECT_THAT(fleet.Take(), ElementsAre("revoke w0 1.0.1"));
  EXPECT_THAT(fleet.machine.FindWorker("w0")->held, IsEmpty());
}

TEST(FleetFaults, RefusedSettingsEndTheRunsOfThatProfileAlone) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.on_start = [&](TinyProcess* process) {
    if (process->profile != "wrong") return fleet.Hello(process);
    fleet.SayFailed(process, "engine.settings.treads: unknown key", false);
    fleet.Die(process, "exit status 2", true);
  };
  RunView wrong = NativeView(1, "c1");
  wrong.profile = "wrong";
  fleet.AddRun(wrong);
  wrong.number = 2;
  fleet.AddRun(wrong);
  fleet.AddRun(NativeView(3, "c3"));
  fleet.Deliver();
  EXPECT_EQ(fleet.runs.at(1).failure, "engine.settings.treads: unknown key");
  EXPECT_EQ(fleet.runs.at(2).failure, "engine.settings.treads: unknown key");
  EXPECT_EQ(fleet.runs.at(3).failure, "");
  EXPECT_EQ(fleet.machine.FindWorker("w0")->restarts, 0);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Not(Contains(HasSubstr("(at fault)"))));
  EXPECT_EQ(std::count(log.begin(), log.end(), "start w0 wrong"), 1);
  EXPECT_EQ(fleet.machine.FindWorker("w0")->profile, "native")
      << "the slot is the other run's at once";
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(3).done());
}

TEST(FleetFaults, AnExitOverItsArgumentsIsARefusal) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.on_start = [&](TinyProcess* process) { fleet.Die(process, "exit status 2", true); };
  fleet.AddRun(ViewOf(1));
  fleet.Deliver();
  EXPECT_EQ(fleet.runs.at(1).failure, "exit status 2 before it had an engine");
  fleet.Pass(5);
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kIdle);
}

TEST(FleetFaults, AnEngineThatNoWorkerCanMakeEndsItsRun) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.on_start = [&](TinyProcess* process) {
    process->metric_process ? fleet.Hello(process) : fleet.Die(process);
  };
  fleet.AddRun(ViewOf(1));
  fleet.Deliver();
  fleet.Pass(5);
  EXPECT_EQ(fleet.runs.at(1).failure, "worker w0: killed by signal 9");
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kIdle) << "it is not started again for nobody";
}

TEST(FleetFaults, ALoadThatIsRefusedEndsItsRunAndLeavesTheWorker) {
  TinyFleet fleet;
  fleet.on_load = [&](TinyProcess* process) {
    if (process->target == "good") return fleet.Loaded(process);
    fleet.SayFailed(process, "config.json: no such family", false);
  };
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "bad"));
  fleet.Deliver();
  EXPECT_EQ(fleet.runs.at(1).failure, "config.json: no such family");
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kEmpty);
  fleet.AddRun(ViewOf(2, "good"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(2).done());
}

TEST(FleetFaults, ALoadThatAnUntrustedHostRefusesIsForOthers) {
  TinyFleet fleet;
  fleet.untrusted = {"north", "south"};
  fleet.on_load = [&](TinyProcess* process) {
    if (process->host == "local") return fleet.Loaded(process);
    fleet.SayFailed(process, "no", false);
  };
  fleet.AddHost("north", {"cpu:0"}, 1);
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "good"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done()) << fleet.runs.at(1).failure;
}

TEST(FleetFaults, WhereOnlyDoubtedHostsAreLeftTheRunIsTold) {
  TinyFleet fleet;
  fleet.untrusted = {"north", "south"};
  fleet.on_load = [&](TinyProcess* process) { fleet.SayFailed(process, "no", false); };
  fleet.AddHost("north", {"cpu:0"}, 1);
  fleet.AddHost("south", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "bad"));
  fleet.Deliver();
  fleet.Pass(5);
  EXPECT_EQ(fleet.runs.at(1).failure, "nobody else is there");
  EXPECT_EQ(fleet.runs.at(1).view.doubted, (std::set<std::string>{"north", "south"}));
}

TEST(FleetFaults, WhoSaysNothingIsKilled) {
  TinyFleet fleet;
  fleet.prompt = false;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1));
  fleet.Pass(59);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("kill"))));
  fleet.Pass(2);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("kill w0: it was started and has not said hello"));
  EXPECT_THAT(log, Contains("kill m0: it was started and has not said hello"));
  EXPECT_THAT(log, Contains("lost w0: worker w0: it was started and has not said hello"));
}

TEST(FleetFaults, WhoDoesNotStopIsKilled) {
  TinyFleet fleet;
  fleet.ignores_stop = true;
  fleet.AddHost("local", {"cpu:0"});
  fleet.AddRun(ViewOf(1, "", "p"));
  fleet.Deliver();
  RunView other = ViewOf(2, "", "q");
  other.priority = 1;
  fleet.AddRun(other);
  fleet.Works("w0");
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kStopping);
  fleet.Take();
  fleet.Pass(4.9);
  EXPECT_THAT(fleet.Take(), IsEmpty());
  fleet.Pass(0.5);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("kill w0: it was told to stop and has not"));
  EXPECT_THAT(log, Contains("start w0 q"));
  EXPECT_EQ(fleet.machine.FindWorker("w0")->restarts, 0);
}

TEST(FleetFaults, WhoIsSilentIsKilledBeforeItsTrialGoesToOthers) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0", "cpu:1"}, 1);
  TinyRun& run = fleet.AddRun(ViewOf(1), {{"t", 400}});
  fleet.Deliver();
  fleet.Take();
  const auto held = fleet.machine.FindWorker("w0")->held;
  fleet.now += 70'000'000;
  run.machine.WorkerHeard("w1"_p, fleet.now);
  fleet.Tick();
  EXPECT_THAT(fleet.Take(), ElementsAre("kill w0: it has been silent for too long"));
  EXPECT_EQ(fleet.machine.FindWorker("w0")->held, held) << "until it has ended";
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Contains("lost w0: worker w0: it has been silent for too long"));
  fleet.WorkAll();
  EXPECT_TRUE(run.done());
}

TEST(FleetFaults, WithoutMetricProcessesARunEnds) {
  TinyFleet fleet({.metric_restarts_max = 1});
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 8}});
  fleet.Deliver();
  fleet.Works("w0");
  fleet.Dies("m0");
  fleet.Pass(1);
  fleet.Dies("m0");
  EXPECT_EQ(fleet.runs.at(1).failure, "m0: killed by signal 9");
}

TEST(FleetFaults, WhatComesLateIsIgnoredAndSaysSo) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1));
  fleet.Deliver();
  fleet.Take();
  const EngineFacts engine{"native", "1", "processor", false};
  fleet.Says("w0", news::Loaded{"another", engine});
  fleet.Says("w0", news::Hello{});
  fleet.Says("w7", news::Hello{});
  fleet.Says("w0", news::TrialOver{{9, 1, 1}, true, true, 1});
  EXPECT_THAT(fleet.Take(),
              ElementsAre("ignored w0: loaded when ready", "ignored w0: hello when ready",
                          "ignored w7: a message when unknown",
                          "ignored w0: the end of a trial when of a run that is over"));
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kReady);
}

TEST(FleetFaults, AnAnswerThatNobodyAskedForIsAFaultOfTheExecutor) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  EXPECT_ANY_THROW(fleet.machine.Answered(answer::Leased{"w0", {1, 1, 1}}, fleet.now));
}

TEST(FleetFaults, AfterStopAllNothingIsGivenOutOrStarted) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 400}});
  fleet.Deliver();
  fleet.Take();
  fleet.machine.StopAll();
  fleet.Tick();
  EXPECT_THAT(fleet.Take(), ElementsAre("stop hosts"));
  fleet.Works("w0");
  fleet.Dies("w0");
  fleet.Dies("m0");
  fleet.Pass(2);
  for (const std::string& line : fleet.Take()) EXPECT_THAT(line, HasSubstr("lost")) << line;
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kIdle);
}

}  // namespace
}  // namespace evald
