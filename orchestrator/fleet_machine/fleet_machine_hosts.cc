// Hosts: which are there, and their slots and processes.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/device_name.h"
#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

// So long do runs wait for the GPU of another host that says that it is not free
constexpr int64_t kClaimMicros = 120'000'000;

ProcessEnd LostWithAgent() { return {.how = "lost with its agent", .with_agent = true}; }

void InsertSorted(size_t index, std::vector<size_t>* sorted) {
  sorted->insert(std::upper_bound(sorted->begin(), sorted->end(), index), index);
}

std::string DeviceName(const WorkerSlot& slot) { return slot.host + "/" + slot.device; }

}  // namespace

bool FleetMachine::Serves(const std::string& host) const { return hosts_.at(host).serves(); }

bool FleetMachine::Usable(const WorkerSlot& slot) const {
  const Host* host = homes_[static_cast<size_t>(&slot - workers_.data())];
  return slot.state() != WorkerState::kAbsent && slot.state() != WorkerState::kSetAside &&
         !slot.device.empty() && host->serves();
}

// Whether runs wait for its GPU rather than begin on a processor.
bool FleetMachine::OffersGpu(const WorkerSlot& slot) const {
  return slot.gpu && Usable(slot) && !slot.doubtful;
}

// Another host's agent may claim a GPU that is never free. Runs then begin on other devices. Once
// the GPU's worker has an engine, it counts again.
void FleetMachine::DoubtClaims(int64_t now) {
  bool any = false;
  for (auto claim = claims_.begin(); claim != claims_.end();) {
    WorkerSlot& slot = workers_[*claim];
    const bool lasts = now - slot.claimed_us >= kClaimMicros;
    slot.doubtful = slot.doubtful || lasts;
    any = any || lasts;
    claim = lasts ? claims_.erase(claim) : std::next(claim);
  }
  if (any) Recount();
}

std::optional<std::string> FleetMachine::set_aside(const WorkerSlot& slot) const {
  return devices_.aside(DeviceName(slot));
}

// Counts devices anew. To be called after every change by which a device comes or goes.
void FleetMachine::Recount() {
  for (auto& [name, host] : hosts_) CountDevices(&host);
  TellDevices();
}

// The same if nothing but this host has changed.
void FleetMachine::Recount(Host* host) {
  CountDevices(host);
  TellDevices();
}

void FleetMachine::CountDevices(Host* host) {
  device_count_ -= host->devices;
  offered_gpus_ -= host->offered_gpus;
  host->devices = host->offered_gpus = 0;
  for (const size_t i : host->workers) {
    const WorkerSlot& slot = workers_[i];
    const bool counts = !slot.device.empty() && slot.state() != WorkerState::kSetAside &&
                        host->here && !host->ending;
    host->devices += counts ? 1 : 0;
    host->offered_gpus += OffersGpu(slot) ? 1 : 0;
    Update(i);
  }
  for (const size_t i : host->metric_processes) UpdateMetricProcess(i);
  device_count_ += host->devices;
  offered_gpus_ += host->offered_gpus;
}

void FleetMachine::TellDevices() {
  ++revision_;
  if (device_count_ != std::exchange(devices_told_, device_count_))
    Push(order::TellDevices{device_count_});
  if (!runs_.empty()) WakeWorkers();
}

WorkerSlot& FleetMachine::SlotFor(const HostSpec& spec, size_t number) {
  const std::string id = fmt::format("{}w{}", spec.prefix, number);
  const size_t next = unused_workers_.empty() ? workers_.size() : unused_workers_.back();
  const auto [place, fresh] = places_.try_emplace(id, Place{false, next});
  if (fresh) {
    if (next == workers_.size()) {
      workers_.emplace_back();
      homes_.emplace_back();
    }
    homes_[next] = &hosts_.at(spec.name);
    if (!unused_workers_.empty()) unused_workers_.pop_back();
    workers_[next].id = id;
    workers_[next].host = spec.name;
    InsertSorted(next, &hosts_.at(spec.name).workers);
  }
  return workers_[place->second.index];
}

MetricProcessSlot& FleetMachine::MetricProcessFor(const HostSpec& spec, size_t number) {
  const std::string id = fmt::format("{}m{}", spec.prefix, number);
  const size_t next =
      unused_metric_processes_.empty() ? metric_processes_.size() : unused_metric_processes_.back();
  const auto [place, fresh] = places_.try_emplace(id, Place{true, next});
  if (fresh) {
    if (next == metric_processes_.size()) metric_processes_.emplace_back();
    if (!unused_metric_processes_.empty()) unused_metric_processes_.pop_back();
    metric_processes_[next].id = id;
    metric_processes_[next].host = spec.name;
    InsertSorted(next, &hosts_.at(spec.name).metric_processes);
  }
  return metric_processes_[place->second.index];
}

// The host is away until HostReady lists its processes.
void FleetMachine::HostAdded(const HostSpec& spec, int64_t now) {
  Host& host = hosts_[spec.name];
  Host fresh;
  fresh.spec = spec;
  fresh.added_us = now;
  fresh.workers = std::move(host.workers);
  fresh.metric_processes = std::move(host.metric_processes);
  fresh.devices = host.devices;
  fresh.offered_gpus = host.offered_gpus;
  host = std::move(fresh);
  for (const size_t i : host.workers) workers_[i].device.clear();
  for (size_t i = 0; i < spec.devices.size(); ++i) {
    WorkerSlot& slot = SlotFor(spec, i);
    slot.device = spec.devices[i];
    slot.gpu = IsGpu(slot.device);
    devices_.Forget(DeviceName(slot));
    if (slot.state() == WorkerState::kSetAside) Move(PlaceOf(slot.id).index, WorkerEvent::kHosted);
  }
  for (int i = 0; i < spec.metric_processes; ++i) MetricProcessFor(spec, static_cast<size_t>(i));
  // A device that the host no longer has, without a process
  for (const size_t i : host.workers) {
    const WorkerSlot& slot = workers_[i];
    if (slot.device.empty() && !slot.has_process() && slot.state() != WorkerState::kAbsent)
      Move(i, WorkerEvent::kRetire);
  }
  Recount(&host);
  Serve(now);
}

// Processes of the agent's earlier life are gone. A process whose device the host no longer has is
// killed.
void FleetMachine::Missing(Host* host, const std::set<std::string>& there, int64_t now) {
  for (const size_t i : host->workers) {
    WorkerSlot& slot = workers_[i];
    if (slot.device.empty() && there.count(slot.id) > 0)
      Push(order::Kill{slot.id, "its host no longer has its device"});
    if (slot.has_process() && (slot.device.empty() || there.count(slot.id) == 0)) {
      WorkerEnded(i, LostWithAgent(), false, now);
    }
    if (!slot.device.empty() && slot.state() == WorkerState::kAbsent) Move(i, WorkerEvent::kHosted);
  }
  for (const size_t i : host->metric_processes) {
    MetricProcessSlot& slot = metric_processes_[i];
    if (slot.has_process() && there.count(slot.id) == 0)
      MetricProcessEnded(i, LostWithAgent(), now);
    if (slot.state == MetricProcessState::kAbsent) MoveMetricProcess(i, MetricProcessState::kIdle);
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
    } else if (place->second.metric_process) {
      AdoptMetricProcess(place->second.index, process, now);
    } else if (!workers_[place->second.index].device.empty()) {
      Adopt(place->second.index, process, now);
    }
  }
  for (const size_t i : host.workers) workers_[i].spent.clear();  // another chance
  Resume(name, now);
}

void FleetMachine::Adopt(size_t index, const AdoptedProcess& process, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (slot.has_process()) {
    Push(order::TellWorkerLost{slot.id,
                               "worker " + slot.id + ": replaced by another process of its host"});
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

void FleetMachine::AdoptMetricProcess(size_t index, const AdoptedProcess& process, int64_t now) {
  MetricProcessSlot& slot = metric_processes_[index];
  if (slot.has_process()) {
    Push(order::TellMetricProcessLost{
        slot.id, "metric process " + slot.id + ": replaced by another process of its host"});
  }
  MoveMetricProcess(index,
                    process.ready ? MetricProcessState::kReady : MetricProcessState::kStarting,
                    process.ready ? 0 : now + 60'000'000);
  slot.wants = process.wants;
  slot.asked = 0;
  scoring_.End(slot.id, now);
  UpdateMetricProcess(index);
}

void FleetMachine::HostIs(const std::string& name, HostNews news, int64_t now) {
  Host& host = hosts_.at(name);
  if (news == HostNews::kBack) {
    host.here = true;
    for (const size_t i : host.workers) workers_[i].spent.clear();
  } else if (news == HostNews::kLeaving) {
    host.leaving = true;
  } else {
    host.here = false;
    host.left = host.left || news == HostNews::kLeft;
  }
  if (news == HostNews::kLeft) Retire(name, now);
  for (const size_t i : host.workers) {
    if (news != HostNews::kLeft) Push(order::ShowChange{workers_[i].id});
  }
  Resume(name, now);
}

// The slots of a forgotten host become absent, so that nothing looks the host up.
bool FleetMachine::HostForgotten(const std::string& name, int64_t now) {
  const auto host = hosts_.find(name);
  if (host == hosts_.end() || host->second.here) return false;
  const std::vector<size_t>&workers = host->second.workers,
        &metric_processes = host->second.metric_processes;
  if (std::any_of(workers.begin(), workers.end(),
                  [this](size_t i) { return !workers_[i].held.empty(); }))
    return false;
  if (!host->second.left) HostIs(name, HostNews::kLeft, now);
  for (const size_t i : workers) {
    for (auto& [number, run] : runs_) {
      run.nothing_for.erase(i);
      run.ended_loads.erase(i);
    }
    devices_.Forget(DeviceName(workers_[i]));
    places_.erase(workers_[i].id);
    claims_.erase(i);
    workers_[i] = WorkerSlot();
    unused_workers_.push_back(i);
  }
  for (const size_t i : metric_processes) {
    for (auto& [number, run] : runs_) run.no_job_for.erase(i);
    places_.erase(metric_processes_[i].id);
    metric_processes_[i] = MetricProcessSlot();
    unused_metric_processes_.push_back(i);
  }
  for (auto& [number, run] : runs_) run.view.doubted.erase(name);
  device_count_ -= host->second.devices;
  offered_gpus_ -= host->second.offered_gpus;
  hosts_.erase(host);
  Recount();
  Serve(now);
  return true;
}

// Ends the slots of a host that left: its processes are neither waited for nor started again.
void FleetMachine::Retire(const std::string& name, int64_t now) {
  Host& host = hosts_.at(name);
  host.staged.clear();
  for (const size_t i : host.workers) {
    WorkerSlot& slot = workers_[i];
    if (slot.state() == WorkerState::kAbsent) continue;
    TakeTrialsBack(slot);
    Push(order::TellWorkerLost{slot.id, slot.id + ": its host has left", Suspect::kHost});
    Move(i, WorkerEvent::kRetire);
    slot.restarts = 0;
  }
  for (const size_t i : host.metric_processes) {
    MetricProcessSlot& slot = metric_processes_[i];
    if (slot.state == MetricProcessState::kAbsent) continue;
    TakeAllJobsBack(slot);
    Push(order::TellMetricProcessLost{slot.id, slot.id + ": its host has left", Suspect::kHost});
    MoveMetricProcess(i, MetricProcessState::kAbsent);
    scoring_.End(slot.id, now);
    slot.restarts = 0;
  }
}

// To be called after every change by which a host comes or goes. Pauses that ended while the host
// was away end now. Processes that could not be heard get their full patience again.
void FleetMachine::Resume(const std::string& name, int64_t now) {
  Host& host = hosts_.at(name);
  Recount(&host);
  if (Serves(name) && !closed_) {
    for (const size_t i : host.workers) {
      WorkerSlot& slot = workers_[i];
      slot.load_moved_us = now;
      WatchLoad(i);
      if (slot.state() == WorkerState::kPausing && slot.due_us == 0) SetDue(i, now);
      if (slot.state() == WorkerState::kStarting || slot.state() == WorkerState::kWaiting)
        SetDue(i, now + 60'000'000);
    }
    for (const size_t i : host.metric_processes) {
      const MetricProcessSlot& slot = metric_processes_[i];
      if (slot.state == MetricProcessState::kPausing && slot.due_us == 0)
        MoveMetricProcess(i, slot.state, now);
      if (slot.state == MetricProcessState::kStarting)
        MoveMetricProcess(i, slot.state, now + 60'000'000);
    }
    StartMissing(name, now);
  }
  Serve(now);
}

}  // namespace evald
