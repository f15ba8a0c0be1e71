// The ends of processes: the run or device that an end counts against, and the next process in the
// slot.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

constexpr int64_t kFirstPauseMicros = 200'000;
constexpr int kPauseGrowthsMax = 6;
constexpr int64_t kReplacedMicros = 5'000'000;  // after a host was found unfit
constexpr int kUnfitHostsMax = 3;               // while others come, before the run believes them

int64_t PauseAfter(int restarts) {
  return kFirstPauseMicros << std::min(restarts, kPauseGrowthsMax);
}

std::string TitleOf(const WorkerSlot& slot) {
  return slot.gpu ? fmt::format("worker {} ({})", slot.id, slot.device) : "worker " + slot.id;
}

}  // namespace

void FleetMachine::Ended(const std::string& id, const ProcessEnd& end, int64_t now) {
  const auto place = places_.find(id);
  if (place == places_.end()) return Ignore(id, "its end", "unknown");
  if (place->second.metric_process) {
    MetricProcessEnded(place->second.index, end, now);
  } else {
    WorkerEnded(place->second.index, end, true, now);
  }
  if (closed_) return;
  Serve(now);
  TellExhausted();
}

// ---- blame

// The run that the worker was started for; null if it is over. A worker gets no work before it says
// hello with an engine, so until then slot.run is that run.
FleetMachine::Run* FleetMachine::StartedFor(const WorkerSlot& slot) {
  Run* run = Find(slot.run);
  return run != nullptr && run->view.profile == slot.profile ? run : nullptr;
}

// The worker cannot make an engine from its command line, nor could another: ends all runs with
// that profile.
void FleetMachine::Refuse(WorkerSlot* slot, const std::string& why, bool see_logs) {
  slot->refuses = true;
  slot->cause = why;
  for (auto& [number, run] : runs_) {
    if (run.view.profile != slot->profile || run.view.ending) continue;
    Distrust(&run, *slot);
    Push(order::TellRefused{number, slot->id, why, see_logs});
  }
}

// Finds the run or device that an end counts against. It counts against the run if no worker has
// managed the load yet, or if no worker has made an engine yet. It counts against a GPU if the
// GPU's worker ends before it has an engine, unless the worker said otherwise.
FleetMachine::Blame FleetMachine::BlameFor(const WorkerSlot& slot, const ProcessEnd& end,
                                           bool unasked) {
  Blame blame;
  blame.cause = slot.cause.empty() ? end.how : slot.cause;
  if (!unasked) return blame;
  Run* run = nullptr;
  if (slot.pulls()) {
    run = Find(slot.run);
  } else if (slot.state() == WorkerState::kStarting && !slot.refuses &&
             (slot.excused || !slot.on_gpu)) {
    run = StartedFor(slot);
  }
  if (run != nullptr && !run->view.engine) blame.run = run;
  const bool may_be_checkpoint = blame.run != nullptr && slot.cause.empty();
  blame.at_fault = slot.on_gpu && end.could_start && !slot.excused && !slot.refuses &&
                   slot.state() != WorkerState::kWaiting && !may_be_checkpoint;
  return blame;
}

// Whether the worker may no longer get the run's checkpoint. After some ends, the workers that
// ended over it are kept for other runs, unless another worker loads it meanwhile.
bool FleetMachine::TriedInVain(const WorkerSlot& slot, const Run& run) const {
  if (run.view.engine || run.ended_loads_all < run.view.max_attempts) return false;
  return run.ended_loads.count(static_cast<size_t>(&slot - workers_.data())) > 0;
}

// ---- the next process in the slot

// Whether the worker may be started again after it ended without an engine. Such a worker cannot be
// given to another run either, so it is not restarted for a run that is over or that it has tried
// in vain. Other runs start their own.
bool FleetMachine::MayStartAgain(const WorkerSlot& slot) {
  const Run* run = StartedFor(slot);
  return !slot.refuses && run != nullptr && !run->view.ending && !TriedInVain(slot, *run);
}

void FleetMachine::WorkerEnded(size_t index, const ProcessEnd& end, bool by_itself, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (!slot.has_process()) return Ignore(slot.id, "its end", Name(slot.state()));
  // Its host ends, and ends its processes
  const bool ending = Ending(slot.host);
  const bool unasked = by_itself && !closed_ && !ending && slot.state() != WorkerState::kStopping;
  const bool had_engine = slot.has_engine();
  if (unasked && !had_engine && !slot.refuses && end.usage) {
    Refuse(&slot, end.how + " before it had an engine", true);
  }
  const Blame blame = BlameFor(slot, end, unasked);
  const std::string why = TitleOf(slot) + ": " + blame.cause;
  const bool aside =
      blame.at_fault && devices_.Failed(slot.host + "/" + slot.device, blame.cause, now);
  if (blame.run != nullptr && !blame.at_fault) {  // the end counts as one of the run's attempts
    ++blame.run->ended_loads[index];
    ++blame.run->ended_loads_all;
    blame.run->load_ended = why;
    slot.restarts = 0;
  }
  const bool again = !ending && (had_engine || !unasked || MayStartAgain(slot));
  std::optional<WorkerSlot::Start> next = slot.next;
  last_worker_end_ = slot.id + ": " + blame.cause;
  if (aside) {
    const std::string failed = devices_.aside(slot.host + "/" + slot.device).value_or("");
    last_worker_end_ = fmt::format("{}: device {} is set aside: {}", slot.id, slot.device, failed);
    Push(order::TellSetAside{slot.host, slot.device, failed});
  }
  TakeTrialsBack(slot);
  const Suspect suspect = end.with_agent   ? Suspect::kHost
                          : blame.at_fault ? Suspect::kHolder
                                           : Suspect::kItem;
  Push(order::TellWorkerLost{slot.id, why, suspect});
  for (auto& [number, run] : runs_) run.nothing_for.erase(index);
  Move(index, WorkerEvent::kEnd);
  if (closed_) return;
  if (aside) {
    Move(index, WorkerEvent::kSetAside);
  } else {
    WhatComesNext(index, std::move(next), again, now);
  }
  ReleaseStaged();
  Recount();
}

void FleetMachine::WhatComesNext(size_t index, std::optional<WorkerSlot::Start> next, bool again,
                                 int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (slot.device.empty()) {
    Move(index, WorkerEvent::kRetire);
  } else if (next) {
    StartAs(index, *next, now);
  } else if (!again) {
    return;  // the slot stays idle, for other runs
  } else if (slot.restarts >= options_.worker_restarts_max) {
    slot.spent.insert(slot.profile);
    Move(index, WorkerEvent::kGiveUp);
  } else {
    Move(index, WorkerEvent::kPause);
    SetDue(index, now + PauseAfter(slot.restarts++));
  }
}

void FleetMachine::MetricProcessEnded(size_t index, const ProcessEnd& end, int64_t now) {
  MetricProcessSlot& slot = metric_processes_[index];
  if (!slot.has_process()) return Ignore(slot.id, "its end", Name(slot.state));
  last_metric_process_end_ = slot.id + ": " + (slot.cause.empty() ? end.how : slot.cause);
  TakeAllJobsBack(slot);
  Push(order::TellMetricProcessLost{slot.id, fmt::format("metric process {}: {}", slot.id, end.how),
                                    end.with_agent ? Suspect::kHost : Suspect::kItem});
  scoring_.End(slot.id, now);
  slot.job_of = 0;
  const bool excused = std::exchange(slot.excused, false) || Ending(slot.host);
  if (closed_) return MoveMetricProcess(index, MetricProcessState::kIdle);
  if (excused) return MoveMetricProcess(index, MetricProcessState::kPausing, now + PauseAfter(0));
  if (slot.restarts >= options_.metric_restarts_max)
    return MoveMetricProcess(index, MetricProcessState::kGivenUp);
  MoveMetricProcess(index, MetricProcessState::kPausing, now + PauseAfter(slot.restarts++));
}

// ---- nothing left for a run

// Whether the run has no worker and will get none, even if a host that is away comes back.
bool FleetMachine::Exhausted(const Run& run) const {
  bool any = false;
  for (const WorkerSlot& slot : workers_) {
    if (slot.state() == WorkerState::kAbsent || !Suits(slot, run)) continue;
    if (slot.state() == WorkerState::kSetAside && options_.hosts_may_come) continue;
    if (!Spent(slot, run) && slot.state() != WorkerState::kSetAside) return false;
    any = true;
  }
  return any;
}

bool FleetMachine::MetricProcessesExhausted() const {
  bool any = false;
  for (const MetricProcessSlot& slot : metric_processes_) {
    if (slot.state == MetricProcessState::kAbsent) continue;
    if (slot.state != MetricProcessState::kGivenUp) return false;
    any = true;
  }
  return any;
}

// Tells runs again and again: each run decides whether it matters to it now.
void FleetMachine::TellExhausted() {
  const bool no_metric_processes = MetricProcessesExhausted();
  for (const auto& [number, run] : runs_) {
    if (run.view.ending) continue;
    if (Exhausted(run)) Push(order::TellNoWorkers{number, last_worker_end_});
    if (no_metric_processes) Push(order::TellNoMetricProcesses{number, last_metric_process_end_});
  }
}

bool FleetMachine::MayYetLoad(const Run& run) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const WorkerSlot& slot) {
    if (slot.device.empty() || hosts_.at(slot.host).left || slot.state() == WorkerState::kSetAside)
      return false;
    return Suits(slot, run) ||
           (slot.state() == WorkerState::kLoading && slot.loading == run.view.load);
  });
}

// If the host's word counts, the run ends over the worker's refusal. Otherwise the run gets nothing
// more from that host.
void FleetMachine::Distrust(Run* run, const WorkerSlot& slot) {
  if (hosts_.at(slot.host).spec.trusted) return EndRun(run);
  ++revision_;
  run->view.doubted.insert(slot.host);
}

std::optional<FleetMachine::Unused> FleetMachine::WhyUnused(const std::string& name) const {
  const Host& host = hosts_.at(name);
  std::optional<Unused> unused;
  for (const auto& [number, run] : runs_) {
    if (!run.view.needs_workers || run.view.ending) continue;
    if (!Doubts(run.view, name)) return std::nullopt;
    const auto unfit = host.unfit.find(number);
    const bool others_can = std::any_of(
        workers_.begin(), workers_.end(), [&of = run, &name, this](const WorkerSlot& slot) {
          return slot.host != name && slot.engine && slot.loading == of.view.load &&
                 !Doubts(of.view, slot.host);
        });
    unused = {unfit == host.unfit.end() ? "" : "it cannot load the checkpoint: " + unfit->second,
              others_can || (unused && unused->others_can)};
  }
  return unused;
}

// Tells a run whose remaining hosts are all doubted, again and again until it doubts no host or
// ends.
void FleetMachine::TellNobodyElse(int64_t now) {
  for (const auto& [number, run] : runs_) {
    if (run.view.ending || (run.view.doubted.empty() && run.view.doubted_owners.empty())) continue;
    const bool few_unfit = run.unfit_hosts > 0 && run.unfit_hosts < kUnfitHostsMax;
    // Whoever brings hosts may not know yet that one is unfit.
    const bool may_come = hosts_come_ || (hosts_came_ && now - run.unfit_us < kReplacedMicros);
    if (few_unfit && may_come) continue;
    const bool worker =
        std::any_of(workers_.begin(), workers_.end(), [&of = run, this](const WorkerSlot& slot) {
          return Usable(slot) && Suits(slot, of) && !Spent(slot, of);
        });
    const bool metric_process = std::any_of(metric_processes_.begin(), metric_processes_.end(),
                                            [&of = run, this](const MetricProcessSlot& slot) {
                                              return slot.state != MetricProcessState::kAbsent &&
                                                     slot.state != MetricProcessState::kGivenUp &&
                                                     Serves(slot.host) &&
                                                     !Doubts(of.view, slot.host);
                                            });
    if ((run.view.needs_workers && !worker) || (run.view.wants_metric_processes && !metric_process))
      Push(order::TellNobodyElse{number});
  }
}

void FleetMachine::TellVain() {
  for (auto& [number, run] : runs_) {
    if (run.ended_loads.empty() || run.view.engine || run.view.ending || MayYetLoad(run)) continue;
    EndRun(&run);
    Push(order::TellVain{number, run.load_ended});
  }
}

}  // namespace evald
