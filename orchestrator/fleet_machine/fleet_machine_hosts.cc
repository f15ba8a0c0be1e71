// Hosts: which are there, with which slots and processes.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/devices/programs.h"
#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

std::string DeviceName(const WorkerSlot& slot) { return slot.host + "/" + slot.device; }

}  // namespace

// Given nothing while it leaves, or cannot be reached.
bool FleetMachine::Serves(const std::string& host) const {
  const Host& entry = hosts_.at(host);
  return entry.here && !entry.leaving;
}

bool FleetMachine::Usable(const WorkerSlot& slot) const {
  return slot.state() != WorkerState::kAbsent && slot.state() != WorkerState::kSetAside &&
         !slot.device.empty() && Serves(slot.host);
}

int FleetMachine::device_count() const {
  return static_cast<int>(
      std::count_if(workers_.begin(), workers_.end(), [this](const WorkerSlot& slot) {
        return !slot.device.empty() && slot.state() != WorkerState::kSetAside &&
               hosts_.at(slot.host).here;
      }));
}

std::optional<std::string> FleetMachine::set_aside(const WorkerSlot& slot) const {
  return devices_.aside(DeviceName(slot));
}

// After anything by which a device comes or goes.
void FleetMachine::Recount() {
  ++revision_;
  usable_gpus_ =
      static_cast<int>(std::count_if(workers_.begin(), workers_.end(),
                                     [this](const WorkerSlot& s) { return s.gpu && Usable(s); }));
  const int count = device_count();
  if (count != std::exchange(devices_told_, count)) Push(order::TellDevices{count});
  for (size_t i = 0; i < workers_.size(); ++i) Update(i);
  for (size_t i = 0; i < scorers_.size(); ++i) UpdateScorer(i);
  WakeWorkers();
}

WorkerSlot& FleetMachine::SlotFor(const HostSpec& spec, size_t number) {
  const std::string id = fmt::format("{}w{}", spec.prefix, number);
  const size_t next = unused_workers_.empty() ? workers_.size() : unused_workers_.back();
  const auto [place, fresh] = places_.try_emplace(id, Place{false, next});
  if (fresh) {
    if (next == workers_.size()) workers_.emplace_back();
    if (!unused_workers_.empty()) unused_workers_.pop_back();
    workers_[next].id = id;
    workers_[next].host = spec.name;
  }
  return workers_[place->second.index];
}

ScorerSlot& FleetMachine::ScorerFor(const HostSpec& spec, size_t number) {
  const std::string id = fmt::format("{}m{}", spec.prefix, number);
  const size_t next = unused_scorers_.empty() ? scorers_.size() : unused_scorers_.back();
  const auto [place, fresh] = places_.try_emplace(id, Place{true, next});
  if (fresh) {
    if (next == scorers_.size()) scorers_.emplace_back();
    if (!unused_scorers_.empty()) unused_scorers_.pop_back();
    scorers_[next].id = id;
    scorers_[next].host = spec.name;
  }
  return scorers_[place->second.index];
}

// The host is away until HostReady, which says what runs there.
void FleetMachine::HostAdded(const HostSpec& spec, int64_t now) {
  Host& host = hosts_[spec.name];
  host = {};
  host.spec = spec;
  for (WorkerSlot& slot : workers_) {
    if (slot.host == spec.name) slot.device.clear();
  }
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    WorkerSlot& slot = SlotFor(spec, i);
    slot.device = spec.devices[i];
    slot.gpu = IsGpu(slot.device);
    devices_.Forget(DeviceName(slot));
    if (slot.state() == WorkerState::kSetAside) Move(PlaceOf(slot.id).index, WorkerEvent::kHosted);
  }
  for (int i = 0; i < spec.metric_processes; ++i) ScorerFor(spec, static_cast<size_t>(i));
  for (size_t i = 0; i < workers_.size();
       ++i) {  // a device that the host has no more, without a process
    const WorkerSlot& slot = workers_[i];
    if (slot.host == spec.name && slot.device.empty() && !slot.has_process() &&
        slot.state() != WorkerState::kAbsent) {
      Move(i, WorkerEvent::kRetire);
    }
  }
  Recount();
  Serve(now);
}

// Processes of an earlier life of its agent are gone. The process of a device that the host has no
// more goes.
void FleetMachine::Missing(Host* host, const std::set<std::string>& there, int64_t now) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    WorkerSlot& slot = workers_[i];
    if (slot.host != host->spec.name) continue;
    if (slot.device.empty() && there.count(slot.id) > 0)
      Push(order::Kill{slot.id, "its host has its device no more"});
    if (slot.has_process() && (slot.device.empty() || there.count(slot.id) == 0)) {
      WorkerEnded(i, {"lost with its agent"}, false, now);
    }
    if (!slot.device.empty() && slot.state() == WorkerState::kAbsent) Move(i, WorkerEvent::kHosted);
  }
  for (size_t i = 0; i < scorers_.size(); ++i) {
    ScorerSlot& slot = scorers_[i];
    if (slot.host != host->spec.name) continue;
    if (slot.has_process() && there.count(slot.id) == 0)
      ScorerEnded(i, {"lost with its agent"}, now);
    if (slot.state == ScorerState::kAbsent) MoveScorer(i, ScorerState::kIdle);
  }
}

void FleetMachine::HostReady(const std::string& name, const std::vector<AdoptedProcess>& processes,
                             const std::vector<std::string>& staged, int64_t now) {
  Host& host = hosts_.at(name);
  host.staged = {staged.begin(), staged.end()};
  host.here = true;
  host.leaving = host.left = false;
  std::set<std::string> there;
  for (const AdoptedProcess& process : processes) there.insert(process.id);
  Missing(&host, there, now);
  for (const AdoptedProcess& process : processes) {
    const auto place = places_.find(process.id);
    if (place == places_.end()) {
      Push(order::Kill{process.id, "its host has no slot for it"});
    } else if (place->second.scorer) {
      AdoptScorer(place->second.index, process, now);
    } else if (!workers_[place->second.index].device.empty()) {
      Adopt(place->second.index, process, now);
    }
  }
  for (WorkerSlot& slot : workers_) {
    if (slot.host == name) slot.spent.clear();  // another chance
  }
  Resume(name, now);
}

void FleetMachine::Adopt(size_t index, const AdoptedProcess& process, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (slot.has_process()) {
    Push(order::TellWorkerLost{
        slot.id, "worker " + slot.id + ": replaced by another process of its host", false});
    Move(index, WorkerEvent::kEnd);
  }
  if (!Move(index, WorkerEvent::kStart))
    return Push(order::Kill{slot.id, "nothing is to run on its device"});
  slot.profile = process.profile;
  slot.on_gpu = process.on_gpu;
  SetDue(index, now + 60'000'000);
  if (!process.ready) return;
  Move(index, WorkerEvent::kHello);
  slot.follows = process.follows;
  if (!process.loading) return Update(index);
  Move(index, WorkerEvent::kLoad);
  slot.loading = process.loading;
  slot.load_moved_us = now;
  WatchLoad(index);
  if (!process.loaded) return;
  Move(index, WorkerEvent::kLoaded);
  slot.engine = process.loaded;
  slot.wants = process.wants;
  NoteStaged(slot, *slot.loading, now);
  Update(index);
}

void FleetMachine::AdoptScorer(size_t index, const AdoptedProcess& process, int64_t now) {
  ScorerSlot& slot = scorers_[index];
  if (slot.has_process()) {
    Push(order::TellScorerLost{
        slot.id, "metric process " + slot.id + ": replaced by another process of its host"});
  }
  MoveScorer(index, process.ready ? ScorerState::kReady : ScorerState::kStarting,
             process.ready ? 0 : now + 60'000'000);
  slot.wants = process.wants;
  slot.asked = 0;
  scoring_.End(slot.id, now);
  UpdateScorer(index);
}

void FleetMachine::HostIs(const std::string& name, HostNews news, int64_t now) {
  Host& host = hosts_.at(name);
  if (news == HostNews::kBack) {
    host.here = true;
    for (WorkerSlot& slot : workers_) {
      if (slot.host == name) slot.spent.clear();
    }
  } else if (news == HostNews::kLeaving) {
    host.leaving = true;
  } else {
    host.here = false;
    host.left = host.left || news == HostNews::kLeft;
  }
  if (news == HostNews::kLeft) Retire(name, now);
  for (const WorkerSlot& slot : workers_) {
    if (slot.host == name && news != HostNews::kLeft) Push(order::ShowChange{slot.id});
  }
  Resume(name, now);
}

// A slot of nobody is absent: nothing looks at its host.
bool FleetMachine::HostForgotten(const std::string& name, int64_t now) {
  const auto host = hosts_.find(name);
  if (host == hosts_.end() || host->second.here) return false;
  const auto holds = [&](const WorkerSlot& slot) {
    return slot.host == name && !slot.held.empty();
  };
  if (std::any_of(workers_.begin(), workers_.end(), holds)) return false;
  if (!host->second.left) HostIs(name, HostNews::kLeft, now);
  for (size_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].host != name) continue;
    for (auto& [number, run] : runs_) {
      run.nothing_for.erase(i);
      run.ended_loads.erase(i);
    }
    devices_.Forget(DeviceName(workers_[i]));
    places_.erase(workers_[i].id);
    workers_[i] = WorkerSlot();
    unused_workers_.push_back(i);
  }
  for (size_t i = 0; i < scorers_.size(); ++i) {
    if (scorers_[i].host != name) continue;
    for (auto& [number, run] : runs_) run.no_job_for.erase(i);
    places_.erase(scorers_[i].id);
    scorers_[i] = ScorerSlot();
    unused_scorers_.push_back(i);
  }
  for (auto& [number, run] : runs_) run.view.doubted.erase(name);
  hosts_.erase(host);
  Recount();
  Serve(now);
  return true;
}

// Nobody has to wait for the processes of a host that left, or to start them anew.
void FleetMachine::Retire(const std::string& name, int64_t now) {
  hosts_.at(name).staged.clear();
  for (size_t i = 0; i < workers_.size(); ++i) {
    WorkerSlot& slot = workers_[i];
    if (slot.host != name || slot.state() == WorkerState::kAbsent) continue;
    Push(order::TellWorkerLost{slot.id, slot.id + ": its host has left", false});
    Move(i, WorkerEvent::kRetire);
    slot.restarts = 0;
  }
  for (size_t i = 0; i < scorers_.size(); ++i) {
    ScorerSlot& slot = scorers_[i];
    if (slot.host != name || slot.state == ScorerState::kAbsent) continue;
    Push(order::TellScorerLost{slot.id, slot.id + ": its host has left"});
    MoveScorer(i, ScorerState::kAbsent);
    scoring_.End(slot.id, now);
    slot.restarts = 0;
  }
}

// After anything by which a host comes or goes. Pauses that ended while it was away end now, and
// patience begins anew with processes that could not be heard.
void FleetMachine::Resume(const std::string& name, int64_t now) {
  Recount();
  if (Serves(name) && !closed_) {
    for (size_t i = 0; i < workers_.size(); ++i) {
      WorkerSlot& slot = workers_[i];
      if (slot.host != name) continue;
      slot.load_moved_us = now;
      WatchLoad(i);
      if (slot.state() == WorkerState::kPausing && slot.due_us == 0) SetDue(i, now);
      if (slot.state() == WorkerState::kStarting || slot.state() == WorkerState::kWaiting)
        SetDue(i, now + 60'000'000);
    }
    for (size_t i = 0; i < scorers_.size(); ++i) {
      const ScorerSlot& slot = scorers_[i];
      if (slot.host != name) continue;
      if (slot.state == ScorerState::kPausing && slot.due_us == 0) MoveScorer(i, slot.state, now);
      if (slot.state == ScorerState::kStarting) MoveScorer(i, slot.state, now + 60'000'000);
    }
    StartMissing(name, now);
  }
  Serve(now);
}

}  // namespace evald
