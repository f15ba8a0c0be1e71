// Messages of processes, and the states that follow from them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "evald/error.h"
#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

constexpr int64_t kAskAgainMicros = 2'000'000;  // of a worker that is idle and asks for nothing
constexpr int kWantsMax = 4096;                 // of one process: it cannot use more at once

}  // namespace

// ---- slots

// Every change of a worker's state goes through here.
bool FleetMachine::Move(size_t index, WorkerEvent event) {
  WorkerSlot& slot = workers_[index];
  const WorkerState before = slot.state();
  SetDue(index, 0);
  if (!slot.Apply(event)) {
    Ignore(slot.id, Name(event), Name(before));
    return false;
  }
  ++revision_;
  declined_.Erase(index);
  Push(order::ShowChange{slot.id});
  Update(index);
  return true;
}

void FleetMachine::SetDue(size_t index, int64_t at) {
  WorkerSlot& slot = workers_[index];
  if (slot.due_us != 0) due_.erase({slot.due_us, false, index});
  slot.due_us = at;
  if (at != 0) due_.insert({at, false, index});
}

// To be called after every change by which a worker becomes free or busy. A worker that is free is
// served at once.
void FleetMachine::Update(size_t index) {
  WorkerSlot& slot = workers_[index];
  const WorkerState state = slot.state();
  if (!slot.quiet()) slot.quiet_us = 0;
  const bool open = state == WorkerState::kReady
                        ? slot.wants > 0
                        : state == WorkerState::kEmpty || state == WorkerState::kFollowing ||
                              state == WorkerState::kIdle || state == WorkerState::kGivenUp;
  if (open && slot.asked == 0 && Usable(slot)) {
    free_.Insert(index);
    ready_.Insert(index);
  } else {
    free_.Erase(index);
    ready_.Erase(index);
    declined_.Erase(index);
  }
}

void FleetMachine::MoveMetricProcess(size_t index, MetricProcessState state, int64_t due) {
  MetricProcessSlot& slot = metric_processes_[index];
  ++revision_;
  slot.state = state;
  if (!slot.has_process()) {
    slot.wants = 0;
    slot.asked = 0;
    slot.asked_own = false;
    slot.cause.clear();
  }
  if (slot.due_us != 0) due_.erase({slot.due_us, true, index});
  slot.due_us = due;
  if (due != 0) due_.insert({due, true, index});
  UpdateMetricProcess(index);
}

void FleetMachine::UpdateMetricProcess(size_t index) {
  const MetricProcessSlot& slot = metric_processes_[index];
  if (slot.state == MetricProcessState::kReady && slot.wants > 0 && slot.asked == 0 &&
      Serves(slot.host)) {
    free_metric_processes_.Insert(index);
    ready_metric_processes_.Insert(index);
  } else {
    free_metric_processes_.Erase(index);
    ready_metric_processes_.Erase(index);
  }
}

// ---- messages of processes

void FleetMachine::Heard(const std::string& id, const ProcessNews& news, int64_t now) {
  const auto place = places_.find(id);
  if (place == places_.end()) return Ignore(id, "a message", "unknown");
  if (place->second.metric_process) {
    OnMetricProcessNews(place->second.index, news, now);
  } else {
    OnWorkerNews(place->second.index, news, now);
  }
  Serve(now);
}

void FleetMachine::Heard(size_t worker, const ProcessNews& news, int64_t now) {
  OnWorkerNews(worker, news, now);
  Serve(now);
}

void FleetMachine::OnWorkerNews(size_t index, const ProcessNews& news, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (!slot.has_process()) return Ignore(slot.id, "a message", Name(slot.state()));
  if (const auto* hello = std::get_if<news::Hello>(&news)) {
    OnHello(index, *hello, now);
  } else if (const auto* waits = std::get_if<news::Waits>(&news)) {
    OnWaits(index, *waits, now);
  } else if (const auto* loaded = std::get_if<news::Loaded>(&news)) {
    OnLoaded(index, *loaded, now);
  } else if (const auto* pulled = std::get_if<news::Pulled>(&news)) {
    OnPulled(index, *pulled, now);
  } else if (const auto* want = std::get_if<news::Want>(&news)) {
    // Wants before the answer to a Load are void: the worker asks again after it.
    if (slot.state() != WorkerState::kReady) return Ignore(slot.id, "want", Name(slot.state()));
    slot.wants += std::clamp(want->count, 0, kWantsMax - slot.wants);
    Update(index);
  } else if (const auto* idle = std::get_if<news::Idle>(&news)) {
    WatchUnheardLoad(index, *idle, now);
    OnIdle(index, now);
  } else if (std::holds_alternative<news::Progressed>(news)) {
    slot.restarts = 0;
    slot.moved_us = now;
  } else if (std::holds_alternative<news::Moved>(news)) {
    slot.moved_us = now;
  } else if (const auto* over = std::get_if<news::TrialOver>(&news)) {
    slot.moved_us = now;
    OnTrialOver(index, *over);
  } else if (const auto* failed = std::get_if<news::Failed>(&news)) {
    OnFailed(index, *failed, now);
  }
}

void FleetMachine::OnMetricProcessNews(size_t index, const ProcessNews& news, int64_t now) {
  MetricProcessSlot& slot = metric_processes_[index];
  if (std::holds_alternative<news::Hello>(news) && slot.state == MetricProcessState::kStarting) {
    MoveMetricProcess(index, MetricProcessState::kReady);
  } else if (const auto* want = std::get_if<news::Want>(&news);
             want != nullptr && slot.state == MetricProcessState::kReady) {
    slot.wants += std::clamp(want->count, 0, kWantsMax - slot.wants);
    scoring_.End(slot.id, now);
    slot.job_of = 0;
    UpdateMetricProcess(index);
  } else if (std::holds_alternative<news::Progressed>(news) && slot.has_process()) {
    slot.restarts = 0;
  } else {
    Ignore(slot.id, "a message", Name(slot.state));
  }
}

void FleetMachine::OnHello(size_t index, const news::Hello& hello, int64_t now) {
  WorkerSlot& slot = workers_[index];
  const bool waited = slot.state() == WorkerState::kWaiting;
  if (!Move(index, WorkerEvent::kHello)) return;
  for (auto& [number, run] : runs_) {
    if (run.view.profile == slot.profile && slot.started_us != 0 && !waited)
      run.start_s = static_cast<double>(now - slot.started_us) / 1e6;
  }
  slot.follows = hello.follows;
  slot.claimed_us = 0;
  claims_.erase(index);
  if (std::exchange(slot.doubtful, false)) Recount();
  Update(index);
}

// Another process computes on the worker's GPU. That is no fault of the device; other workers do
// the work meanwhile.
void FleetMachine::OnWaits(size_t index, const news::Waits& waits, int64_t now) {
  WorkerSlot& slot = workers_[index];
  const std::string before = slot.waits;
  if (slot.state() == WorkerState::kWaiting && before == waits.who)
    return SetDue(index, now + kHelloMicros);
  if (!Move(index, WorkerEvent::kWait)) return;
  slot.waits = waits.who;
  SetDue(index, now + kHelloMicros);
  if (hosts_.at(slot.host).spec.trusted || slot.claimed_us != 0) return;
  slot.claimed_us = now;
  claims_.insert(index);
}

void FleetMachine::OnTrialOver(size_t index, const news::TrialOver& over) {
  WorkerSlot& slot = workers_[index];
  const Run* run = Find(over.held.run);
  if (run == nullptr) return Ignore(slot.id, "the end of a trial", "of a run that is over");
  if (over.counts && std::isfinite(over.device_s))
    use_[run->view.user] += std::max(0.0, over.device_s);
  if (over.done && !devices_.clean()) devices_.Finished(slot.host + "/" + slot.device);
  if (slot.held.erase(over.held)) ++revision_;
  Update(index);
}

void FleetMachine::OnFailed(size_t index, const news::Failed& failed, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (failed.retry) {
    slot.excused = !failed.device;
    slot.cause = failed.message;
    return Push(order::Kill{slot.id, failed.message});
  }
  if (slot.state() == WorkerState::kStarting || slot.state() == WorkerState::kWaiting) {
    return Refuse(&slot, failed.message, false);
  }
  Run* run = Find(slot.run);
  if (!Move(index, WorkerEvent::kRefuse) || run == nullptr || run->view.ending) return;
  Host& host = hosts_.at(slot.host);
  if (failed.lasting && host.unfit.emplace(slot.run, failed.message).second) {
    ++run->unfit_hosts;
    run->unfit_us = now;
  }
  Distrust(run, slot);
  Push(order::TellRefused{slot.run, slot.id, failed.message, false, failed.lasting});
}

// An idle worker may steal from others. A load may be worth it if others have too much by now. A
// worker that is idle for long and has asked for nothing counts as asking: its Want may have come
// before its Loaded, and was void.
void FleetMachine::OnIdle(size_t index, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (slot.quiet()) {
    if (slot.quiet_us == 0) slot.quiet_us = now;
    if (now - slot.quiet_us < kAskAgainMicros) return;
    slot.wants = 1;
    return Update(index);
  }
  if (!free_.has(index)) return;
  if (slot.state() == WorkerState::kReady) {
    AskToSteal(index, INT64_MIN);
  } else {
    ready_.Insert(index);
  }
}

// ---- silence

void FleetMachine::Hung(const std::string& id, const std::string& why, int64_t now) {
  const auto place = places_.find(id);
  if (place == places_.end()) return Ignore(id, "silence", "unknown");
  const auto [metric_process, index] = place->second;
  const bool runs =
      metric_process ? metric_processes_[index].has_process() : workers_[index].has_process();
  if (!runs)
    return Ignore(
        id, "silence",
        metric_process ? Name(metric_processes_[index].state) : Name(workers_[index].state()));
  if (hosts_.at(metric_process ? metric_processes_[index].host : workers_[index].host).here)
    return KillHung(id, why);
  if (metric_process) {
    TakeAllJobsBack(metric_processes_[index]);
    Push(order::TellMetricProcessLost{id, id + ": its host has been away for too long",
                                      Suspect::kHost});
  } else {
    Abandon(index);
  }
  Serve(now);
}

void FleetMachine::KillHung(const std::string& id, const std::string& why) {
  const Place place = places_.at(id);
  (place.metric_process ? metric_processes_[place.index].cause : workers_[place.index].cause) = why;
  Push(order::Kill{id, why});
}

// The worker's host has been away for too long: its trials go to others. Slices that it committed
// are here. Half-written files stay on the host's disk, and count if the worker comes back and gets
// work of that run again. When the host is back, the worker's leases are revoked; its reports are
// refused by their attempt.
void FleetMachine::Abandon(size_t index) {
  WorkerSlot& slot = workers_[index];
  ++revision_;
  TakeTrialsBack(slot);
  for (const HeldTrial& held : std::exchange(slot.held, {})) Push(order::Revoke{slot.id, held});
  Push(order::TellWorkerLost{slot.id, slot.id + ": its host has been away for too long",
                             Suspect::kHost});
}

// A pause has ended, or the patience with a process.
void FleetMachine::OnDue(Place place, int64_t now) {
  if (!place.metric_process && workers_[place.index].state() == WorkerState::kLoading)
    return OnLoadDue(place.index, now);
  const std::string id =
      place.metric_process ? metric_processes_[place.index].id : workers_[place.index].id;
  const std::string& host =
      place.metric_process ? metric_processes_[place.index].host : workers_[place.index].host;
  const bool pausing = place.metric_process
                           ? metric_processes_[place.index].state == MetricProcessState::kPausing
                           : workers_[place.index].state() == WorkerState::kPausing;
  const bool stopping =
      !place.metric_process && workers_[place.index].state() == WorkerState::kStopping;
  if (!pausing) {
    if (stopping || hosts_.at(host).here) {
      const char* why =
          stopping ? "it was told to stop and has not" : "it was started and has not said hello";
      if (stopping) {
        Push(order::Kill{id, why});
      } else {
        KillHung(id, why);
      }
    }
    if (place.metric_process)
      return MoveMetricProcess(place.index, metric_processes_[place.index].state,
                               now + kHelloMicros);
    return SetDue(place.index, now + kHelloMicros);
  }
  const bool starts = Serves(host);  // otherwise it waits for Resume
  if (place.metric_process) {
    MoveMetricProcess(place.index,
                      starts ? MetricProcessState::kStarting : MetricProcessState::kPausing,
                      starts ? now + kHelloMicros : 0);
    if (starts) Push(order::StartMetricProcess{id});
  } else if (!starts) {
    SetDue(place.index, 0);
  } else {
    const WorkerSlot& slot = workers_[place.index];
    StartAs(place.index, {slot.profile, slot.run, slot.on_gpu}, now);
  }
}

}  // namespace evald
