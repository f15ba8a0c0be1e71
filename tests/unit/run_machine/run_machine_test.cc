#include "orchestrator/run_machine/run_machine.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>

#include "tests/unit/schedule/holders.h"

namespace evald {
namespace {

std::vector<int64_t> List(DocumentRange range) {
  std::vector<int64_t> documents;
  for (int64_t d = range.first; d < range.end; ++d) documents.push_back(d);
  return documents;
}

std::string FileOf(const RunMachine& machine, const TrialLease& lease, const LeasedSlice& slice) {
  return machine.GenerationsFile(slice.task, slice.documents.first, lease.trial, lease.attempt);
}

// A policy of one trial for each task.
constexpr const char* kWholeTasks = "decoupled-fifo";

// Trials of a second, and documents of a second each.
PlanSetup SmallTrials() {
  PlanSetup setup;
  setup.devices = 2;
  setup.costs = {0.01, 0.01};
  return setup;
}

RunMachine Planned(std::vector<MachineTask> tasks, int attempts = 3) {
  RunMachine machine({.attempts_max = attempts}, {.attempts_max = attempts});
  machine.SetTasks(std::move(tasks));
  machine.Plan(SmallTrials());
  return machine;
}

RunMachine Whole(std::vector<MachineTask> tasks, int64_t first_trial = 0) {
  RunMachine machine({}, {});
  machine.SetTasks(std::move(tasks));
  PlanSetup setup;
  setup.policy = kWholeTasks;
  setup.first_trial = first_trial;
  machine.Plan(setup);
  return machine;
}

// A task with requests of a minute and one with short requests, for two workers of six.
RunMachine LongAndShort() {
  RunMachine machine({}, {});
  machine.SetTasks({{"long", 40}, {"short", 4000}});
  TaskEstimate estimate;
  estimate.documents = 40;
  estimate.request_s = 60;
  estimate.device_s = 6;
  machine.Expect(0, {.estimate = estimate, .weight = 16});
  estimate.documents = 4000;
  estimate.request_s = 0.1;
  estimate.device_s = 0.01;
  machine.Expect(1, {.estimate = estimate, .weight = 16});
  PlanSetup setup = SmallTrials();
  setup.devices = 6;
  setup.places = 8;
  machine.Plan(setup);
  return machine;
}

// Of 40 documents with requests of a minute, each of two devices with eight places gets eight. What
// waits for a place there could begin elsewhere.
TEST(RunMachine, LongRequestsAreGivenOutByPlaces) {
  RunMachine machine = LongAndShort();
  for (const Holder worker : {"a"_p, "b"_p}) machine.Measured(worker, 1, 50, 0.5, 0.1);
  std::map<Holder, int64_t> given;
  for (int turn = 0; turn < 12; ++turn) {
    for (const Holder worker : {"a"_p, "b"_p}) {
      if (given[worker] >= 8) continue;
      const auto lease = machine.LeaseTrial(worker, 0);
      ASSERT_TRUE(lease);
      ASSERT_EQ(lease->slices.size(), 1u) << "short documents would take places";
      EXPECT_EQ(lease->slices[0].task, 0u);
      given[worker] += lease->slices[0].documents.size();
    }
  }
  EXPECT_EQ(given["a"_p], 8);
  EXPECT_EQ(given["b"_p], 8);
  EXPECT_EQ(machine.LeaseTrial("a"_p, 0)->slices[0].documents.size(), 1)
      << "it asks a little before a place is free";
}

TEST(RunMachine, ADeviceShowsHowFastItIsBeforeItGetsLongRequests) {
  RunMachine machine = LongAndShort();
  for (int asks = 0; asks < 3; ++asks)
    EXPECT_EQ(machine.LeaseTrial("a"_p, 0)->slices[0].task, 1u) << "nothing is known yet";
  machine.Measured("a"_p, 1, 50, 0.5, 0.1);
  EXPECT_EQ(machine.LeaseTrial("a"_p, 0)->slices[0].task, 0u);
}

TEST(RunMachine, WithoutShortDocumentsLongOnesAreLeasedAtOnce) {
  RunMachine machine = LongAndShort();
  machine.RefuseTask(1, "it is not there");
  EXPECT_EQ(machine.LeaseTrial("a"_p, 0)->slices[0].task, 0u);
}

TEST(RunMachine, ASlowWorkerGetsNoRequestThatHoldsUpTheEnd) {
  RunMachine machine = LongAndShort();
  machine.Measured("a"_p, 1, 50, 0.5, 0.1);
  machine.Measured("b"_p, 1, 50, 1.5, 0.3);  // three times as slow
  ASSERT_EQ(machine.LeaseTrial("a"_p, 0)->slices[0].task, 0u);
  const TrialLease lease = *machine.LeaseTrial("b"_p, 0);
  EXPECT_EQ(lease.slices[0].task, 1u);
  machine.RefuseTask(1, "it is not there");
  EXPECT_FALSE(machine.LeaseTrial("b"_p, 1'000'000)) << "left to the other";
  EXPECT_FALSE(machine.LeaseLeft("b"_p, 30'000'000));
  EXPECT_TRUE(machine.LeaseLeft("b"_p, 62'000'000)) << "it has waited for as long as a request";
}

TEST(RunMachine, ASlowWorkerAloneTakesAllThereIs) {
  RunMachine machine = LongAndShort();
  machine.Measured("a"_p, 1, 50, 0.5, 0.1);
  machine.Measured("b"_p, 1, 50, 1.5, 0.3);
  const TrialLease lease = *machine.LeaseTrial("a"_p, 0);
  EXPECT_NE(machine.LeaseTrial("b"_p, 0)->slices[0].task, 0u);
  machine.WorkerLost("a"_p, "its host left");
  EXPECT_EQ(machine.LeaseTrial("b"_p, 1)->trial, lease.trial);
}

TEST(RunMachine, ASlowDeviceDoesNotChangeWhatIsExpectedOfOthers) {
  RunMachine machine = LongAndShort();
  machine.Measured("a"_p, 1, 50, 0.5, 0.1);
  machine.Measured("b"_p, 1, 50, 1.5, 0.3);
  machine.Measured("b"_p, 0, 1, 18, 200);
  EXPECT_NEAR(machine.estimate(0).request_s, 200 / 3.0, 1);
  machine.Overdue("b"_p, 0, 240);
  EXPECT_NEAR(machine.estimate(0).request_s, 80, 1);
  EXPECT_NEAR(machine.estimate(0).device_s, 6, 0.1);
}

TEST(RunMachine, FilesLieInFoldersMadeOfNames) {
  RunMachine machine = Whole({{"../../x", 5}}, 7);
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  EXPECT_EQ(FileOf(machine, lease, lease.slices.at(0)), "generations/%2E.%2F..%2Fx/7.1-0.jsonl");
  EXPECT_TRUE(machine.SliceReported("w"_p, 7, 1, 0, {0, 5}));
  machine.GenerationsCommitted(0, List({0, 5}), FileOf(machine, lease, lease.slices[0]), 7, 1);
  EXPECT_EQ(machine.ScoresFile(*machine.LeaseJob("m"_p, 0)), "scores/%2E.%2F..%2Fx/7.1-0.jsonl");
}

// A machine of a judged task with `documents` and one without a judge, all generated.
RunMachine Judged(int64_t documents) {
  MachineTask judged{"judged", documents};
  judged.judged = true;
  RunMachine machine = Whole({judged, {"plain", 3}});
  for (int i = 0; i < 2; ++i) {
    const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
    for (const LeasedSlice& slice : lease.slices) {
      machine.SliceReported("w"_p, lease.trial, lease.attempt, slice.task, slice.documents);
      machine.GenerationsCommitted(slice.task, List(slice.documents), FileOf(machine, lease, slice),
                                   lease.trial, lease.attempt);
    }
    machine.TrialDone("w"_p, lease.trial, lease.attempt);
  }
  return machine;
}

// They wait for another model, and would hold all metric processes.
TEST(RunMachine, OneJudgedJobIsUnderWayAtATimeAndAfterTheOthers) {
  RunMachine machine = Judged(600);
  EXPECT_EQ(machine.tasks()[machine.LeaseJob("m0"_p, 0)->task].name, "plain");
  const MetricJob first = *machine.LeaseJob("m1"_p, 0);
  EXPECT_EQ(machine.tasks()[first.task].name, "judged");
  EXPECT_EQ(machine.jobs().queued(), 0u) << "nobody is asked for in vain";
  EXPECT_FALSE(machine.LeaseJob("m2"_p, 0));
  const MetricJob done = *machine.JobDone("m1"_p, first.job, first.job_attempt, 5);
  EXPECT_EQ(done.documents, (DocumentRange{0, 5}));
  const MetricJob second = *machine.LeaseJob("m2"_p, 0);
  EXPECT_FALSE(machine.LeaseJob("m1"_p, 0));
  EXPECT_NE(machine.ScoresFile(first), machine.ScoresFile(second));
  machine.MetricProcessLost("m2"_p, "killed");
  EXPECT_EQ(machine.LeaseJob("m1"_p, 0)->job, second.job);
}

TEST(RunMachine, ADocumentWithoutAVerdictIsMissing) {
  RunMachine machine = Judged(6);
  const MetricJob plain = *machine.LeaseJob("m"_p, 0);
  machine.JobDone("m"_p, plain.job, plain.job_attempt);
  machine.ScoresCommitted(plain.task, List(plain.documents));
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  machine.JobDone("m"_p, job.job, job.job_attempt);
  machine.Unscored(job.task, {2, 3}, "prose");
  machine.Unscored(job.task, {3, 4}, "prose");
  machine.Unscored(job.task, {5, 6}, "nothing");
  machine.ScoresCommitted(job.task, {0, 1, 4});
  EXPECT_TRUE(machine.idle());
  EXPECT_FALSE(machine.complete());
  EXPECT_FALSE(machine.refused()) << "a resumed run may judge them";
  const std::vector<Missing> missing = machine.missing();
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0].what, "task judged, documents 2 to 3: verdict");
  EXPECT_EQ(missing[0].cause, "prose");
  EXPECT_EQ(missing[1].what, "task judged, documents 5 to 5: verdict");
}

TEST(RunMachine, TheJobsOfAJudgeThatIsDownAreGivenUp) {
  RunMachine machine = Judged(600);
  const MetricJob plain = *machine.LeaseJob("m"_p, 0);
  machine.JobDone("m"_p, plain.job, plain.job_attempt);
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  machine.JobDone("m"_p, job.job, job.job_attempt, 3);
  machine.Unscored(job.task, {0, 3}, "down");
  int64_t dropped = 0;
  for (const DocumentRange range : machine.StopJudging(job.task, "down")) dropped += range.size();
  EXPECT_EQ(dropped, 597);
  EXPECT_TRUE(machine.judging_stopped(job.task));
  EXPECT_TRUE(machine.idle());
  machine.ScoresLost(job);
  EXPECT_TRUE(machine.idle()) << "later jobs, too";
}

// Numbers of trials and jobs can be guessed. So a report counts only from the process that holds
// the lease.
TEST(RunMachine, AReportOfAnotherProcessChangesNothing) {
  RunMachine machine = Whole({{"a", 5}});
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  EXPECT_FALSE(machine.SliceReported("liar"_p, lease.trial, lease.attempt, 0, {0, 5}));
  EXPECT_FALSE(machine.TrialDone("liar"_p, lease.trial, lease.attempt));
  EXPECT_FALSE(machine.TrialFailed("liar"_p, lease.trial, lease.attempt, "made up", false));
  EXPECT_FALSE(machine.RequestRefused("liar"_p, lease.trial, lease.attempt, 0, "made up"));
  EXPECT_FALSE(machine.Shortened("liar"_p, lease.trial, lease.attempt, 0, 0, 1));
  machine.Progressed("liar"_p, {lease.trial, lease.attempt, 5, 0}, 0);
  EXPECT_EQ(machine.under_way()[0], 0);
  EXPECT_TRUE(machine.SliceReported("w"_p, lease.trial, lease.attempt, 0, {0, 5}));
  EXPECT_TRUE(machine.TrialDone("w"_p, lease.trial, lease.attempt));
  machine.GenerationsCommitted(0, {0, 1, 2, 3, 4}, FileOf(machine, lease, lease.slices[0]),
                               lease.trial, lease.attempt);
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  EXPECT_FALSE(machine.JobDone("liar"_p, job.job, job.job_attempt));
  EXPECT_FALSE(machine.JobFailed("liar"_p, job.job, job.job_attempt, "made up", false));
  EXPECT_TRUE(machine.JobDone("m"_p, job.job, job.job_attempt));
  EXPECT_TRUE(machine.missing().empty());
}

TEST(RunMachine, OneSliceFromLeaseToScore) {
  RunMachine machine = Whole({{"t", 5}}, 7);
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  EXPECT_EQ(lease.trial, 7);
  ASSERT_EQ(lease.slices.size(), 1u);
  EXPECT_EQ(FileOf(machine, lease, lease.slices[0]), "generations/t/7.1-0.jsonl");
  EXPECT_TRUE(machine.SliceReported("w"_p, 7, 1, 0, {0, 5}));
  EXPECT_FALSE(machine.SliceReported("w"_p, 7, 1, 0, {0, 5})) << "a slice is reported once";
  EXPECT_TRUE(machine.TrialDone("w"_p, 7, 1));
  machine.GenerationsCommitted(0, List({0, 5}), FileOf(machine, lease, lease.slices[0]), 7, 1);
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  EXPECT_EQ(machine.ScoresFile(job), "scores/t/7.1-0.jsonl");
  EXPECT_FALSE(machine.JobDone("m"_p, job.job, job.job_attempt + 1));
  ASSERT_TRUE(machine.JobDone("m"_p, job.job, job.job_attempt));
  EXPECT_FALSE(machine.complete()) << "scores count once they are durable";
  machine.ScoresCommitted(0, List({0, 5}));
  EXPECT_TRUE(machine.complete());
  EXPECT_TRUE(machine.missing().empty());
}

TEST(RunMachine, TheRestOfAJobThatEndedEarlyIsAnotherJob) {
  RunMachine machine = Whole({{"t", 8}});
  machine.GenerationsCommitted(0, List({0, 8}), "generations/t/0.1-0.jsonl", 0, 1);
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  EXPECT_EQ(machine.jobs().queued(), 0u);
  const MetricJob done = *machine.JobDone("m"_p, job.job, job.job_attempt, 3);
  EXPECT_EQ(done.documents, (DocumentRange{0, 3}));
  const MetricJob rest = *machine.LeaseJob("other"_p, 0);
  EXPECT_EQ(rest.documents, (DocumentRange{3, 8}));
  EXPECT_EQ(rest.generations, job.generations);
  EXPECT_NE(machine.ScoresFile(rest), machine.ScoresFile(done));
  // An end outside the job is none.
  EXPECT_EQ(machine.JobDone("other"_p, rest.job, rest.job_attempt, 8)->documents, rest.documents);
  EXPECT_TRUE(machine.jobs().idle());
}

TEST(RunMachine, WhatIsSlowToScoreIsScoredInPieces) {
  RunMachine machine = Whole({{"t", 10, true}});
  machine.GenerationsCommitted(0, {0, 1, 2, 3, 4, 5, 7, 8}, "generations/t/0.1.jsonl", 0, 1);
  std::vector<std::string> files;
  std::vector<int64_t> documents;
  while (const auto job = machine.LeaseJob("m"_p, 0)) {
    files.push_back(machine.ScoresFile(*job));
    for (int64_t d = job->documents.first; d < job->documents.end; ++d) documents.push_back(d);
  }
  EXPECT_EQ(files, (std::vector<std::string>{"scores/t/0.1-0.jsonl", "scores/t/0.1-4.jsonl",
                                             "scores/t/0.1-7.jsonl"}));
  EXPECT_EQ(documents, (std::vector<int64_t>{0, 1, 2, 3, 4, 5, 7, 8}));
}

TEST(RunMachine, TheNextAttemptResumesWhatTheLastOneLeft) {
  RunMachine machine = Whole({{"t", 5}});
  machine.LeaseTrial("w"_p, 0);
  machine.WorkerLost("w"_p, "killed");
  const TrialLease second = *machine.LeaseTrial("w"_p, 1);
  EXPECT_EQ(FileOf(machine, second, second.slices[0]), "generations/t/0.2-0.jsonl");
  EXPECT_EQ(second.slices[0].salvage, (std::vector<std::string>{"generations/t/0.1-0.jsonl",
                                                                "generations/t/0.1-0.jsonl.part"}));
}

// The only GPU ends over one trial each time, and computes all others. So the GPU is never set
// aside.
TEST(RunMachine, ATrialThatItsOnlyDeviceEndsOverIsMissingInTheEnd) {
  RunMachine machine = Planned({{"t", 200}});
  const TrialLease poison = *machine.LeaseTrial("gpu"_p, 0);
  int losses = 0;
  for (int64_t now = 1; !machine.trials_idle(); ++now) {
    ASSERT_LT(now, 1000) << "it is tried without end";
    auto lease = machine.LeaseTrial("gpu"_p, now);
    // another beside it
    if (lease && lease->trial == poison.trial) lease = machine.LeaseTrial("gpu"_p, now);
    if (lease) {
      for (const LeasedSlice& slice : lease->slices) {
        machine.SliceReported("gpu"_p, lease->trial, lease->attempt, slice.task, slice.documents);
      }
      EXPECT_TRUE(machine.TrialDone("gpu"_p, lease->trial, lease->attempt));
    }
    if (!machine.trials().leased(poison.trial)) continue;
    machine.WorkerLost("gpu"_p, "worker gpu: a kernel failed", Suspect::kHolder);
    ++losses;
  }
  EXPECT_EQ(losses, 5);
  ASSERT_EQ(machine.missing().size(), poison.slices.size());
  EXPECT_EQ(machine.missing()[0].cause, "worker gpu: a kernel failed (attempt 5)");
}

TEST(RunMachine, AReportedSliceIsNotLeasedAgain) {
  RunMachine machine({}, {});
  machine.SetTasks({{"a", 5}, {"b", 5}});
  PlanSetup setup;
  setup.costs = {0.5, 0.01};  // a trial of at least 50 documents
  machine.Plan(setup);
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  ASSERT_EQ(lease.slices.size(), 2u);
  EXPECT_TRUE(machine.SliceReported("w"_p, 0, 1, lease.slices[0].task, lease.slices[0].documents));
  machine.WorkerLost("w"_p, "killed");
  const TrialLease second = *machine.LeaseTrial("w"_p, 1);
  ASSERT_EQ(second.slices.size(), 1u);
  EXPECT_EQ(second.slices[0].task, lease.slices[1].task);
}

TEST(RunMachine, ATrialCalledDoneTooEarlyFails) {
  RunMachine machine = Planned({{"t", 5}}, 1);
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  EXPECT_TRUE(machine.TrialDone("w"_p, lease.trial, lease.attempt));
  ASSERT_EQ(machine.missing().size(), 1u);
  EXPECT_NE(machine.missing()[0].cause.find("without all of its slices"), std::string::npos);
}

// Two tasks in one trial. A request of one of them can never be answered.
TEST(RunMachine, ARequestThatCannotBeAnsweredIsItsOwnTasksAlone) {
  RunMachine machine({.attempts_max = 1}, {.attempts_max = 1});
  machine.SetTasks({{"bad", 5}, {"good", 5}});
  PlanSetup setup;
  setup.costs = {0.5, 0.01};  // a trial of at least 50 documents
  machine.Plan(setup);
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  ASSERT_EQ(lease.slices.size(), 2u);
  EXPECT_FALSE(
      machine.RequestRefused("w"_p, lease.trial, lease.attempt + 1, 0, "of another attempt"));
  EXPECT_TRUE(
      machine.RequestRefused("w"_p, lease.trial, lease.attempt, 0, "document 2: nothing fits"));
  const TrialLease rest = *machine.LeaseTrial("w"_p, 1);
  ASSERT_EQ(rest.slices.size(), 1u);
  EXPECT_EQ(rest.slices[0].task, 1u);
  EXPECT_EQ(rest.slices[0].documents, (DocumentRange{0, 5}));
  // documents that were done are not done again
  const std::vector<std::string>& salvage = rest.slices[0].salvage;
  EXPECT_NE(
      std::find(salvage.begin(), salvage.end(), FileOf(machine, lease, lease.slices[1]) + ".part"),
      salvage.end());
  EXPECT_FALSE(machine.refused()) << "the other is not scored yet";
  EXPECT_TRUE(machine.SliceReported("w"_p, rest.trial, rest.attempt, 1, {0, 5}));
  EXPECT_TRUE(machine.TrialDone("w"_p, rest.trial, rest.attempt));
  machine.GenerationsCommitted(1, List({0, 5}), "f", rest.trial, rest.attempt);
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  EXPECT_TRUE(machine.JobDone("m"_p, job.job, job.job_attempt));
  machine.ScoresCommitted(1, List({0, 5}));
  EXPECT_TRUE(machine.idle());
  EXPECT_FALSE(machine.complete());
  EXPECT_TRUE(machine.refused());
  ASSERT_EQ(machine.missing().size(), 1u);
  EXPECT_EQ(machine.missing()[0].what, "task bad");
  EXPECT_EQ(machine.missing()[0].cause, "document 2: nothing fits");
}

// Scoring that fails because of the task would fail again, so nothing more of the task is
// generated.
TEST(RunMachine, ATaskThatCannotBeScoredIsRefused) {
  RunMachine machine = Whole({{"bad", 5}});
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  EXPECT_TRUE(
      machine.SliceReported("w"_p, lease.trial, lease.attempt, 0, lease.slices[0].documents));
  EXPECT_TRUE(machine.TrialDone("w"_p, lease.trial, lease.attempt));
  machine.GenerationsCommitted(0, List(lease.slices[0].documents), "f", lease.trial, lease.attempt);
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  EXPECT_FALSE(machine.JobFailed("m"_p, job.job, job.job_attempt + 1, "of another attempt", false));
  EXPECT_FALSE(machine.refused());
  EXPECT_TRUE(machine.JobFailed("m"_p, job.job, job.job_attempt, "the label is no choice", false));
  EXPECT_TRUE(machine.refused());
  EXPECT_TRUE(machine.idle());
  ASSERT_EQ(machine.missing().size(), 1u);
  EXPECT_EQ(machine.missing()[0].what, "task bad");
  EXPECT_EQ(machine.missing()[0].cause, "the label is no choice");
}

TEST(RunMachine, OfARefusedTaskNothingIsLeased) {
  RunMachine machine = Whole({{"bad", 5}, {"good", 5}});
  machine.RefuseTask(0, "too long");
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  ASSERT_EQ(lease.slices.size(), 1u);
  EXPECT_EQ(lease.slices[0].task, 1u);
  EXPECT_FALSE(machine.LeaseTrial("w"_p, 0));
}

// Documents of the task that a worker gives back are not leased again either.
TEST(RunMachine, WhatIsGivenBackOfARefusedTaskIsNotLeased) {
  RunMachine machine = Whole({{"bad", 8}});
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  machine.RefuseTask(0, "too long");
  EXPECT_TRUE(machine.Shortened("w"_p, lease.trial, lease.attempt, 0, 0, 4));
  EXPECT_FALSE(machine.has_trials());
}

TEST(RunMachine, WhatIsGivenUpIsMissingByName) {
  RunMachine machine({.attempts_max = 1}, {.attempts_max = 1});
  machine.SetTasks({{"t", 4}});
  PlanSetup setup;
  setup.policy = "size-split";  // in four parts
  machine.Plan(setup);
  const TrialLease first = *machine.LeaseTrial("w"_p, 0);
  machine.TrialFailed("w"_p, first.trial, first.attempt, "out of memory", true);
  TrialLease second = *machine.LeaseTrial("w"_p, 0);
  ASSERT_EQ(second.slices[0].documents, (DocumentRange{1, 2}));
  machine.SliceReported("w"_p, second.trial, second.attempt, 0, second.slices[0].documents);
  machine.TrialDone("w"_p, second.trial, second.attempt);
  machine.GenerationsCommitted(0, List(second.slices[0].documents), "f", second.trial,
                               second.attempt);
  const MetricJob job = *machine.LeaseJob("m"_p, 0);
  EXPECT_FALSE(machine.JobFailed("m"_p, job.job, job.job_attempt + 1, "of another attempt", true));
  EXPECT_TRUE(machine.JobFailed("m"_p, job.job, job.job_attempt, "sandbox is gone", true));
  while (const auto rest = machine.LeaseTrial("w"_p, 0))
    machine.TrialFailed("w"_p, rest->trial, rest->attempt, "lost", true);
  EXPECT_TRUE(machine.idle());
  EXPECT_FALSE(machine.complete());
  ASSERT_EQ(machine.missing().size(), 4u);
  EXPECT_EQ(machine.missing()[0].what, "task t, documents 0 to 0: generation");
  EXPECT_EQ(machine.missing()[0].cause, "out of memory (attempt 1)");
  EXPECT_EQ(machine.missing()[3].what, "task t, documents 1 to 1: scoring");
}

TEST(RunMachine, AnEarlierLifeIsNotDoneAgain) {
  RunMachine machine({}, {});
  machine.SetTasks({{"t", 6}});
  for (const int64_t d : {0, 1, 4}) machine.AdoptGenerations(0, d);
  machine.AdoptScores(0, 0);
  PlanSetup setup;
  setup.first_trial = 3;
  machine.Plan(setup);
  machine.GenerationsCommitted(0, {1, 4}, "old", 1, 1);
  std::set<int64_t> leased, jobs;
  while (const auto lease = machine.LeaseTrial("w"_p, 0)) {
    EXPECT_GE(lease->trial, 3);
    for (const LeasedSlice& slice : lease->slices) {
      for (const int64_t d : List(slice.documents)) EXPECT_TRUE(leased.insert(d).second);
    }
  }
  while (const auto job = machine.LeaseJob("m"_p, 0)) {
    for (const int64_t d : List(job->documents)) EXPECT_TRUE(jobs.insert(d).second);
  }
  EXPECT_EQ(leased, (std::set<int64_t>{2, 3, 5}));
  EXPECT_EQ(jobs, (std::set<int64_t>{1, 4}));
}

// Workers and metric processes die, and report late or twice. Backups of late trials come first or
// last, in any order. Every document is committed by exactly one file and scored exactly once, and
// the run completes. As in the database, the first file of a document counts.
TEST(RunMachine, EveryInterleavingScoresEachDocumentOnce) {
  int shortened = 0, backed_up = 0, revoked = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    RunMachine machine = Planned({{"a", 40, true}, {"b", 7}, {"c", 60}}, 1000);
    struct Report {
      Holder worker;
      TrialLease lease;
    };
    std::deque<Report> reports;
    std::vector<std::pair<Holder, MetricJob>> jobs;
    std::map<std::pair<size_t, int64_t>, int> committed, scored;
    machine.SetDevices(static_cast<int>(1 + random() % 3));
    for (int64_t now = 0, step = 0; !(machine.idle() && machine.complete()); ++now) {
      ASSERT_LT(++step, 200000);
      if (random() % 8 == 0) now += 1'000'000;
      const std::string name = std::to_string(random() % 3);
      const Holder worker = NumberOf("w" + name), metrics = NumberOf("m" + name);
      switch (random() % 9) {
        case 8:
          if (const auto lease = machine.LeaseBackup(worker, now)) {
            reports.push_back({worker, *lease});
            ASSERT_TRUE(machine.is_backup(lease->trial));
            ++backed_up;
          }
          for (const RevokeOrder& order : machine.TakeRevoked()) {
            ASSERT_FALSE(machine.trials().Holds(order.trial, order.attempt));
            ++revoked;
          }
          break;
        case 0:
          if (const auto lease = machine.LeaseTrial(worker, now))
            reports.push_back({worker, *lease});
          break;
        case 1:
          if (random() % 8 == 0) machine.WorkerLost(worker, "killed");
          break;
        case 2:
          if (random() % 8 == 0) machine.MetricProcessLost(metrics, "killed");
          break;
        case 3:
          if (const auto job = machine.LeaseJob(metrics, now)) jobs.emplace_back(metrics, *job);
          break;
        case 4: {
          if (jobs.empty()) break;
          const auto [metric_process, job] = jobs[random() % jobs.size()];
          if (!machine.JobDone(metric_process, job.job, job.job_attempt)) break;
          for (const int64_t d : List(job.documents)) ++scored[{job.task, d}];
          machine.ScoresCommitted(job.task, List(job.documents));
          break;
        }
        case 5: {  // a worker ends a slice early, or reports that late
          if (reports.empty()) break;
          Report& reported = reports[random() % reports.size()];
          TrialLease& lease = reported.lease;
          LeasedSlice& slice = lease.slices[random() % lease.slices.size()];
          const int64_t end = slice.documents.first + 1 + static_cast<int64_t>(random() % 10);
          if (machine.Shortened(reported.worker, lease.trial, lease.attempt, slice.task,
                                slice.documents.first, end)) {
            ASSERT_LT(end, slice.documents.end);
            slice.documents.end = end;
            ++shortened;
          }
          break;
        }
        default: {
          if (reports.empty()) break;
          // of a live lease, late or repeated
          const Report& report = reports[random() % reports.size()];
          for (const LeasedSlice& slice : report.lease.slices) {
            if (random() % 3 == 0) continue;
            if (!machine.SliceReported(report.worker, report.lease.trial, report.lease.attempt,
                                       slice.task, slice.documents))
              continue;
            std::vector<int64_t> won;
            for (const int64_t d : List(slice.documents)) {
              if (committed[{slice.task, d}]++ == 0) won.push_back(d);
            }
            machine.GenerationsCommitted(slice.task, won, FileOf(machine, report.lease, slice),
                                         report.lease.trial, report.lease.attempt);
          }
          if (random() % 2 == 0)
            machine.TrialDone(report.worker, report.lease.trial, report.lease.attempt);
        }
      }
    }
    EXPECT_EQ(committed.size(), 107u);
    EXPECT_EQ(scored.size(), 107u);
    for (const auto& [document, times] : scored) EXPECT_EQ(times, 1);
    EXPECT_TRUE(machine.missing().empty());
  }
  EXPECT_GT(shortened, 100);
  EXPECT_GT(backed_up, 100);
  EXPECT_GT(revoked, 50);
}

// One trial of ten documents of a second each, on one of two workers, at time 0.
struct Straggler {
  explicit Straggler(int attempts = 3, bool command = false)
      : machine({.attempts_max = attempts}, {}) {
    machine.SetTasks({{.name = "t", .documents = 10, .command = command}});
    PlanSetup setup;
    setup.devices = 1;
    setup.places = 16;
    setup.costs = {0.1, 0.01};
    machine.Plan(setup);
    lease = *machine.LeaseTrial("slow"_p, 0);
    EXPECT_EQ(lease.slices[0].documents, (DocumentRange{0, 10}));
    machine.Progressed("slow"_p, {lease.trial, lease.attempt, 0, 1}, kSecond);
  }
  static constexpr int64_t kSecond = 1'000'000;
  // Ten documents of a second each and a lease. The trial is late after twice that time and a
  // second.
  static constexpr int64_t kLate = 22 * kSecond;
  RunMachine machine;
  TrialLease lease;
};

// Anyone with a worker token can hold a trial, say that its requests end and that none is old, and
// never hand anything over nor give documents back.
TEST(RunMachine, ATrialOfWhichOnlyHeartbeatsComeGoesToWhoIsIdle) {
  RunMachine machine({}, {});
  machine.SetTasks({{"t", 100}});
  PlanSetup setup;
  setup.devices = 1;
  setup.places = 1;
  setup.costs = {0.1, 0.01};
  machine.Plan(setup);
  std::vector<TrialLease> leases;
  while (const auto lease = machine.LeaseTrial("liar"_p, 0)) leases.push_back(*lease);
  constexpr int64_t kSecond = 1'000'000;
  int64_t now = 0;
  std::optional<TrialLease> backup;
  for (int64_t done = 0; !backup && now < 7200 * kSecond; now += kSecond) {
    done += now % (20 * kSecond) == 0 ? 1 : 0;
    for (const TrialLease& lease : leases)
      machine.Progressed("liar"_p, {lease.trial, lease.attempt, std::min<int64_t>(done, 3), 0.2},
                         now);
    machine.Steal("idle"_p, now);
    backup = machine.LeaseBackup("idle"_p, now);
  }
  ASSERT_TRUE(backup);
  EXPECT_LE(now, 1800 * kSecond);
}

// As above, but nobody idle asks for a backup.
TEST(RunMachine, ATrialOfWhichOnlyHeartbeatsComeIsTakenBack) {
  Straggler s;
  const auto beat = [&](int64_t now) {
    s.machine.Progressed("slow"_p, {s.lease.trial, s.lease.attempt, 1, 0.2}, now);
  };
  beat(60 * s.kSecond);
  EXPECT_TRUE(s.machine.TakeStalled("slow"_p, 60 * s.kSecond).empty());
  EXPECT_TRUE(s.machine.TakeStalled("idle"_p, 3600 * s.kSecond).empty()) << "it holds nothing";
  beat(1900 * s.kSecond);
  const auto taken = s.machine.TakeStalled("slow"_p, 1900 * s.kSecond);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].item, s.lease.trial);
  EXPECT_TRUE(s.machine.has_trials());
  const auto again = s.machine.LeaseTrial("idle"_p, 1900 * s.kSecond);
  ASSERT_TRUE(again);
  EXPECT_TRUE(s.machine.missing().empty()) << "it is no failure";
  // Eight times ten seconds and a minute, and half a minute for a backup: twice that from now on
  EXPECT_TRUE(s.machine.TakeStalled("idle"_p, 2150 * s.kSecond).empty()) << "patience doubles";
  EXPECT_EQ(s.machine.TakeStalled("idle"_p, 2400 * s.kSecond).size(), 1u);
}

TEST(RunMachine, ATrialStaysWhoseBackupIsUnderWay) {
  Straggler s;
  constexpr int64_t kStalled = 1900;
  ASSERT_TRUE(s.machine.LeaseBackup("idle"_p, (kStalled - 10) * s.kSecond));
  EXPECT_TRUE(s.machine.TakeStalled("slow"_p, kStalled * s.kSecond).empty());
  EXPECT_EQ(s.machine.TakeStalled("slow"_p, 2 * kStalled * s.kSecond).size(), 1u)
      << "the backup is as quiet";
}

TEST(RunMachine, WhatIsLateIsLeasedASecondTimeToWhoIsIdle) {
  Straggler s;
  EXPECT_FALSE(s.machine.LeaseBackup("idle"_p, s.kSecond)) << "it is not late";
  EXPECT_FALSE(s.machine.LeaseBackup("slow"_p, s.kLate)) << "nobody helps itself";
  const auto backup = s.machine.LeaseBackup("idle"_p, s.kLate);
  ASSERT_TRUE(backup) << "also when it has said nothing for long";
  EXPECT_NE(backup->trial, s.lease.trial);
  EXPECT_EQ(backup->slices[0].documents, (DocumentRange{0, 10}));
  EXPECT_EQ(FileOf(s.machine, *backup, backup->slices[0]), "generations/t/1.1-0.jsonl");
  EXPECT_EQ(
      backup->slices[0].salvage,
      (std::vector<std::string>{"generations/t/0.1-0.jsonl", "generations/t/0.1-0.jsonl.part"}));
  EXPECT_FALSE(s.machine.LeaseBackup("third"_p, s.kLate)) << "one backup at a time";
  EXPECT_TRUE(s.machine.Steal("third"_p, s.kLate).empty());
}

// A second worker would run the same program beside the first.
TEST(RunMachine, ACommandHasNoBackup) {
  Straggler s(3, true);
  EXPECT_FALSE(s.machine.LeaseBackup("idle"_p, s.kLate));
  EXPECT_FALSE(s.machine.LeaseBackup("idle"_p, 100 * s.kLate));
}

TEST(RunMachine, TheCopyComesFirst) {
  Straggler s;
  const TrialLease backup = *s.machine.LeaseBackup("idle"_p, s.kLate);
  EXPECT_TRUE(s.machine.SliceReported("idle"_p, backup.trial, backup.attempt, 0, {0, 10}));
  const auto revoked = s.machine.TakeRevoked();
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_EQ(revoked[0].worker, "slow"_p);
  EXPECT_EQ(revoked[0].trial, s.lease.trial);
  EXPECT_EQ(revoked[0].attempt, s.lease.attempt);
  EXPECT_FALSE(s.machine.SliceReported("slow"_p, s.lease.trial, s.lease.attempt, 0, {0, 10}))
      << "a duplicate";
  EXPECT_FALSE(s.machine.TrialDone("slow"_p, s.lease.trial, s.lease.attempt));
  EXPECT_TRUE(s.machine.TrialDone("idle"_p, backup.trial, backup.attempt));
  EXPECT_TRUE(s.machine.trials_idle());
  EXPECT_TRUE(s.machine.missing().empty());
}

TEST(RunMachine, TheOriginalComesFirst) {
  Straggler s;
  const TrialLease backup = *s.machine.LeaseBackup("idle"_p, s.kLate);
  EXPECT_TRUE(s.machine.SliceReported("slow"_p, s.lease.trial, s.lease.attempt, 0, {0, 10}));
  const auto revoked = s.machine.TakeRevoked();
  ASSERT_EQ(revoked.size(), 1u);
  EXPECT_EQ(revoked[0].worker, "idle"_p);
  EXPECT_EQ(revoked[0].trial, backup.trial);
  EXPECT_FALSE(s.machine.SliceReported("idle"_p, backup.trial, backup.attempt, 0, {0, 10}));
  EXPECT_TRUE(s.machine.TrialDone("slow"_p, s.lease.trial, s.lease.attempt));
  EXPECT_TRUE(s.machine.trials_idle());
}

TEST(RunMachine, ACopyThatFailsIsNoFailureOfItsTrial) {
  Straggler s(1);
  for (int backups = 0; backups < Backups::kBackupsMax; ++backups) {
    const auto backup = s.machine.LeaseBackup("idle"_p, s.kLate);
    ASSERT_TRUE(backup);
    if (backups == 0) {
      EXPECT_TRUE(
          s.machine.TrialFailed("idle"_p, backup->trial, backup->attempt, "out of memory", true));
    } else {
      s.machine.WorkerLost("idle"_p, "killed");
    }
    EXPECT_FALSE(s.machine.has_trials());
    EXPECT_FALSE(s.machine.SliceReported("idle"_p, backup->trial, backup->attempt, 0, {0, 10}));
  }
  EXPECT_FALSE(s.machine.LeaseBackup("idle"_p, 10 * s.kLate)) << "enough of them";
  EXPECT_TRUE(s.machine.SliceReported("slow"_p, s.lease.trial, s.lease.attempt, 0, {0, 10}));
  EXPECT_TRUE(s.machine.TrialDone("slow"_p, s.lease.trial, s.lease.attempt));
  EXPECT_TRUE(s.machine.missing().empty());
}

TEST(RunMachine, TheCopySavesWhatItsTrialLost) {
  Straggler s(1);
  const TrialLease backup = *s.machine.LeaseBackup("idle"_p, s.kLate);
  s.machine.WorkerLost("slow"_p, "killed");
  EXPECT_EQ(s.machine.missing().size(), 1u) << "one attempt was all";
  EXPECT_TRUE(s.machine.SliceReported("idle"_p, backup.trial, backup.attempt, 0, {0, 10}));
  EXPECT_TRUE(s.machine.TrialDone("idle"_p, backup.trial, backup.attempt));
  EXPECT_TRUE(s.machine.missing().empty());
  EXPECT_TRUE(s.machine.TakeRevoked().empty()) << "nobody has it any more";
  EXPECT_TRUE(s.machine.trials_idle());
}

TEST(RunMachine, ATrialThatWaitsAgainIsNotBegunOnceItsCopyIsThere) {
  Straggler s;
  const TrialLease backup = *s.machine.LeaseBackup("idle"_p, s.kLate);
  s.machine.WorkerLost("slow"_p, "killed");
  EXPECT_TRUE(s.machine.has_trials());
  EXPECT_TRUE(s.machine.SliceReported("idle"_p, backup.trial, backup.attempt, 0, {0, 10}));
  EXPECT_FALSE(s.machine.has_trials());
  EXPECT_FALSE(s.machine.LeaseTrial("third"_p, s.kLate));
  EXPECT_TRUE(s.machine.TrialDone("idle"_p, backup.trial, backup.attempt));
  EXPECT_TRUE(s.machine.trials_idle());
}

TEST(RunMachine, WhatAWorkerGivesBackIsOpenAgain) {
  RunMachine machine = Whole({{"t", 10}});
  const TrialLease lease = *machine.LeaseTrial("slow"_p, 0);
  EXPECT_FALSE(machine.LeaseTrial("idle"_p, 0));
  EXPECT_FALSE(machine.Shortened("slow"_p, lease.trial, lease.attempt, 0, 0, 10))
      << "nothing is given back";
  EXPECT_FALSE(machine.Shortened("slow"_p, lease.trial, lease.attempt, 0, 3, 6))
      << "no slice begins there";
  EXPECT_FALSE(machine.Shortened("slow"_p, lease.trial, lease.attempt + 1, 0, 0, 6))
      << "another attempt";
  EXPECT_TRUE(machine.Shortened("slow"_p, lease.trial, lease.attempt, 0, 0, 6));
  EXPECT_TRUE(machine.has_trials());
  const TrialLease rest = *machine.LeaseTrial("idle"_p, 0);
  EXPECT_EQ(rest.slices[0].documents, (DocumentRange{6, 10}));
  EXPECT_FALSE(machine.SliceReported("slow"_p, lease.trial, lease.attempt, 0, {0, 10}))
      << "its old length";
  EXPECT_TRUE(machine.SliceReported("slow"_p, lease.trial, lease.attempt, 0, {0, 6}));
  EXPECT_TRUE(machine.TrialDone("slow"_p, lease.trial, lease.attempt));
  EXPECT_TRUE(machine.SliceReported("idle"_p, rest.trial, rest.attempt, 0, {6, 10}));
  EXPECT_TRUE(machine.TrialDone("idle"_p, rest.trial, rest.attempt));
  EXPECT_TRUE(machine.trials_idle());
}

TEST(RunMachine, AnIdleWorkerIsGivenHalfOfWhatAnotherHasNotBegun) {
  RunMachine machine({}, {});
  machine.SetTasks({{.name = "t", .documents = 100, .requests_per_document = 2}});
  PlanSetup setup;  // documents of a second each, in one trial
  setup.devices = 1;
  setup.places = 4;
  setup.costs = {1, 0.001, 1000};
  machine.Plan(setup);
  const TrialLease lease = *machine.LeaseTrial("slow"_p, 0);
  ASSERT_EQ(lease.slices[0].documents, (DocumentRange{0, 100}));
  EXPECT_TRUE(machine.Steal("idle"_p, 0).empty()) << "nobody has said how far it is";
  // 18 documents, and 2 in the engine
  machine.Progressed("slow"_p, {lease.trial, lease.attempt, 36, 0}, 1'000'000);
  const auto orders = machine.Steal("idle"_p, 1'000'000);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].worker, "slow"_p);
  EXPECT_EQ(orders[0].trial, lease.trial);
  EXPECT_EQ(orders[0].first, 0);
  EXPECT_EQ(orders[0].end, 60) << "half of 20 to 100";
  EXPECT_TRUE(machine.Steal("idle"_p, 1'100'000).empty()) << "it waits for the answer";
  EXPECT_TRUE(machine.Shortened("slow"_p, lease.trial, lease.attempt, 0, 0, 70))
      << "more was begun than believed";
  EXPECT_TRUE(machine.Steal("idle"_p, 1'200'000).empty()) << "there is something to lease";
  EXPECT_EQ(machine.LeaseTrial("idle"_p, 1'200'000)->slices[0].documents, (DocumentRange{70, 100}));
  machine.Progressed("slow"_p, {lease.trial, lease.attempt, 138, 0}, 1'300'000);
  EXPECT_TRUE(machine.Steal("third"_p, 1'300'000).empty())
      << "all is begun, and of the other's nothing is known";
}

// A heartbeat may be about several trials. Those of another worker are passed over.
TEST(RunMachine, AHeartbeatAboutSeveralTrialsCountsForThoseThatTheWorkerHolds) {
  RunMachine machine({}, {});
  machine.SetTasks({{"t", 100}});
  PlanSetup setup;  // documents of a second each
  setup.devices = 1;
  setup.places = 2;
  setup.costs = {0.1, 0.01, 40};
  machine.Plan(setup);
  std::vector<TrialLease> leases;
  std::vector<TrialProgress> heartbeat;
  while (const auto lease = machine.LeaseTrial(leases.empty() ? "other"_p : "slow"_p, 0)) {
    leases.push_back(*lease);
    heartbeat.push_back({lease->trial, lease->attempt, 3, 0});
  }
  ASSERT_GT(leases.size(), 2u);
  machine.Progressed("slow"_p, heartbeat, 1'000'000);
  EXPECT_EQ(machine.under_way()[0], 3 * static_cast<int64_t>(leases.size() - 1));
  const auto orders = machine.Steal("idle"_p, 1'000'000);
  ASSERT_FALSE(orders.empty());
  for (const ShortenOrder& order : orders) {
    EXPECT_EQ(order.worker, "slow"_p);
    EXPECT_NE(order.trial, leases[0].trial);
  }
}

TEST(RunMachine, WhatIsMeasuredCorrectsWhatIsExpected) {
  RunMachine machine({}, {});
  machine.SetTasks({{"t", 100}});
  Prior prior;
  prior.estimate.device_s = 1;
  prior.estimate.documents = 100;
  prior.weight = 10;
  machine.Expect(0, prior);
  machine.Plan({});
  machine.Measured("w"_p, 0, 30, 90, 4);
  machine.MeasuredScoring(0, 30, 6);
  EXPECT_DOUBLE_EQ(machine.estimate(0).device_s, (10 * 1 + 90) / 40.0);
  EXPECT_DOUBLE_EQ(machine.estimate(0).score_s, 6 / 40.0);
  EXPECT_DOUBLE_EQ(machine.estimate(0).request_s, 4);
  machine.Overdue("w"_p, 0, 3);
  EXPECT_DOUBLE_EQ(machine.estimate(0).request_s, 4);
  machine.Overdue("w"_p, 0, 9);
  EXPECT_DOUBLE_EQ(machine.estimate(0).request_s, 9) << "before it ends";
}

// ---- workers whose hosts end

int64_t DocumentsOf(const TrialLease& lease) {
  int64_t documents = 0;
  for (const LeasedSlice& slice : lease.slices) documents += slice.documents.size();
  return documents;
}

TEST(RunMachine, ATrialEndsBeforeTheHost) {
  RunMachine machine = Planned({{"t", 1000}});
  EXPECT_EQ(DocumentsOf(*machine.LeaseTrial("w"_p, 0)), 15);
  EXPECT_EQ(DocumentsOf(*machine.LeaseTrial("soon"_p, 0, 5'000'000)), 4);
  EXPECT_FALSE(machine.LeaseTrial("soon"_p, 0, 5'000'000)) << "after the four that it holds";
  EXPECT_FALSE(machine.LeaseTrial("late"_p, 0, 1'000'000));
  EXPECT_FALSE(machine.LeaseTrial("late"_p, 2'000'000, 1'000'000));
  EXPECT_DOUBLE_EQ(*machine.shortest_s(), 1.01);
}

TEST(RunMachine, ATrialThatCameBackGoesToAWorkerWithTimeForIt) {
  RunMachine machine = Planned({{"t", 60}});
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  ASSERT_GT(DocumentsOf(lease), 2);
  machine.TrialGivenBack("w"_p, lease.trial, lease.attempt);
  const TrialLease other = *machine.LeaseTrial("soon"_p, 0, 3'000'000);
  EXPECT_NE(other.trial, lease.trial);
  EXPECT_EQ(DocumentsOf(other), 2);
  EXPECT_EQ(machine.LeaseTrial("w"_p, 0, 900'000'000)->trial, lease.trial);
}

TEST(RunMachine, WhatIsHandedBackIsOpenAgain) {
  RunMachine machine = Planned({{"t", 60}}, 1);
  const TrialLease lease = *machine.LeaseTrial("w"_p, 0);
  ASSERT_EQ(DocumentsOf(lease), 7);
  EXPECT_TRUE(machine.HandBack("other"_p, lease.trial, lease.attempt, 0).empty());
  const auto orders = machine.HandBack("w"_p, lease.trial, lease.attempt, 0);
  ASSERT_EQ(orders.size(), 1u);
  EXPECT_EQ(orders[0].end, lease.slices[0].documents.first + 1);
  const double open_s = machine.open_s();
  EXPECT_TRUE(machine.Shortened("w"_p, lease.trial, lease.attempt, 0, orders[0].first, 3));
  EXPECT_DOUBLE_EQ(machine.open_s(), open_s + 4);
  EXPECT_TRUE(machine.SliceReported("w"_p, lease.trial, lease.attempt, 0, {0, 3}));
  EXPECT_TRUE(machine.TrialDone("w"_p, lease.trial, lease.attempt));
}

TEST(RunMachine, AJobEndsBeforeTheHost) {
  RunMachine machine = Judged(2);
  machine.MeasuredScoring(0, 100, 100 * 20.0);
  machine.MeasuredScoring(1, 100, 100 * 20.0);
  EXPECT_FALSE(machine.LeaseJob("m"_p, 0, {}, 25'000'000));
  EXPECT_TRUE(machine.LeaseJob("m"_p, 0, {}, 35'000'000));
}

}  // namespace
}  // namespace evald
