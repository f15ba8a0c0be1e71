#include "tests/unit/fleet_machine/tiny_fleet.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace evald {
namespace {

std::vector<int64_t> List(DocumentRange range) {
  std::vector<int64_t> documents;
  for (int64_t d = range.first; d < range.end; ++d) documents.push_back(d);
  return documents;
}

bool Holds(const TinyRun& run, const std::string& worker, const HeldTrial& held) {
  return run.machine.trials().Holds(NumberOf(worker), held.trial, held.attempt);
}

}  // namespace

RunView ViewOf(int64_t number, const std::string& load, const std::string& profile) {
  RunView view;
  view.number = number;
  view.load = load;
  view.profile = profile;
  return view;
}

RunView NativeView(int64_t number, const std::string& load) {
  RunView view = ViewOf(number, load, "native");
  view.uses_devices = true;
  return view;
}

EngineFacts TinyProcess::engine_facts() const {
  return on_gpu ? EngineFacts{"native", "1", "gpu", true}
                : EngineFacts{"native", "1", "processor", false};
}

TinyRun::TinyRun(RunView of, std::vector<MachineTask> tasks, int attempts_max)
    : view(std::move(of)), machine({.attempts_max = attempts_max}, {.attempts_max = attempts_max}) {
  machine.SetTasks(std::move(tasks));
}

std::vector<std::string> TinyFleet::Take() {
  std::vector<std::string> log = std::exchange(log_, {});
  std::erase(log, "");
  return log;
}

// ---- runs

RunView TinyFleet::ViewOf(TinyRun* run) {
  RunView& view = run->view;
  const bool goes_on = !view.ending && run->staged;
  const RunMachine& of = run->machine;
  view.wants_workers = goes_on && (view.planned ? of.has_trials() : !view.engine);
  view.wants_more_workers = goes_on && view.planned && of.waiting_s(now) > 3;
  view.needs_workers = goes_on && (view.planned ? !of.trials_idle() : !view.engine);
  view.wants_metric_processes = goes_on && view.planned && of.jobs().queued() > 0;
  view.open_s.reset();
  if (view.planned) view.open_s = of.open_s();
  view.shortest_s.reset();
  if (view.planned) view.shortest_s = of.shortest_s();
  return view;
}

TinyRun& TinyFleet::AddRun(RunView view, std::vector<MachineTask> tasks, bool staged,
                           int attempts_max) {
  const int64_t number = view.number;
  if (view.profile.empty()) view.profile = "p";
  TinyRun& run = runs.try_emplace(number, view, std::move(tasks), attempts_max).first->second;
  run.devices = std::max(1, machine.device_count());
  if (staged && run.view.fingerprint.empty()) run.view.fingerprint = run.view.load;
  run.staged = staged;
  dropped.erase(run.view.fingerprint);
  Changed(number);
  return run;
}

void TinyFleet::Changed(int64_t number) {
  const auto run = runs.find(number);
  if (run != runs.end()) machine.RunChanged(ViewOf(&run->second), now);
  Settle();
}

void TinyFleet::Stage(int64_t number) {
  TinyRun& run = runs.at(number);
  run.staged = true;
  run.view.followable.reset();
  run.view.fingerprint = run.view.load;
  dropped.erase(run.view.fingerprint);
  Changed(number);
}

void TinyFleet::Fail(int64_t number, const std::string& why) {
  const auto run = runs.find(number);
  if (run == runs.end() || run->second.view.ending) return;
  run->second.view.ending = true;
  run->second.failure = why;
  Changed(number);
}

void TinyFleet::Remove(int64_t number, bool leaves_staged) {
  runs.erase(number);
  machine.RunRemoved(number, leaves_staged, now);
  Settle();
}

// No two trials that are leased at once have a common document, except a backup and its original.
void TinyFleet::CheckLease(TinyRun* run, const TrialLease& lease) {
  std::erase_if(run->live, [&](const auto& live) {
    return !run->machine.trials().Holds(live.first, live.second.attempt);
  });
  EXPECT_EQ(run->live.count(lease.trial), 0u) << "trial " << lease.trial << " is leased twice";
  for (const auto& [trial, live] : run->live) {
    if (run->machine.is_backup(lease.trial) || run->machine.is_backup(trial)) continue;
    for (const LeasedSlice& a : live.slices) {
      for (const LeasedSlice& b : lease.slices) {
        const bool before = a.documents.end <= b.documents.first,
                   after = b.documents.end <= a.documents.first;
        EXPECT_TRUE(a.task != b.task || before || after)
            << "documents of trials " << trial << " and " << lease.trial;
      }
    }
  }
  run->live[lease.trial] = lease;
}

void TinyFleet::Revocations(TinyRun* run) {
  for (const RevokeOrder& order : run->machine.TakeRevoked()) {
    ++revoked;
    machine.Answered(
        answer::Revoked{NameOf(order.worker), {run->view.number, order.trial, order.attempt}}, now);
  }
}

// As in the database, the first file of a document counts.
void TinyFleet::Commit(TinyRun* run, const std::string& worker, const HeldTrial& held,
                       const LeasedSlice& slice) {
  if (run->view.ending || !run->machine.SliceReported(NumberOf(worker), held.trial, held.attempt,
                                                      slice.task, slice.documents))
    return;
  std::vector<int64_t> won;
  for (const int64_t d : List(slice.documents)) {
    if (run->committed[{slice.task, d}]++ == 0) won.push_back(d);
  }
  const std::string file =
      run->machine.GenerationsFile(slice.task, slice.documents.first, held.trial, held.attempt);
  run->makers[file] = worker;
  run->machine.GenerationsCommitted(slice.task, won, file, held.trial, held.attempt);
  Revocations(run);
}

void TinyFleet::OnTrialEnd(const std::string& worker, const HeldTrial& held, bool failed,
                           bool retry) {
  const auto run = runs.find(held.run);
  const bool goes_on = run != runs.end() && !run->second.view.ending;
  const bool counts = goes_on && Holds(run->second, worker, held);
  if (goes_on && failed)
    run->second.machine.TrialFailed(NumberOf(worker), held.trial, held.attempt, "it failed", retry);
  if (goes_on && !failed) run->second.machine.TrialDone(NumberOf(worker), held.trial, held.attempt);
  if (goes_on) Revocations(&run->second);
  Changed(held.run);
  machine.Heard(worker, news::TrialOver{held, !failed, counts && !failed, 0.5}, now);
}

void TinyFleet::OnTrialBeat(const std::string& worker, const HeldTrial& held, int64_t done,
                            int64_t since) {
  const auto run = runs.find(held.run);
  if (run == runs.end() || run->second.view.ending) return;
  run->second.machine.Progressed(
      NumberOf(worker), {held.trial, held.attempt, done, static_cast<double>(now - since) / 1e6},
      now);
  Changed(held.run);
}

void TinyFleet::OnJobEnd(const std::string& metric_process, int64_t number, const MetricJob& job,
                         bool fails) {
  const auto run = runs.find(number);
  if (run == runs.end() || run->second.view.ending) return;
  TinyRun& of = run->second;
  if (fails) {
    of.machine.JobFailed(NumberOf(metric_process), job.job, job.job_attempt, "it failed", true);
  } else if (of.machine.JobDone(NumberOf(metric_process), job.job, job.job_attempt)) {
    for (const int64_t d : List(job.documents)) ++of.scored[{job.task, d}];
    of.machine.ScoresCommitted(job.task, List(job.documents));
    machine.Heard(metric_process, news::Progressed{}, now);
  }
  Changed(number);
}

// ---- conditions that hold between events

void TinyFleet::Check() {
  std::map<std::string, std::set<HeldTrial>> held;
  for (const auto& [number, run] : runs) {
    if (run.view.ending) continue;
    for (const WorkerSlot& slot : machine.workers()) {
      for (const Grant& grant : run.machine.trials().HeldBy(NumberOf(slot.id))) {
        held[slot.id].insert({number, grant.item, grant.attempt});
      }
    }
  }
  for (const WorkerSlot& slot : machine.workers()) {
    std::set<HeldTrial> goes_on;
    for (const HeldTrial& trial : slot.held) {
      const auto run = runs.find(trial.run);
      ASSERT_NE(run, runs.end()) << slot.id << " holds a trial of a run that is gone";
      if (!run->second.view.ending) goes_on.insert(trial);
    }
    ASSERT_EQ(goes_on, held[slot.id]) << slot.id << " and the runs do not agree on what it holds";
    ASSERT_TRUE(slot.held.empty() || slot.has_engine())
        << slot.id << " holds trials while " << Name(slot.state());
    ASSERT_EQ(slot.asked, 0) << "a question was not answered";
    ASSERT_EQ(slot.has_process(), processes.count(slot.id) > 0)
        << slot.id << " is " << Name(slot.state());
  }
}

}  // namespace evald
