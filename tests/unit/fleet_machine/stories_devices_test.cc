// Faults of devices, and faults that only look like theirs.
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

// The third failure within ten minutes, with no trial finished in between.
TEST(FleetDevices, ADeviceThatFailsAgainAndAgainIsSetAside) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cuda:GPU-a", "cuda:GPU-b"}, 1);
  fleet.AddRun(NativeView(1), {{"t", 40}}, true, 100);
  fleet.Deliver();
  fleet.Dies("w0");
  fleet.Pass(1);
  fleet.Works("w0");  // w0 finishes trials, so its failures do not count
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(fleet.StateOf("w0"), WorkerState::kReady) << i;
    fleet.Dies("w0");
    fleet.Pass(2);
  }
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kSetAside);
  const Log log = fleet.Take();
  EXPECT_THAT(
      log,
      Contains(
          "aside local cuda:GPU-a: it failed 3 times within 10 minutes without finishing a trial, "
          "the last time: killed by signal 9"));
  EXPECT_THAT(log, Contains("lost w0: worker w0 (cuda:GPU-a): killed by signal 9 (at fault)"));
  EXPECT_THAT(log, Contains("devices 1"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done()) << "the other GPU does the rest";
  fleet.AddRun(NativeView(2));
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kSetAside) << "another run is no reason";
  fleet.AgentAnew("local", true);
  EXPECT_NE(fleet.StateOf("w0"), WorkerState::kSetAside) << "its host came anew";
}

TEST(FleetDevices, WithTheLastDeviceItsRunsEnd) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.AddRun(NativeView(1), {{"t", 40}}, true, 100);
  fleet.Deliver();
  for (int i = 0; i < 3; ++i) {
    fleet.Dies("w0");
    fleet.Pass(2);
  }
  EXPECT_THAT(fleet.runs.at(1).failure,
              HasSubstr("w0: device cuda:GPU-a is set aside: it failed 3 times"));
  fleet.AddRun(NativeView(2));
  fleet.Pass(1);
  EXPECT_THAT(fleet.runs.at(2).failure, HasSubstr("is set aside"))
      << "a run that comes later hears of it";
}

TEST(FleetDevices, AnEndWhoseCauseIsNotTheDeviceIsExcused) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.AddRun(NativeView(1), {{"t", 400}}, true, 100);
  fleet.Deliver();
  for (int i = 0; i < 4; ++i) {
    fleet.SayFailed(&fleet.At("w0"), "the disk is full", true);
    fleet.Deliver();
    fleet.Pass(4);
  }
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("kill w0: the disk is full"));
  EXPECT_THAT(log, Contains("lost w0: worker w0 (cuda:GPU-a): the disk is full"));
  EXPECT_NE(fleet.StateOf("w0"), WorkerState::kSetAside);
  for (int i = 0; i < 3; ++i) {
    fleet.Pass(10);
    ASSERT_EQ(fleet.StateOf("w0"), WorkerState::kReady);
    fleet.SayFailed(&fleet.At("w0"), "an uncorrectable error", true, true);
    fleet.Deliver();
  }
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kSetAside) << "a cause that is the device counts";
}

TEST(FleetDevices, AGpuThatDiesOverAnUnprovenLoadIsNotSetAside) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.on_load = [&](TinyProcess* process) { fleet.Die(process); };
  fleet.AddRun(NativeView(1));
  fleet.Deliver();
  fleet.Pass(5);
  EXPECT_EQ(fleet.runs.at(1).failure, "worker w0 (cuda:GPU-a): killed by signal 9");
  EXPECT_NE(fleet.StateOf("w0"), WorkerState::kSetAside);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("(at fault)"))));
}

TEST(FleetDevices, AWorkerWhoseGpuIsHeldByAnotherProcessWaits) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.prompt = false;
  fleet.AddRun(NativeView(1));
  const news::Waits held{"cuda:GPU-a is held by process 77 (train.py)"};
  fleet.Says("w0", held);
  for (int i = 0; i < 12; ++i) {
    fleet.Pass(10);
    fleet.Says("w0", held);
  }
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kWaiting);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Not(Contains(HasSubstr("kill w0")))) << "it says so again, and is not late";
  EXPECT_THAT(
      log,
      Contains("waiting 1: a device: cuda:GPU-a is held by process 77 (train.py) on host local"));
  fleet.Dies("w0");
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("(at fault)")))) << "no fault of the device's";
  fleet.prompt = true;
  fleet.Pass(1);
  EXPECT_EQ(fleet.StateOf("w0"), WorkerState::kReady);
  fleet.Pass(1);
  EXPECT_EQ(fleet.runs.at(1).waiting, "");
}

TEST(FleetDevices, AGpuOfAnotherHostThatIsNeverFreeIsNotWaitedForWithoutEnd) {
  TinyFleet fleet;
  fleet.untrusted = {"liar"};
  fleet.on_start = [&](TinyProcess* process) {
    if (process->host != "liar") fleet.Hello(process);
  };
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddHost("liar", {"cuda:GPU-a"});
  fleet.AddRun(NativeView(1));
  const news::Waits held{"cuda:GPU-a is held by process 77 (train.py)"};
  for (int i = 0; i < 11; ++i) {
    fleet.Says("liar.w0", held);
    fleet.Pass(10);
  }
  EXPECT_FALSE(fleet.runs.at(1).view.engine) << "for some time it is waited for";
  fleet.Dies("liar.w0");  // does not begin a new wait
  for (int i = 0; i < 3; ++i) {
    fleet.Pass(10);
    fleet.Says("liar.w0", held);
  }
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done()) << fleet.runs.at(1).waiting;
  fleet.on_start = nullptr;
  fleet.Hello(&fleet.At("liar.w0"));
  fleet.Deliver();
  fleet.AddRun(NativeView(2, "c2"));
  fleet.WorkAll();
  ASSERT_TRUE(fleet.runs.at(2).done());
  EXPECT_TRUE(fleet.runs.at(2).view.engine->own_gpu) << "once it is free, it counts";
}

TEST(FleetDevices, ARunSaysThatItWaitsForAWorkerThatAsksForNothing) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(NativeView(1), {{"t", 40}});
  fleet.Deliver();
  fleet.WorkAll(1);
  fleet.prompt = false;
  fleet.Dies("w0");
  fleet.Pass(2);
  fleet.Hello(&fleet.At("w0"));
  fleet.Deliver();
  fleet.Loaded(&fleet.At("w0"));
  fleet.Deliver();
  ASSERT_EQ(fleet.StateOf("w0"), WorkerState::kReady);
  fleet.Pass(40);
  EXPECT_THAT(fleet.runs.at(1).waiting,
              HasSubstr("cpu:0 of host local, whose worker asks for no work"));
  fleet.prompt = true;
  fleet.Want(&fleet.At("w0"));
  fleet.Deliver();
  fleet.Pass(1);
  EXPECT_EQ(fleet.runs.at(1).waiting, "");
}

TEST(FleetDevices, AProgramThatCannotBeStartedSaysNothingOfTheDevice) {
  TinyFleet fleet({.worker_restarts_max = 2});
  fleet.AddHost("local", {"cuda:GPU-a"}, 1);
  fleet.unstartable = "w0";
  fleet.AddRun(NativeView(1));
  fleet.Pass(5);
  EXPECT_NE(fleet.StateOf("w0"), WorkerState::kSetAside);
  EXPECT_THAT(fleet.runs.at(1).failure, HasSubstr("no such program"))
      << "the run does not wait for ever";
}

// A trial that comes back is one worker's: the others that are idle are not asked for.
TEST(FleetDevices, ATrialThatComesBackIsNotOfferedToEveryIdleWorker) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:4", "cpu:5"});
  fleet.AddRun(ViewOf(1), {{"t", 1}});
  fleet.Deliver();
  ASSERT_EQ(fleet.At("w0").leases.size(), 1u);
  fleet.Take();
  fleet.Dies("w0");
  const Log log = fleet.Take();
  const auto asked = std::count_if(
      log.begin(), log.end(), [](const std::string& line) { return line.starts_with("lease"); });
  EXPECT_GE(asked, 1);
  EXPECT_LE(asked, 2);
}

}  // namespace
}  // namespace evald
