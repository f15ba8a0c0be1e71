// Hosts that go away, come back, begin anew and leave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(FleetHosts, AwayAndBackNothingIsLost) {
  TinyFleet fleet;
  fleet.AddHost("local", {});
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 40}});
  fleet.Deliver();
  const auto held = fleet.machine.FindWorker("far.w0")->held;
  ASSERT_EQ(held.size(), 1u);
  fleet.Take();
  fleet.HostIs("far", HostNews::kAway);
  EXPECT_THAT(fleet.Take(), ElementsAre("devices 0"));
  fleet.EndSlice(&fleet.At("far.w0"));  // the worker goes on, and nobody hears of it
  fleet.Pass(10);
  EXPECT_THAT(fleet.Take(), ElementsAre(HasSubstr("waiting 1: a device")))
      << "people are told, and that is all";
  EXPECT_EQ(fleet.machine.FindWorker("far.w0")->held, held);
  fleet.HostIs("far", HostNews::kBack);
  EXPECT_THAT(fleet.Take(), ElementsAre("devices 1"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
  for (const auto& [document, times] : fleet.runs.at(1).committed) EXPECT_EQ(times, 1);
}

TEST(FleetHosts, AwayForTooLongWhatItHoldsGoesToOthers) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddHost("far", {"cpu:0"});
  fleet.AddRun(ViewOf(1), {{"t", 40}});
  fleet.Deliver();
  ASSERT_EQ(fleet.machine.FindWorker("far.w0")->held.size(), 1u);
  fleet.HostIs("far", HostNews::kAway);
  fleet.Take();
  fleet.Pass(62);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains(HasSubstr("revoke far.w0 1.")));
  EXPECT_THAT(log, Contains("lost far.w0: far.w0: its host has been away for too long"));
  EXPECT_THAT(log, Not(Contains(HasSubstr("kill far.w0"))));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done()) << "the local worker does it all";
  fleet.HostIs("far", HostNews::kBack);
  fleet.Works("far.w0");
  fleet.Check();
  EXPECT_EQ(fleet.StateOf("far.w0"), WorkerState::kReady);
}

TEST(FleetHosts, APauseThatEndsWhileTheHostIsAwayEndsWhenItIsBack) {
  TinyFleet fleet;
  fleet.AddHost("local", {});
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1));
  fleet.Deliver();
  fleet.Dies("far.w0");
  fleet.HostIs("far", HostNews::kAway);
  fleet.Take();
  fleet.Pass(100);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("start")))) << "the host could not hear of it";
  EXPECT_EQ(fleet.StateOf("far.w0"), WorkerState::kPausing);
  fleet.HostIs("far", HostNews::kBack);
  fleet.Pass(0.4);
  EXPECT_THAT(fleet.Take(), Contains("start far.w0 p"));
}

TEST(FleetHosts, AHelloThatWaitedForItsHostIsNotLate) {
  TinyFleet fleet;
  fleet.AddHost("local", {});
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1));
  fleet.HostIs("far", HostNews::kAway);
  fleet.Pass(100);
  fleet.HostIs("far", HostNews::kBack);
  fleet.Tick();
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("kill"))));
  fleet.Deliver();
  EXPECT_EQ(fleet.StateOf("far.w0"), WorkerState::kReady);
}

TEST(FleetHosts, AHostThatIsForgottenLeavesItsSlotsToOthers) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddHost("north", {"cpu:0", "cpu:1"}, 2);
  fleet.AddRun(ViewOf(1));
  fleet.Deliver();
  EXPECT_FALSE(fleet.machine.HostForgotten("north", fleet.now)) << "it is there";
  fleet.WorkAll();
  const size_t workers = fleet.machine.workers().size(),
               metric_processes = fleet.machine.metric_processes().size();
  fleet.HostIs("north", HostNews::kLeft);
  EXPECT_TRUE(fleet.machine.HostForgotten("north", fleet.now));
  EXPECT_EQ(fleet.machine.hosts().size(), 1u);
  EXPECT_EQ(fleet.machine.FindWorker("north.w0"), nullptr);
  fleet.AddHost("south", {"cpu:0", "cpu:1"}, 2);
  EXPECT_EQ(fleet.machine.workers().size(), workers);
  EXPECT_EQ(fleet.machine.metric_processes().size(), metric_processes);
  fleet.AddRun(ViewOf(2));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(2).done());
}

TEST(FleetHosts, ALeavingHostEndsWhatItHoldsAndGetsNoMore) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 400}});
  fleet.Deliver();
  fleet.HostIs("far", HostNews::kLeaving);
  fleet.Take();
  fleet.Works("far.w0");
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("far"))));
  fleet.HostIs("far", HostNews::kAway);
  fleet.HostIs("far", HostNews::kBack);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("far")))) << "it is leaving all the same";
  EXPECT_EQ(fleet.machine.device_count(), 2);
}

TEST(FleetHosts, AHostThatLeftIsWaitedForByNobody) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 40}});
  fleet.Deliver();
  fleet.Take();
  fleet.HostIs("far", HostNews::kLeft);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("lost far.w0: far.w0: its host has left"));
  EXPECT_THAT(log, Contains("lost far.m0: far.m0: its host has left"));
  EXPECT_EQ(fleet.StateOf("far.w0"), WorkerState::kAbsent);
  fleet.machine.Ended("far.w0", {"killed by signal 9"}, fleet.now);
  fleet.Tick();
  EXPECT_THAT(fleet.Take(), Contains("ignored far.w0: its end when absent"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
}

TEST(FleetHosts, ARunWhoseHostLeftWaitsAndGoesOnWhenItComesAnew) {
  TinyFleet fleet;
  fleet.AddHost("local", {}, 1);
  fleet.AddHost("far", {"cpu:0"});
  fleet.AddRun(ViewOf(1));
  fleet.Deliver();
  fleet.HostIs("far", HostNews::kLeft);
  fleet.Pass(1);
  EXPECT_EQ(fleet.runs.at(1).waiting, "") << "it may be back in a moment";
  fleet.Pass(3);
  EXPECT_EQ(fleet.runs.at(1).waiting,
            "a device of the kind that it began on (processor): cpu:0 of host far, which has left");
  fleet.Dies("m0");  // a process may end meanwhile
  EXPECT_FALSE(fleet.runs.at(1).view.ending);
  fleet.AgentAnew("far", false);
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
  EXPECT_EQ(fleet.runs.at(1).waiting, "");
}

TEST(FleetHosts, AnAgentThatComesBackWithItsProcessesKeepsThem) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1, "c1"), {{"t", 40}});
  fleet.Deliver();
  fleet.Want(&fleet.At("w0"));
  fleet.Take();
  fleet.AgentAnew("local", true);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("lost w0: worker w0: replaced by another process of its host"));
  EXPECT_THAT(log, Contains("lease w0 1")) << "its want was known to the agent";
  for (const char* not_this : {"start", "load", "kill"})
    EXPECT_THAT(log, Not(Contains(HasSubstr(not_this))));
  EXPECT_EQ(fleet.machine.FindWorker("w0")->restarts, 0);
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
}

TEST(FleetHosts, ALifeOfTheOrchestratorAdoptsWhatTheOneBeforeStarted) {
  TinyFleet fleet;
  fleet.prompt = false;
  fleet.machine.HostAdded({"local", "", true, {"cpu:0", "cpu:1", "cpu:2", "cpu:3"}, 1}, fleet.now);
  const EngineFacts engine{"native", "1", "processor", false};
  fleet.machine.HostReady("local",
                          {{"w0", true, "p", false, true, "c1", engine, 1},
                           {"w1", true, "p", false, true, "c1", std::nullopt, 0},
                           {"w2", false, "p", false, false, std::nullopt, std::nullopt, 0},
                           {"m0", true, "", false, false, std::nullopt, std::nullopt, 1},
                           {"w9", true, "p", false, true, "c1", engine, 1}},
                          {"c7"}, fleet.now);
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kReady);
  EXPECT_EQ(fleet.StateOf("w1"), WorkerState::kLoading);
  EXPECT_EQ(fleet.StateOf("w2"), WorkerState::kStarting);
  EXPECT_EQ(fleet.StateOf("w3"), WorkerState::kIdle);
  EXPECT_EQ(fleet.machine.metric_processes()[0].state, MetricProcessState::kReady);
  EXPECT_THAT(fleet.machine.hosts().at("local").staged, ElementsAre("c1", "c7"));
  fleet.Tick();
  EXPECT_THAT(fleet.Take(), ElementsAre("kill w9: its host has no slot for it", "devices 4"));
}

TEST(FleetHosts, AnAgentThatBeginsAnewHasLostItsProcesses) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 40}});
  fleet.Deliver();
  fleet.Take();
  fleet.AgentAnew("local", false);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("lost w0: worker w0: lost with its agent"));
  EXPECT_THAT(log, Contains("lost m0: metric process m0: lost with its agent"));
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kPausing);
  fleet.Pass(0.4);
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
  fleet.Check();
}

TEST(FleetHosts, AHostThatComesWithFewerDevicesHasFewerWorkers) {
  TinyFleet fleet;
  fleet.AddHost("local", {});
  fleet.AddHost("far", {"cpu:0", "cpu:1"}, 1);
  fleet.AddRun(ViewOf(1), {{"t", 400}});
  fleet.Deliver();
  fleet.processes.erase("far.w0");
  fleet.processes.erase("far.m0");
  fleet.machine.HostAdded({"far", "far.", false, {"cpu:0"}, 1}, fleet.now);
  AdoptedProcess extra{"far.w1", true, "p", false, true, "", EngineFacts{}, 1};
  fleet.Take();
  fleet.machine.HostReady("far", {extra}, {}, fleet.now);
  fleet.Tick();
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Contains("kill far.w1: its host no longer has its device"));
  EXPECT_EQ(fleet.StateOf("far.w1"), WorkerState::kAbsent);
  EXPECT_EQ(fleet.machine.device_count(), 1);
  fleet.Pass(1);
  EXPECT_EQ(fleet.StateOf("far.w1"), WorkerState::kAbsent)
      << "nothing is started for a device that is not there";
}

}  // namespace
}  // namespace evald
