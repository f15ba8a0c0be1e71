// Hosts that end at a known time: a fleet of made-up hosts, story by story. Documents are expected
// to take a second each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/fleet_machine/tiny_fleet.h"

namespace evald {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

int64_t DocumentsHeld(const TinyProcess& process) {
  int64_t documents = 0;
  for (const auto& [held, lease] : process.leases) {
    for (const LeasedSlice& slice : lease.trial.slices) documents += slice.documents.size();
  }
  return documents;
}

double MarginFor(double life_s) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"});
  fleet.HostEnds("far", life_s);
  const FleetMachine::Host& host = fleet.machine.hosts().at("far");
  return static_cast<double>(host.ends_us - host.hands_back_us) / 1e6;
}

TEST(EndsOfHosts, TheMarginIsATenthOfALifeAndNotTooLittle) {
  EXPECT_DOUBLE_EQ(MarginFor(86400), 150);
  EXPECT_DOUBLE_EQ(MarginFor(600), 60);
  EXPECT_DOUBLE_EQ(MarginFor(60), 6);
  EXPECT_DOUBLE_EQ(MarginFor(12), 2);
  EXPECT_DOUBLE_EQ(MarginFor(4), 1);
}

// The host is there for ten seconds, and gets no work in the last two.
TEST(EndsOfHosts, ATrialIsCutToFitTheTimeThatIsLeft) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"});
  fleet.HostEnds("far", 10);
  fleet.AddRun(ViewOf(1), {{"t", 1000}});
  fleet.Deliver();
  EXPECT_EQ(DocumentsHeld(fleet.At("far.w0")), 7) << "and a hundredth of a second for the lease";
  fleet.Pass(6.5);
  fleet.Works("far.w0");
  EXPECT_EQ(DocumentsHeld(fleet.At("far.w0")), 1);
}

TEST(EndsOfHosts, AWorkerWithoutTimeIdlesAndTheRunSaysWhyItWaits) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"});
  fleet.HostEnds("far", 100);
  fleet.AddRun(ViewOf(1), {{"t", 1000}});
  fleet.Deliver();
  fleet.Pass(89.3);
  fleet.Works("far.w0");
  fleet.Take();
  EXPECT_EQ(DocumentsHeld(fleet.At("far.w0")), 0);
  fleet.Pass(0.5);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("lease"))));
  fleet.Pass(5);
  EXPECT_THAT(fleet.runs.at(1).waiting, HasSubstr("cpu:0 of host far, whose time limit is near"));
  fleet.HostIs("far", HostNews::kAway);
  fleet.Pass(10);
  EXPECT_THAT(fleet.runs.at(1).waiting, HasSubstr("far, whose time limit is over"));
  fleet.AddHost("next", {"cpu:0"}, 1);
  fleet.WorkAll(2000);
  EXPECT_TRUE(fleet.runs.at(1).done());
}

// Long before the end, the request is longer than what is left.
TEST(EndsOfHosts, ARunWhoseShortestTrialIsTooLongSaysSo) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"});
  fleet.HostEnds("far", 1000);
  RunView view = ViewOf(1);
  TinyRun& run = fleet.AddRun(view, {{"t", 100}}, true);
  run.plans_at_once = true;
  fleet.Deliver();
  ASSERT_GT(DocumentsHeld(fleet.At("far.w0")), 0);
  run.machine.Overdue(0, 0, 950);  // its requests take as long
  fleet.Works("far.w0");
  EXPECT_EQ(DocumentsHeld(fleet.At("far.w0")), 0);
  fleet.Pass(5);
  EXPECT_THAT(run.waiting, HasSubstr("far, whose time limit leaves too little time for a trial"));
}

TEST(EndsOfHosts, WhatIsBegunEndsAndTheRestGoesToOthers) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"});
  fleet.HostEnds("far", 20);
  TinyRun& run = fleet.AddRun(ViewOf(1), {{"t", 60}}, true, 1);
  fleet.Deliver();
  const int64_t first = DocumentsHeld(fleet.At("far.w0"));
  ASSERT_GT(first, 5);
  fleet.At("far.w0").leases.begin()->second.begun = 4;  // it is slower than expected
  fleet.Pass(18.5);
  EXPECT_THAT(fleet.Take(), Contains("hand back far.w0 1.0.1"));
  EXPECT_EQ(DocumentsHeld(fleet.At("far.w0")), 4);
  fleet.EndSlice(&fleet.At("far.w0"));
  fleet.Deliver();
  fleet.Want(&fleet.At("far.w0"));
  fleet.Deliver();
  EXPECT_EQ(run.committed.size(), 4u);
  EXPECT_TRUE(fleet.machine.FindWorker("far.w0")->held.empty()) << "it gets nothing more";
  fleet.Pass(2);
  fleet.HostIs("far", HostNews::kAway);
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.WorkAll();
  EXPECT_TRUE(run.done()) << "without a failure: one attempt is all that a trial has";
  for (const auto& [document, times] : run.committed) EXPECT_EQ(times, 1);
}

TEST(EndsOfHosts, WhatIsNotHandedBackIsTakenBackBeforeTheEnd) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.HostEnds("far", 20);
  TinyRun& run = fleet.AddRun(ViewOf(1), {{"t", 8}}, true, 1);
  fleet.Deliver();
  fleet.Pass(18.5);  // the worker answers, and its first document does not end
  fleet.Take();
  EXPECT_EQ(fleet.machine.FindWorker("far.w0")->held.size(), 1u);
  fleet.Pass(1.3);
  Log log = fleet.Take();
  EXPECT_THAT(log, Contains("take back far.w0 1.0.1"));
  EXPECT_THAT(log, Contains("revoke far.w0 1.0.1"));
  EXPECT_TRUE(fleet.machine.FindWorker("far.w0")->held.empty());
  fleet.HostIs("far", HostNews::kAway);
  fleet.AddHost("local", {"cpu:0"}, 1);
  fleet.WorkAll();
  EXPECT_TRUE(run.done());
}

// The launcher ends the processes one after another, before or after the agent.
TEST(EndsOfHosts, AProcessThatItsHostEndsIsNobodysFailure) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cuda:GPU-1"}, 1);
  fleet.HostEnds("far", 20);
  TinyRun& run = fleet.AddRun(NativeView(1), {{"t", 40}}, true, 1);
  fleet.Deliver();
  fleet.EndSlice(&fleet.At("far.w0"));
  fleet.Deliver();
  ASSERT_EQ(fleet.At("far.m0").jobs.size(), 1u);
  fleet.Want(&fleet.At("far.w0"));
  fleet.Deliver();
  fleet.Pass(18.3);
  ASSERT_EQ(fleet.machine.FindWorker("far.w0")->held.size(), 1u);
  fleet.Take();
  fleet.Dies("far.w0");
  fleet.Dies("far.m0");
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("take back far.w0 1.1.1"));
  EXPECT_THAT(log, Contains("jobs back far.m0 1"));
  EXPECT_THAT(log, Not(Contains(HasSubstr("at fault"))));
  fleet.Pass(3);
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("start"))));
  fleet.HostIs("far", HostNews::kAway);
  fleet.AddHost("next", {"cuda:GPU-2"}, 1);
  fleet.WorkAll();
  EXPECT_TRUE(run.done()) << run.failure << run.waiting;
}

TEST(EndsOfHosts, ALoadThatLeavesNoTimeIsNotBegun) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"});
  fleet.HostEnds("far", 60);
  RunView view = ViewOf(1, "c1");
  view.checkpoint_bytes = 53e9;  // 53 seconds
  fleet.AddRun(view);
  fleet.Deliver();
  EXPECT_THAT(fleet.Take(), Not(Contains(HasSubstr("load"))));
  fleet.Pass(5);
  EXPECT_THAT(fleet.runs.at(1).waiting, HasSubstr("far, whose time limit leaves too little time"));
  fleet.AddHost("next", {"cpu:0"}, 1);
  fleet.HostEnds("next", 600);
  fleet.Pass(1);
  EXPECT_THAT(fleet.Take(), Contains("load next.w0 1"));
}

TEST(EndsOfHosts, JobsThatWouldOutlastTheHostAreNotLeased) {
  TinyFleet fleet;
  fleet.AddHost("far", {}, 1);
  fleet.HostEnds("far", 20);
  fleet.AddHost("local", {"cpu:0"});
  TinyRun& run = fleet.AddRun(ViewOf(1), {{"t", 4}}, true, 1);
  fleet.Deliver();
  run.machine.MeasuredScoring(0, 100, 100 * 30.0);
  fleet.Works("w0");
  EXPECT_TRUE(fleet.At("far.m0").jobs.empty());
  run.machine.MeasuredScoring(0, 100'000, 0);
  fleet.Pass(1);
  ASSERT_EQ(fleet.At("far.m0").jobs.size(), 1u);
  fleet.Take();
  fleet.Pass(19);
  const Log log = fleet.Take();
  EXPECT_THAT(log, Contains("jobs back far.m0 1"));
  EXPECT_THAT(log, Contains("kill far.m0: its host ends"));
  fleet.AddHost("next", {}, 1);
  fleet.WorkAll();
  EXPECT_TRUE(run.done());
}

TEST(EndsOfHosts, AnEndThatIsPutOffGivesTheHostWorkAgain) {
  TinyFleet fleet;
  fleet.AddHost("far", {"cpu:0"}, 1);
  fleet.HostEnds("far", 20);
  TinyRun& run = fleet.AddRun(ViewOf(1), {{"t", 200}}, true, 1);
  fleet.Deliver();
  fleet.Pass(19);
  EXPECT_TRUE(fleet.machine.hosts().at("far").ending);
  fleet.HostEnds("far", 1.1);  // said again when its agent connects again
  EXPECT_TRUE(fleet.machine.hosts().at("far").ending);
  fleet.HostEnds("far", 10'000);
  EXPECT_FALSE(fleet.machine.hosts().at("far").ending);
  fleet.WorkAll();
  EXPECT_TRUE(run.done());
  fleet.HostEnds("far", -1);
  EXPECT_EQ(fleet.machine.hosts().at("far").ends_us, 0);
}

// The trial was leased to a host without an end, and is expected to take longer than there is time.
TEST(EndsOfHosts, AnEndingWorkerStealsAndBacksUpOnlyWhatItCanEnd) {
  TinyFleet fleet;
  fleet.AddHost("local", {"cpu:0"}, 1);
  TinyRun& run = fleet.AddRun(ViewOf(1), {{"t", 14}}, true, 1);
  fleet.Deliver();
  run.machine.Overdue(0, 0, 100);
  fleet.AddHost("far", {"cpu:0"});
  fleet.HostEnds("far", 60);
  fleet.Deliver();
  for (int i = 0; i < 50; ++i) {
    for (const auto& [id, process] : fleet.processes) fleet.Beat(process.get());
    fleet.Pass(1);
  }
  EXPECT_TRUE(fleet.At("far.w0").leases.empty());
  EXPECT_EQ(fleet.backups, 0);
  fleet.WorkAll();
  EXPECT_TRUE(run.done());
}

}  // namespace
}  // namespace evald
