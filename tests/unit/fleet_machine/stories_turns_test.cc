// Work without end is taken back when others wait: a fleet of made-up hosts, story by story.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr double kPatience = 600, kJob = 300;

RunView Of(int64_t number, const std::string& user, const std::string& load = "c1") {
  RunView view = ViewOf(number, load);
  view.user = user;
  return view;
}

// A worker with one trial of ann's, and a run of bob's that waits.
struct TwoUsers {
  TwoUsers() {
    fleet.AddHost("local", {"cpu:0"}, 1);
    fleet.AddRun(Of(1, "ann"));
    fleet.Deliver();
    fleet.AddRun(Of(2, "bob", "c2"));
    fleet.Pass(0.1);
    fleet.Take();
  }
  TinyFleet fleet;
};

TEST(Turns, ADeviceWhoseRequestNeverEndsGoesToTheUserWhoWaits) {
  TwoUsers of;
  TinyFleet& fleet = of.fleet;
  fleet.Pass(kPatience - 10);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("take back"))));
  fleet.Pass(20);
  Log log = fleet.Take();
  EXPECT_THAT(log, Contains("take back w0 1.0.1"));
  EXPECT_THAT(log, Contains("revoke w0 1.0.1"));
  fleet.Deliver();
  fleet.Want(&fleet.At("w0"));
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Contains("load w0 2"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(2).done());
  EXPECT_TRUE(fleet.runs.at(1).done()) << "it went on when its turn came, without a failure";
  fleet.Check();
}

TEST(Turns, ADeviceWhoseRequestsEndIsNotTaken) {
  TwoUsers of;
  for (int minute = 0; minute < 60; ++minute) {
    of.fleet.Says("w0", news::Moved{});
    of.fleet.Pass(60);
  }
  EXPECT_THAT(of.fleet.Take(), Not(Contains(HasSubstr("take back"))));
}

TEST(Turns, PatienceDoublesSoThatLongRequestsEndSomeDay) {
  TwoUsers of;
  TinyFleet& fleet = of.fleet;
  fleet.Pass(kPatience + 1);
  EXPECT_THAT(fleet.Take(), Contains("take back w0 1.0.1"));
  fleet.Deliver();
  fleet.Want(&fleet.At("w0"));
  fleet.WorkAll(60);
  ASSERT_TRUE(fleet.runs.at(2).done());
  fleet.Remove(2);
  RunView again = Of(3, "ann", "c3");
  fleet.AddRun(again, {{"t", 8}});
  fleet.Deliver();
  EXPECT_EQ(fleet.machine.FindWorker("w0")->state(), WorkerState::kReady);
}

TEST(Turns, ARunOfHigherPriorityKeepsItsDevice) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  RunView urgent = Of(1, "ann");
  urgent.priority = 5;
  fleet.AddRun(urgent);
  fleet.Deliver();
  fleet.AddRun(Of(2, "bob", "c2"));
  fleet.AddRun(Of(3, "ann", "c3"));
  fleet.Pass(4 * kPatience);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("take back"))));
}

// ---- trials of which nothing comes

// A host of somebody else holds all trials of run 1. The own device has computed run 2 and holds
// its checkpoint, so that it is no worker for a backup.
struct Held {
  Held() {
    fleet.untrusted.insert("far");
    fleet.AddHost("far", {"cpu:0"});
    fleet.AddRun(Of(1, "ann"));
    fleet.Deliver();
    fleet.AddHost("local", {"cpu:0"}, 1);
    fleet.AddRun(Of(2, "bob", "c2"), {{"t", 2}});
    fleet.Deliver();
    while (!fleet.runs.at(2).done() && fleet.events < 10'000) {
      fleet.Works("w0");
      fleet.Works("m0");
    }
    fleet.Take();
  }
  // The far worker says each second that it is there.
  Log Beats(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      fleet.Beat(&fleet.At("far.w0"));
      fleet.Deliver();
      fleet.Pass(1);
    }
    return fleet.Take();
  }
  TinyFleet fleet;
};

TEST(Turns, TrialsOfWhichOnlyHeartbeatsComeGoToTheOwnHost) {
  Held of;
  ASSERT_FALSE(of.fleet.machine.FindWorker("far.w0")->held.empty());
  const Log log = of.Beats(600);
  EXPECT_THAT(log, Contains("stalled far.w0 1"));
  EXPECT_THAT(log, Contains(HasSubstr("revoke far.w0 1.")));
  EXPECT_THAT(log, Contains("load w0 1")) << "the own device takes the run up";
  of.fleet.WorkAll();
  EXPECT_TRUE(of.fleet.runs.at(1).done());
}

TEST(Turns, TrialsStayWhereNobodyElseCouldComputeThem) {
  TinyFleet fleet;
  fleet.untrusted.insert("far");
  fleet.AddHost("local", {});
  fleet.AddHost("far", {"cpu:0"});
  fleet.AddRun(Of(1, "ann"));
  fleet.Deliver();
  for (int i = 0; i < 600; ++i) {
    fleet.Beat(&fleet.At("far.w0"));
    fleet.Deliver();
    fleet.Pass(1);
  }
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("stalled"))));
  EXPECT_FALSE(fleet.machine.FindWorker("far.w0")->held.empty());
}

// ---- metric processes

// Works until m0 has a job of run 1.
void GetAJob(TinyFleet* fleet, const std::string& id = "m0") {
  while (fleet->At(id).jobs.empty()) {
    fleet->Works("w0");
    ASSERT_LT(fleet->events, 10'000);
  }
  fleet->Take();
}

TEST(Turns, AMetricProcessIsKilledIfItsJobsRunIsOver) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(Of(1, "ann"));
  fleet.Deliver();
  GetAJob(&fleet);
  fleet.Remove(1);
  fleet.Pass(20);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("kill"))));
  fleet.Pass(20);
  EXPECT_THAT(fleet.Take(), Contains("kill m0: its job's run is over"));
  fleet.AddRun(Of(2, "bob"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(2).done());
}

TEST(Turns, AJobWithoutEndIsTakenBackIfOthersWait) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddRun(Of(1, "ann"));
  fleet.Deliver();
  GetAJob(&fleet);
  fleet.Pass(2 * kJob);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("kill")))) << "nobody waits";
  fleet.AddRun(Of(2, "bob"));
  while (fleet.runs.at(2).machine.jobs().queued() == 0) {
    fleet.Works("w0");
    ASSERT_LT(fleet.events, 10'000);
  }
  fleet.Pass(1);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("jobs back m0 1"));
  EXPECT_THAT(log, Contains(HasSubstr("and others wait")));
  EXPECT_EQ(fleet.machine.metric_processes()[0].restarts, 0) << "it is not at fault";
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done() && fleet.runs.at(2).done());
}

TEST(Turns, AHostThatHoldsAJobAndDoesNothingIsDoubted) {
  TinyFleet fleet;
  fleet.untrusted = {"far"};
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.AddHost("far", {}, 1);
  fleet.AddRun(Of(1, "ann"), {{"t", 40}});
  fleet.Deliver();
  std::string far;
  for (const MetricProcessSlot& slot : fleet.machine.metric_processes())
    if (slot.host == "far") far = slot.id;
  GetAJob(&fleet, far);
  fleet.Pass(kJob + 1);
  EXPECT_THAT(fleet.Take(), Contains("jobs back " + far + " 1 distrust"));
  fleet.WorkAll();
  EXPECT_TRUE(fleet.runs.at(1).done());
}

}  // namespace
}  // namespace evald
