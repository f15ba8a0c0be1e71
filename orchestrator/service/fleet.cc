// Events of hosts, runs and the clock, one after another.
#include "orchestrator/service/fleet.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/log.h"
#include "evald/engine_info.h"
#include "evald/error.h"
#include "orchestrator/devices/programs.h"
#include "orchestrator/fleet/work_thread.h"
#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace {

constexpr int64_t kTickMicros = 200'000;  // Tick is called at least this often

FleetMachine::Options MachineOptions(const FleetOptions& options) {
  return {.worker_restarts_max = options.worker_restarts_max,
          .metric_restarts_max = options.metric_restarts_max,
          .load_stall_s = options.stall_timeout_s,
          .needless_load_s = options.needless_load_s,
          .hosts_pass_on = true,
          .device_limits = options.device_limits,
          .hosts_may_come = options.hosts_may_come};
}

// Whether the worker could not use its command line. It ends with this status then.
bool IsRefusal(const ProcessExit& exit) {
  return exit.signal == 0 && exit.error.empty() &&
         exit.exit_code == static_cast<int>(ExitStatus::kUsage);
}

}  // namespace

Fleet::Fleet(Loop* loop, FleetOptions options)
    : loop_(loop),
      options_(std::move(options)),
      owned_machine_(std::make_unique<FleetMachine>(MachineOptions(options_))),
      machine_(*owned_machine_) {}

Fleet::~Fleet() = default;

// ---- one event after another

// Takes an event from outside, and carries out all that follows from it.
void Fleet::Take(std::function<void()> event) {
  if (settling_) return waiting_.push_back(std::move(event));
  event();
  Settle();
}

// Carries orders out until none are left, then takes the events that came meanwhile.
void Fleet::Settle() {
  if (settling_) return;
  settling_ = true;
  for (;;) {
    TellChanges();
    const std::vector<Order> orders = machine_.TakeOrders();
    for (const Order& order : orders) {
      Carry(order);
      TellChanges();
    }
    if (!orders.empty()) continue;
    if (waiting_.empty()) break;
    const auto event = std::move(waiting_.front());
    waiting_.pop_front();
    settling_ = false;
    try {
      event();
    } catch (const std::exception& e) {
      log::Error("the fleet: {}", e.what());
    }
    settling_ = true;
  }
  settling_ = false;
  WakeAtNext();
}

void Fleet::TellChanges() {
  const int64_t now = MonotonicMicros();
  for (auto& [number, entry] : runs_) {
    if (!std::exchange(entry.changed, false)) continue;
    entry.view = entry.run->View(now);
    if (hosts_end_) entry.view.shortest_s = entry.run->shortest_s();
    entry.view.priority = entry.priority;
    entry.view.user = entry.user;
    machine_.RunChanged(entry.view, now);
  }
}

// Wakes the machine for a pause that ends before the next Tick.
void Fleet::WakeAtNext() {
  const auto next = machine_.next_at();
  const int64_t now = MonotonicMicros();
  if (!next || stopping_ || *next - now > kTickMicros || (wake_at_us_ != 0 && wake_at_us_ <= *next))
    return;
  wake_at_us_ = *next;
  const std::chrono::milliseconds delay(std::max<int64_t>(0, *next - now) / 1000 + 1);
  loop_->After(delay, [this, at = *next] {
    if (wake_at_us_ == at) wake_at_us_ = 0;
    Take([this] { machine_.Tick(MonotonicMicros()); });
  });
}

Fleet::RunEntry* Fleet::Find(int64_t run) {
  const auto found = runs_.find(run);
  return found == runs_.end() ? nullptr : &found->second;
}

// Does `work`, which serves process `id` for the run, and returns its answer. If `work` throws, the
// run ends and the answer is false.
bool Fleet::Guard(RunEntry* entry, const std::string& id, const std::function<bool()>& work) {
  try {
    return work();
  } catch (...) {
    const Error error = CurrentError();
    log::Error("{}: {}", id, error.what());
    entry->changed = true;
    if (!entry->run->ending()) entry->run->Fail(error.kind(), error.what());
    return false;
  }
}

// ---- hosts

Host::Events Fleet::EventsOf(const std::string& name) {
  return {[this, name](const std::string& id, const protocol::Message& message) {
            Take([this, full = FullProcessId(name, id), message] { OnMessage(full, message); });
          },
          [this, name](const std::string& id, const ProcessExit& exit) {
            Take([this, full = FullProcessId(name, id), exit] { OnExit(full, exit); });
          }};
}

void Fleet::AddHost(Host* host, const HostInfo& info) {
  Take([this, host, info] {
    hosts_[info.name] = {host, info.threads, info.owner};
    const std::string prefix = ProcessPrefix(info.name);
    const bool own = info.name == kLocalHost;
    machine_.HostAdded({.name = info.name,
                        .prefix = prefix,
                        .stages_here = own,
                        .devices = info.devices,
                        .metric_processes = info.metric_processes,
                        .trusted = own,
                        .owner = info.owner},
                       MonotonicMicros());
    for (size_t i = 0; i < info.devices.size(); ++i) {
      const std::string id = fmt::format("{}w{}", prefix, i);
      processes_[id];
      for (const auto& [number, entry] : runs_) AddRow(entry.run.get(), id, info.devices[i]);
    }
    for (int i = 0; i < info.metric_processes; ++i) {
      const std::string id = fmt::format("{}m{}", prefix, i);
      processes_[id];
      for (const auto& [number, entry] : runs_) AddRow(entry.run.get(), id, "");
    }
  });
}

// `device` is "" for a metric process.
void Fleet::AddRow(Evaluation* run, const std::string& id, const std::string& device) const {
  if (device.empty()) return run->AddRow(id, fmt::format("metrics {}", id), false);
  run->AddRow(id, fmt::format("worker {} ({})", id, device), true);
}

void Fleet::HostReady(const std::string& name, const std::vector<protocol::HeldProcess>& processes,
                      const std::vector<std::string>& staged) {
  std::vector<AdoptedProcess> adopted;
  for (const protocol::HeldProcess& process : processes) {
    adopted.push_back(Adopted(FullProcessId(name, process.id), process));
  }
  Take([this, name, adopted, staged] {
    machine_.HostReady(name, adopted, staged, MonotonicMicros());
  });
}

AdoptedProcess Fleet::Adopted(const std::string& id, const protocol::HeldProcess& process) {
  const bool worker = machine_.FindWorker(id) != nullptr;
  AdoptedProcess adopted;
  adopted.id = id;
  adopted.ready = process.pid != 0 && (!worker || process.engine.is_object());
  adopted.profile = process.tag;
  adopted.on_gpu = process.program == kGpuWorker;
  adopted.wants = process.wants;
  std::optional<protocol::Loaded> loaded;
  if (worker && adopted.ready) {
    adopted.follows = process.engine.value("follows", false);
    if (process.loading) adopted.loading = process.fingerprint;
    if (process.loading && process.loaded.is_object()) {
      loaded = protocol::Loaded{process.fingerprint, process.loaded.value("engine", Json()),
                                process.loaded.value("report", Json::object())};
      // Throws if it has another form
      EngineInfoFromJson(loaded->engine, "message 'loaded' of process " + id);
      adopted.loaded = FactsOf(loaded->engine);
    }
  }
  const auto known = processes_.find(id);
  if (known == processes_.end()) return adopted;  // the machine ends the process
  known->second = {{id, process.program, process.arguments, process.tag},
                   process.pid,
                   worker ? Json() : process.engine,
                   std::move(loaded)};
  return adopted;
}

void Fleet::HostIs(const std::string& name, HostNews news) {
  Take([this, name, news] { machine_.HostIs(name, news, MonotonicMicros()); });
}

void Fleet::HostEnds(const std::string& name, double in_s) {
  Take([this, name, in_s] {
    const auto host = hosts_.find(name);
    if (host == hosts_.end()) return;
    const bool known = in_s >= 0;
    hosts_end_ = hosts_end_ || known;
    host->second.ends_at = known ? WallSeconds() + in_s : 0;
    const int64_t now = MonotonicMicros();
    machine_.HostEnds(name, known ? now + static_cast<int64_t>(in_s * 1e6) : 0, now);
  });
}

// Runs hear that the processes are lost before the processes and the host are forgotten.
bool Fleet::ForgetHost(const std::string& name) {
  if (settling_ || !machine_.HostForgotten(name, MonotonicMicros())) return false;
  Settle();
  std::erase_if(processes_,
                [&](const auto& process) { return PlaceOfProcess(process.first).first == name; });
  hosts_.erase(name);
  return true;
}

// ---- runs

void Fleet::Add(std::shared_ptr<Evaluation> run, int priority, const std::string& user) {
  Take([this, run = std::move(run), priority, user] {
    for (const WorkerSlot& slot : machine_.workers()) {
      if (!slot.id.empty()) AddRow(run.get(), slot.id, slot.device);
    }
    for (const MetricProcessSlot& slot : machine_.metric_processes()) {
      if (!slot.id.empty()) AddRow(run.get(), slot.id, "");
    }
    const WorkerProfile profile = run->profile();
    profiles_[profile.Tag()] = profile;
    runs_[run->number()] = {run, priority, user};
  });
}

void Fleet::SetPriority(int64_t run, int priority) {
  RunEntry* entry = Find(run);
  if (entry == nullptr) return;
  entry->priority = priority;
  RunChanged(run);
}

// Looks at the run in a later turn: the run may be in the middle of a change.
void Fleet::RunChanged(int64_t run) {
  RunEntry* entry = Find(run);
  if (entry == nullptr) return;
  entry->changed = true;
  if (settling_ || std::exchange(woken_, true)) return;
  loop_->Post([this] {
    woken_ = false;
    Settle();
  });
}

void Fleet::Remove(int64_t run) {
  Take([this, run] {
    RunEntry* entry = Find(run);
    if (entry == nullptr) return;
    TellChanges();  // so that the machine knows what the run has staged
    auto staged = entry->run->TakeStaged();
    const bool leaves_staged = staged.has_value();
    if (leaves_staged) {
      const std::string fingerprint = staged->fingerprint();
      kept_.emplace(fingerprint, std::move(*staged));
    }
    runs_.erase(run);
    machine_.RunRemoved(run, leaves_staged, MonotonicMicros());
    ForgetProfiles();
  });
}

// Forgets the profiles that no process is started with any more.
void Fleet::ForgetProfiles() {
  std::set<std::string> used;
  for (const auto& [number, entry] : runs_) used.insert(entry.view.profile);
  for (const WorkerSlot& slot : machine_.workers()) {
    used.insert(slot.profile);
    if (slot.next) used.insert(slot.next->profile);
  }
  std::erase_if(profiles_, [&](const auto& profile) { return used.count(profile.first) == 0; });
}

// ---- time, and the ends of processes

void Fleet::Tick() {
  if (stopping_) return;
  Take([this] {
    const int64_t now = MonotonicMicros();
    std::set<std::string> silent;
    for (auto& [number, entry] : runs_) {
      entry.changed = true;
      entry.run->Tick(now, [this](const std::string& host) { return HostWorks(host); });
      TakeRevoked(&entry);
      for (const std::string& id : entry.run->Silent(now)) silent.insert(id);
    }
    TellChanges();
    for (const std::string& id : silent) OnSilent(id, now);
    machine_.Tick(now);
  });
}

// Whether a worker of the host computes or loads anything.
bool Fleet::HostWorks(const std::string& host) const {
  const auto& workers = machine_.workers();
  return std::any_of(workers.begin(), workers.end(), [&](const WorkerSlot& slot) {
    return slot.host == host && (!slot.held.empty() || slot.pulls());
  });
}

void Fleet::OnSilent(const std::string& id, int64_t now) {
  if (processes_.count(id) == 0) return;
  const WorkerSlot* slot = machine_.FindWorker(id);
  if (!machine_.hosts().at(PlaceOfProcess(id).first).here) {
    const std::string why = fmt::format("{}: its host has been away for too long", id);
    if (slot == nullptr) {
      log::Warn("{}; its jobs go to others", why);
    } else {
      const size_t held = slot->held.size();
      log::Warn("{}; its committed slices stay, its {} trial{} go{} to others", why, held,
                held == 1 ? "" : "s", held == 1 ? "es" : "");
    }
  }
  machine_.Hung(id, "it has been silent for too long", now);
}

void Fleet::OnExit(const std::string& id, const ProcessExit& exit) {
  Ended(id, {ToString(exit), exit.error.empty(), IsRefusal(exit)});
}

void Fleet::Ended(const std::string& id, const ProcessEnd& end) {
  const int64_t now = MonotonicMicros();
  if (const auto process = processes_.find(id); process != processes_.end())
    process->second.killed_us = 0;
  machine_.Ended(id, end, now);
  const auto tell = [&](int64_t due_us, int restarts, int most) {
    log::Warn("{} ended ({}); starting it again in {} ms ({} of {} restarts)", id, end.how,
              (due_us - now) / 1000, restarts, most);
  };
  if (const WorkerSlot* slot = machine_.FindWorker(id)) {
    if (slot->state() == WorkerState::kPausing)
      tell(slot->due_us, slot->restarts, options_.worker_restarts_max);
    return;
  }
  for (const MetricProcessSlot& slot : machine_.metric_processes()) {
    if (slot.id != id || slot.state != MetricProcessState::kPausing) continue;
    tell(slot.due_us, slot.restarts, options_.metric_restarts_max);
  }
}

bool Fleet::FreeStaged() {
  const bool on_its_way = machine_.FreeStaged(MonotonicMicros());
  Settle();
  return on_its_way;
}

void Fleet::StopAll(std::function<void()> done) {
  stopping_ = true;
  stopped_ = std::move(done);
  Take([this] { machine_.StopAll(); });
}

}  // namespace evald
