// Work that is taken back, so that nobody's endless work keeps others waiting without end. A trial
// or job is taken back without a failure, and goes on when its user's turn has come again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

// A run that has wanted a device for so long gets that of another user's run, if nothing of that
// run has ended for as long. Each time that a run loses a device like this, the others' patience
// with it doubles, so that requests that take hours come to their end some day.
constexpr int64_t kPatienceMicros = 600'000'000, kPatienceMostMicros = 3'600'000'000;
// A metric process gives a job back after ten seconds and the document under way. If it still has
// the job after so long, it is killed: others wait, or the job's run is over.
constexpr int64_t kJobMicros = 300'000'000, kJobOfNobodyMicros = 30'000'000;

// A worker of somebody else's host that holds trials, and of which nothing has come for so long, is
// looked at so often. The run knows how long its trials take.
constexpr int64_t kHeldMicros = 60'000'000, kHeldLookMicros = 10'000'000;

// The time between two looks at whose turn it is
constexpr int64_t kLookMicros = 1'000'000;

}  // namespace

// Whether a worker computes for the run, or is on its way to.
bool FleetMachine::HasDevice(const Run& run) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const WorkerSlot& slot) {
    if (slot.run != run.view.number || !hosts_.count(slot.host)) return false;
    return !slot.held.empty() || slot.pulls() || slot.state() == WorkerState::kStarting;
  });
}

int64_t FleetMachine::PatienceWith(const Run& holder) const {
  return std::min(kPatienceMicros << std::min(holder.taken_back, 8), kPatienceMostMicros);
}

void FleetMachine::TakeDevicesBack(int64_t now) {
  if (now - turns_looked_us_ < kLookMicros) return;
  turns_looked_us_ = now;
  for (auto& [number, run] : runs_) {
    if (wanting_.count(number) == 0 || run.view.ending || HasDevice(run)) {
      run.wants_since_us = 0;
    } else if (run.wants_since_us == 0) {
      run.wants_since_us = now;
    } else if (now - run.wants_since_us >= kPatienceMicros) {
      TakeDeviceFor(run, now);
    }
  }
}

// Takes the device whose worker has shown no progress for longest, if a run of another user and of
// no higher priority has it.
void FleetMachine::TakeDeviceFor(const Run& run, int64_t now) {
  WorkerSlot* worst = nullptr;
  for (WorkerSlot& slot : workers_) {
    if (slot.state() != WorkerState::kReady || slot.held.empty() || !Suits(slot, run)) continue;
    if (Ending(slot.host)) continue;  // it gets nothing more
    const Run* holder = Find(slot.run);
    if (holder == nullptr || holder->view.user == run.view.user ||
        holder->view.priority > run.view.priority || now - slot.moved_us < PatienceWith(*holder)) {
      continue;
    }
    if (worst == nullptr || slot.moved_us < worst->moved_us) worst = &slot;
  }
  if (worst == nullptr) return;
  Run& holder = *Find(worst->run);
  ++holder.taken_back;
  // The time counts as the user's, though no trial has ended
  use_[holder.view.user] += static_cast<double>(now - worst->moved_us) / 1e6;
  worst->moved_us = now;
  for (const HeldTrial& held : worst->held) Push(order::TakeBack{worst->id, held});
}

// Whether a worker of another host could compute for the run.
bool FleetMachine::ComputedElsewhere(const Run& run, const std::string& host) const {
  return std::any_of(workers_.begin(), workers_.end(), [&](const WorkerSlot& slot) {
    return slot.host != host && Usable(slot) && Suits(slot, run) && !Spent(slot, run);
  });
}

// Anyone with a worker token can hold trials and say that they are being computed.
void FleetMachine::TakeStalledBack(int64_t now) {
  for (WorkerSlot& slot : workers_) {
    if (slot.state() != WorkerState::kReady || slot.held.empty()) continue;
    if (now - slot.moved_us < kHeldMicros || now - slot.held_looked_us < kHeldLookMicros) continue;
    slot.held_looked_us = now;
    if (hosts_.at(slot.host).spec.trusted) continue;
    std::set<int64_t> runs;
    for (const HeldTrial& held : slot.held) runs.insert(held.run);
    for (const int64_t number : runs) {
      const Run* run = Find(number);
      if (run != nullptr && !run->view.ending && ComputedElsewhere(*run, slot.host))
        Push(order::TakeStalled{slot.id, number});
    }
  }
}

// ---- metric processes

// Whether a run of another user has a job for a metric process of this host.
bool FleetMachine::OthersWantToScore(const std::string& user, const std::string& host) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const auto& entry) {
    const RunView& view = entry.second.view;
    return view.wants_metric_processes && view.user != user && !Doubts(view, host);
  });
}

// Whether a metric process of another host could do the run's jobs.
bool FleetMachine::ScoredElsewhere(const Run& run, const std::string& host) const {
  return std::any_of(metric_processes_.begin(), metric_processes_.end(),
                     [&](const MetricProcessSlot& slot) {
                       return slot.host != host && slot.state == MetricProcessState::kReady &&
                              Serves(slot.host) && !Doubts(run.view, slot.host);
                     });
}

void FleetMachine::TakeJobsBack(int64_t now) {
  for (MetricProcessSlot& slot : metric_processes_) {
    if (slot.job_of == 0 || !slot.has_process()) continue;
    const int64_t took = now - slot.job_us;
    if (slot.job_of == MetricProcessSlot::kJobOfNobody) {
      if (took < kJobOfNobodyMicros) continue;
      slot.cause = "its job's run is over";
    } else {
      const Run* run = Find(slot.job_of);
      if (took < kJobMicros || run == nullptr) continue;
      // Anyone with a worker token can hold a job and do nothing
      const bool distrust = !hosts_.at(slot.host).spec.trusted && ScoredElsewhere(*run, slot.host);
      if (!distrust && !OthersWantToScore(run->view.user, slot.host)) continue;
      slot.cause = fmt::format("its job has taken {} s, and others {}", took / 1'000'000,
                               distrust ? "could have done it" : "wait");
      Push(order::TakeJobsBack{slot.id, slot.job_of, distrust});
    }
    slot.job_of = 0;
    slot.excused = true;
    Push(order::Kill{slot.id, slot.cause});
  }
}

}  // namespace evald
