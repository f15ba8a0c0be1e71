// The hosts of a fleet: which are there, and which process is whose.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "orchestrator/devices/programs.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace {

constexpr int64_t kWaitingMicros = 2'000'000;  // a run without a worker for so long says what it waits for
constexpr size_t kNamesMax = 8;                // of devices that are named

}  // namespace

void Fleet::HostRouter::Start(const ProcessSpec& spec) {
  const auto& [host, id] = fleet_->places_.at(spec.id);
  ProcessSpec there = spec;
  there.id = id;
  fleet_->hosts_.at(host).host->Start(there);
}

void Fleet::HostRouter::Send(const std::string& id, const protocol::Message& message) {
  const auto& [host, there] = fleet_->places_.at(id);
  fleet_->hosts_.at(host).host->Send(there, message);
}

void Fleet::HostRouter::Kill(const std::string& id) {
  const auto& [host, there] = fleet_->places_.at(id);
  fleet_->hosts_.at(host).host->Kill(there);
}

void Fleet::HostRouter::StopAll(std::chrono::milliseconds grace, std::function<void()> done) {
  auto left = std::make_shared<size_t>(fleet_->hosts_.size());
  if (*left == 0) return done();
  for (const auto& [name, entry] : fleet_->hosts_) {
    entry.host->StopAll(grace, [left, done] {
      if (--*left == 0) done();
    });
  }
}

Host::Events Fleet::EventsOf(const std::string& name) {
  return {[this, name](const std::string& id, const protocol::Message& message) {
            const std::string full = FullProcessId(name, id);
            if (places_.count(full) > 0) OnMessage(full, message);
          },
          [this, name](const std::string& id, const ProcessExit& exit) {
            const std::string full = FullProcessId(name, id);
            if (places_.count(full) > 0 && !HostOf(full).left) OnExit(full, exit);
          }};
}

const Fleet::HostEntry& Fleet::HostOf(const std::string& id) const { return hosts_.at(places_.at(id).first); }

bool Fleet::Usable(const std::string& id) const {
  const HostEntry& host = HostOf(id);
  if (!host.here || host.leaving) return false;
  const auto slot = slots_.find(id);
  return slot == slots_.end() || (!slot->second.device.empty() && !Aside(id));
}

std::optional<std::string> Fleet::Aside(const std::string& id) const { return devices_.aside(DeviceOf(slots_.at(id))); }

bool Fleet::HasGpuFor(const Evaluation& run) const {
  return std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) {
    return IsGpu(slot.second.device) && Usable(slot.first) && !TriedInVain(slot.first, run);
  });
}

// Of hosts that have not left. True only where there are devices.
bool Fleet::AllAside() const {
  bool any = false;
  for (const auto& [id, slot] : slots_) {
    if (slot.device.empty() || HostOf(id).left) continue;
    if (!Aside(id)) return false;
    any = true;
  }
  return any;
}

void Fleet::AddHost(Host* host, const HostInfo& info) {
  HostEntry& entry = hosts_[info.name];
  entry = {host, info};
  for (auto& [id, slot] : slots_) {
    if (slot.host == info.name) slot.device.clear();
  }
  for (size_t i = 0; i < info.devices.size(); ++i) {
    const std::string there = fmt::format("w{}", i), id = FullProcessId(info.name, there);
    places_[id] = {info.name, there};
    slots_[id].host = info.name;
    slots_[id].device = info.devices[i];
    devices_.Forget(DeviceOf(slots_[id]));
    workers_.AddSlot(id);
    for (const auto& [number, run] : runs_) ShowRow(run.run.get(), id);
  }
  for (int i = 0; i < info.metric_processes; ++i) {
    const std::string there = fmt::format("m{}", i), id = FullProcessId(info.name, there);
    places_[id] = {info.name, there};
    scorers_.AddSlot(id);
    for (const auto& [number, run] : runs_) ShowRow(run.run.get(), id);
  }
}

void Fleet::ShowRow(Evaluation* run, const std::string& id) const {
  const auto slot = slots_.find(id);
  if (slot == slots_.end()) {
    run->RowAppeared(id, fmt::format("metrics {}", id), false);
  } else {
    run->RowAppeared(id, fmt::format("worker {} ({})", id, slot->second.device), true);
  }
}

void Fleet::AdoptProcess(const std::string& id, const protocol::HeldProcess& process) {
  ProcessPool& pool = workers_.Owns(id) ? workers_ : scorers_;
  if (pool.running(id)) OnExit(id, {0, 0, "replaced by another process of its host"}, false);
  const bool ready = process.pid != 0 && (!workers_.Owns(id) || process.engine.is_object());
  pool.Adopt({id, process.program, process.arguments, process.tag}, ready);
  pool.AddWants(id, process.wants);
  if (!workers_.Owns(id)) {
    isolation_[id] = process.engine;
    return pool.SetReady(id, process.pid != 0);
  }
  Slot& slot = slots_.at(id);
  slot.pid = process.pid;
  slot.computes_on_gpu = process.program == kGpuWorker;
  slot.follows = process.engine.is_object() && process.engine.value("follows", false);
  if (process.loading) slot.loading = process.fingerprint;
  if (process.loaded.is_object()) {
    slot.loaded = protocol::Loaded{process.fingerprint, process.loaded.value("engine", Json()),
                                   process.loaded.value("report", Json())};
    slot.load_sent_us = 0;
    NoteStaged(slot, process.fingerprint);
    pool.SetReady(id, true);
  }
  Changed(id);
}

void Fleet::HostReady(const std::string& name, const std::vector<protocol::HeldProcess>& processes,
                      const std::vector<std::string>& staged) {
  HostEntry& host = hosts_.at(name);
  host.staged.insert(staged.begin(), staged.end());
  host.here = true;
  host.leaving = host.left = false;
  std::set<std::string> there;
  for (const protocol::HeldProcess& process : processes) there.insert(FullProcessId(name, process.id));
  for (ProcessPool* pool : {&workers_, &scorers_}) {
    for (const std::string& id : pool->ids()) {
      if (places_.at(id).first == name && pool->running(id) && there.count(id) == 0) {
        OnExit(id, {0, 0, "lost with its agent"}, false);
      }
    }
  }
  for (const protocol::HeldProcess& process : processes) {
    const std::string id = FullProcessId(name, process.id);
    if (places_.count(id) > 0) {
      AdoptProcess(id, process);
    } else {
      host.host->Kill(process.id);
    }
  }
  TellDevices();
  StartWhatIsMissing(name);
  Serve();
}

void Fleet::TellDevices() {
  for (const auto& [number, entry] : runs_) entry.run->SetDevices(device_count());
}

void Fleet::HostAway(const std::string& name) {
  hosts_.at(name).here = false;
  TellDevices();
  for (const auto& [id, slot] : slots_) {
    if (slot.host == name) Changed(id);
  }
}

void Fleet::HostBack(const std::string& name) {
  hosts_.at(name).here = true;
  TellDevices();
  for (const auto& [id, slot] : slots_) {
    if (slot.host == name) Changed(id);
  }
  StartWhatIsMissing(name);
  Serve();
}

void Fleet::HostLeaving(const std::string& name) { hosts_.at(name).leaving = true; }

// What its processes had, nobody has to wait for or start anew.
void Fleet::HostLeft(const std::string& name) {
  HostEntry& host = hosts_.at(name);
  host.left = true;
  host.here = false;
  host.staged.clear();
  for (ProcessPool* pool : {&workers_, &scorers_}) {
    for (const std::string& id : pool->ids()) {
      if (places_.at(id).first == name) Retire(pool, id);
    }
  }
  TellDevices();
  Serve();
}

void Fleet::Retire(ProcessPool* pool, const std::string& id) {
  pool->Retire(id);
  const std::string why = fmt::format("{}: its host has left", id);
  for (const auto& [number, entry] : runs_) {
    if (pool == &workers_) {
      entry.run->WorkerLost(id, why);
    } else {
      entry.run->ScorerLost(id, why);
    }
  }
  if (pool != &workers_) return;
  Slot& slot = slots_.at(id);
  slot.loading.reset();
  slot.loaded.reset();
  slot.pid = 0;
  slot.waits.clear();
  slot.held.clear();
  Changed(id);
}

bool Fleet::HostHere(const std::string& name) const {
  const auto host = hosts_.find(name);
  return host != hosts_.end() && host->second.here;
}

std::string_view Fleet::HostState(const std::string& name) const {
  const HostEntry& host = hosts_.at(name);
  return host.here ? "connected" : host.left ? "left" : "away";
}

int Fleet::device_count() const {
  return static_cast<int>(std::count_if(slots_.begin(), slots_.end(), [this](const auto& slot) {
    return !slot.second.device.empty() && hosts_.at(slot.second.host).here && !Aside(slot.first);
  }));
}

std::vector<std::string> Fleet::HostNames() const {
  std::vector<std::string> names;
  for (const auto& [name, host] : hosts_) names.push_back(name);
  return names;
}

// The one that is added last of those that go on; null where all end.
Evaluation* Fleet::NewestRun() const {
  for (auto entry = runs_.rbegin(); entry != runs_.rend(); ++entry) {
    if (!entry->second.run->ending()) return entry->second.run.get();
  }
  return nullptr;
}

// Processes that the host has a place for and that somebody could use.
void Fleet::StartWhatIsMissing(const std::string& name) {
  const HostEntry& host = hosts_.at(name);
  if (!host.here || host.leaving || stopping_ || runs_.empty()) return;
  for (const std::string& id : workers_.ids()) {
    if (places_.at(id).first != name || !Usable(id) || !workers_.given_up(id)) continue;
    const Evaluation* run = Choose(id);
    if (run == nullptr) run = NewestRun();
    if (run != nullptr) StartWorker(id, *run);
  }
  StartScorers(name);
}

// Why the device of this worker, which would suit, computes nothing. The same for those of a host that is not there.
std::string Fleet::WhyNot(const std::string& id) const {
  const HostEntry& host = HostOf(id);
  const char* why = host.left      ? ", which has left"
                    : !host.here   ? ", which is away"
                    : host.leaving ? ", which is leaving"
                    : Aside(id)    ? ", where it is set aside"
                                   : ", whose worker could not be kept running";
  return host.info.name + why;
}

// What a run needs that no worker can do which is there, at work or not: the devices that could, and why they do not.
// "" where there is a worker, or where nothing needs one.
std::string Fleet::WaitsFor(const Evaluation& run) const {
  if (!run.needs_workers()) return "";
  std::vector<std::string> missing;
  std::map<std::string, std::vector<std::string>> devices;  // by why not
  for (const auto& [id, slot] : slots_) {
    if (slot.device.empty() || !Suits(id, run)) continue;
    if (HostOf(id).here && !slot.held.empty()) return "";
    if (Usable(id) && !workers_.given_up(id)) {
      if (slot.waits.empty()) return "";
      missing.push_back(fmt::format("{} on host {}", slot.waits, slot.host));
      continue;
    }
    devices[WhyNot(id)].push_back(slot.device);
  }
  for (const auto& [why, names] : devices) {
    const std::string which = names.size() > kNamesMax ? fmt::format("{} devices", names.size()) : Join(names, ", ");
    missing.push_back(fmt::format("{} of host {}", which, why));
  }
  if (missing.size() > kNamesMax) {
    missing[kNamesMax] = fmt::format("and {} more", missing.size() - kNamesMax);
    missing.resize(kNamesMax + 1);
  }
  const std::string kind = run.engine_known() ? fmt::format(" of the kind that it began on ({})", run.device_kind()) : "";
  return fmt::format("a device{}: {}", kind, missing.empty() ? "no host has one" : Join(missing, "; "));
}

// A host may be back, and a worker started again, in a moment.
void Fleet::TellWaiting(int64_t now) {
  for (auto& [number, entry] : runs_) {
    const std::string what = WaitsFor(*entry.run);
    if (what.empty()) {
      entry.waits_since_us = 0;
    } else if (entry.waits_since_us == 0) {
      entry.waits_since_us = now;
    }
    const bool lasts = !what.empty() && now - entry.waits_since_us >= kWaitingMicros;
    entry.run->SetWaiting(lasts ? what : "");
  }
}

// Its host has been away for too long: what it holds goes to others. What it committed is here. What it
// had half done stays on its disk, and counts if it comes back and is given work of that run again. When
// it comes back it is told to let go, and what it did meanwhile is refused by the attempt.
void Fleet::Abandon(const std::string& id) {
  const std::string why = fmt::format("{}: its host has been away for too long", id);
  const auto slot = slots_.find(id);
  if (slot == slots_.end()) {
    log::Warn("{}; what it scored goes to others", why);
  } else {
    log::Warn("{}; what it committed stays, {} trial{} of its go{} to others", why, slot->second.held.size(),
              slot->second.held.size() == 1 ? "" : "s", slot->second.held.size() == 1 ? "es" : "");
  }
  for (const auto& [number, entry] : runs_) {
    if (!workers_.Owns(id)) {
      entry.run->ScorerLost(id, why);
      continue;
    }
    for (const protocol::Revoke& revoke : entry.run->HeldTrials(id)) {
      router_.Send(id, revoke);
      slots_.at(id).held.erase({revoke.trial, revoke.attempt});
    }
    entry.run->WorkerLost(id, why);
  }
  Serve();
}

}  // namespace evald
