// Carries out the orders of the fleet machine.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "evald/error.h"
#include "orchestrator/devices/programs.h"
#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/run/wire_id.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace {

constexpr std::chrono::milliseconds kStopGrace{5000};
constexpr int64_t kKillAgainMicros = 60'000'000;

}  // namespace

// If an order fails that concerns no run, the failure is logged and the next orders are carried
// out.
void Fleet::Carry(const Order& order) {
  try {
    std::visit([this](const auto& of) { Do(of); }, order);
  } catch (const std::exception& e) {
    log::Error("the fleet: {}", e.what());
  }
}

// ---- processes

void Fleet::Do(const order::StartWorker& order) {
  processes_.at(order.worker).spec = WorkerSpec(*machine_.FindWorker(order.worker), order.profile);
  Start(order.worker);
}

void Fleet::Do(const order::StartMetricProcess& order) {
  processes_.at(order.metric_process).spec = {
      order.metric_process, "evald-metric", {"--log-level", options_.log_level}, ""};
  Start(order.metric_process);
}

ProcessSpec Fleet::WorkerSpec(const WorkerSlot& slot, const std::string& tag) const {
  const auto found = profiles_.find(tag);
  // A worker of an earlier life keeps its command line
  if (found == profiles_.end()) return processes_.at(slot.id).spec;
  const WorkerProfile& profile = found->second;
  const int threads =
      hosts_.at(slot.host).threads > 0 ? hosts_.at(slot.host).threads : profile.threads;
  std::vector<std::string> arguments = {"--engine",    profile.engine,
                                        "--settings",  ToLine(profile.settings),
                                        "--device",    slot.device,
                                        "--threads",   std::to_string(threads),
                                        "--seed",      std::to_string(profile.seed),
                                        "--log-level", options_.log_level};
  for (const std::filesystem::path& root : profile.read_roots) {
    arguments.insert(arguments.end(), {"--read-root", root.string()});
  }
  return {slot.id, WorkerProgram(profile.engine, slot.device), std::move(arguments), tag};
}

void Fleet::Start(const std::string& id) {
  Process& process = processes_.at(id);
  process.pid = 0;
  process.killed_us = 0;
  process.loaded.reset();
  const auto [host, there] = PlaceOfProcess(id);
  ProcessSpec spec = process.spec;
  spec.id = there;
  try {
    hosts_.at(host).host->Start(spec);
  } catch (const Error& e) {
    Ended(id, {.how = e.what(), .could_start = false});
  }
}

void Fleet::Send(const std::string& id, const protocol::Message& message) {
  const auto [host, there] = PlaceOfProcess(id);
  hosts_.at(host).host->Send(there, message);
}

void Fleet::Do(const order::Stop& order) {
  if (!order.why.empty()) log::Info("{} starts anew: {}", order.id, order.why);
  Send(order.id, protocol::Stop{});
}

// The process of an agent that says nothing may be killed again at each look, for as long as the
// agent is silent.
void Fleet::Do(const order::Kill& order) {
  if (const auto process = processes_.find(order.id); process != processes_.end()) {
    const int64_t now = MonotonicMicros();
    if (process->second.killed_us != 0 && now - process->second.killed_us < kKillAgainMicros)
      return;
    process->second.killed_us = now;
  }
  const bool worker = machine_.FindWorker(order.id) != nullptr;
  log::Warn("{} {}: {}; it is killed", worker ? "worker" : "process", order.id, order.why);
  const auto [host, there] = PlaceOfProcess(order.id);
  hosts_.at(host).host->Kill(there);
}

void Fleet::Do(const order::Load& order) {
  processes_.at(order.worker).loaded.reset();
  RunEntry* entry = Find(order.run);
  if (entry == nullptr) return;
  Guard(entry, order.worker, [&] {
    Send(order.worker, entry->run->load());
    return true;
  });
}

void Fleet::Do(const order::Follow& order) {
  processes_.at(order.worker).loaded.reset();
  RunEntry* entry = Find(order.run);
  if (entry == nullptr) return;
  Guard(entry, order.worker, [&] {
    Send(order.worker, entry->run->follow());
    return true;
  });
}

void Fleet::Do(const order::Revoke& order) {
  Send(order.worker,
       protocol::Revoke{WireId(order.held.run, order.held.trial), order.held.attempt});
}

void Fleet::Do(const order::TakeBack& order) {
  RunEntry* entry = Find(order.held.run);
  if (entry == nullptr) return;
  entry->changed = true;
  Guard(entry, order.worker, [&] {
    entry->run->TakeBack(order.worker, order.held, order.why);
    return true;
  });
  TakeRevoked(entry);
}

void Fleet::Do(const order::HandBack& order) {
  RunEntry* entry = Find(order.held.run);
  if (entry == nullptr) return;
  entry->changed = true;
  Guard(entry, order.worker, [&] {
    for (const protocol::Shorten& shorten : entry->run->HandBack(order.worker, order.held))
      Send(order.worker, shorten);
    return true;
  });
}

void Fleet::Do(const order::TakeStalled& order) {
  RunEntry* entry = Find(order.run);
  if (entry == nullptr) return;
  entry->changed = true;
  Guard(entry, order.worker, [&] {
    entry->run->TakeStalled(order.worker);
    return true;
  });
  TakeRevoked(entry);
}

void Fleet::Do(const order::TakeJobsBack& order) {
  RunEntry* entry = Find(order.run);
  if (entry == nullptr) return;
  entry->changed = true;
  Guard(entry, order.metric_process, [&] {
    entry->run->TakeJobsBack(order.metric_process, order.distrust);
    return true;
  });
}

void Fleet::Do(const order::StopHosts&) {
  if (hosts_.empty()) return stopped_();
  const auto left = std::make_shared<size_t>(hosts_.size());
  for (const auto& [name, entry] : hosts_) {
    entry.host->StopAll(kStopGrace, [this, left] {
      if (--*left == 0) stopped_();
    });
  }
}

// Questions to runs. If a run's answer fails, the run ends and the process gets nothing from it.

const Json& Fleet::EngineOf(const std::string& worker) const {
  const auto& loaded = processes_.at(worker).loaded;
  if (!loaded)
    throw Error(ErrorKind::kInternal, worker + " has no checkpoint loaded, but was to get a trial");
  return loaded->engine;
}

void Fleet::Do(const order::LeaseTrial& order) {
  RunEntry* entry = Find(order.run);
  const bool given = entry != nullptr && Guard(entry, order.worker, [&] {
                       const auto lease = entry->run->LeaseTrial(
                           order.worker, EngineOf(order.worker), order.until_us);
                       return lease && Give(entry, order.worker, *lease);
                     });
  if (!given) machine_.Answered(answer::NothingToLease{order.worker, order.run}, MonotonicMicros());
}

void Fleet::Do(const order::Steal& order) {
  RunEntry* entry = Find(order.run);
  const bool stolen =
      entry != nullptr && Guard(entry, order.worker, [&] {
        const Evaluation::StealOutcome outcome =
            entry->run->Steal(order.worker, EngineOf(order.worker), order.until_us);
        if (outcome.lease) return Give(entry, order.worker, *outcome.lease);
        for (const auto& [victim, shorten] : outcome.shorten) Send(victim, shorten);
        if (outcome.shorten.empty()) return false;
        machine_.Answered(answer::Stolen{order.worker, order.run}, MonotonicMicros());
        return true;
      });
  if (!stolen)
    machine_.Answered(answer::NothingToLease{order.worker, order.run}, MonotonicMicros());
}

bool Fleet::Give(RunEntry* entry, const std::string& worker, const protocol::Lease& lease) {
  Send(worker, lease);
  entry->changed = true;
  const HeldTrial held{entry->run->number(), IdOfWireId(lease.trial), lease.attempt};
  machine_.Answered(answer::Leased{worker, held}, MonotonicMicros());
  return true;
}

void Fleet::Do(const order::LeaseJob& order) {
  const auto on_its_host =
      [host = PlaceOfProcess(order.metric_process).first](const std::string& worker) {
        return PlaceOfProcess(worker).first == host;
      };
  std::function<bool(const std::string&)> made_by;
  if (order.own_only) made_by = on_its_host;
  RunEntry* entry = Find(order.run);
  const bool given =
      entry != nullptr && Guard(entry, order.metric_process, [&] {
        const auto job = entry->run->LeaseJob(order.metric_process,
                                              processes_.at(order.metric_process).isolation,
                                              made_by, order.until_us);
        if (!job) return false;
        Send(order.metric_process, *job);
        entry->changed = true;
        machine_.Answered(answer::JobLeased{order.metric_process, order.run}, MonotonicMicros());
        return true;
      });
  if (!given)
    machine_.Answered(answer::NothingToLease{order.metric_process, order.run}, MonotonicMicros());
}

// ---- news for runs

void Fleet::TellRun(int64_t run, const FleetNews& news) {
  RunEntry* entry = Find(run);
  if (entry == nullptr) return;
  entry->changed = true;
  Guard(entry, entry->run->id(), [&] {
    entry->run->Tell(news);
    return true;
  });
}

void Fleet::TellAll(const FleetNews& news) {
  for (const auto& [number, entry] : runs_) TellRun(number, news);
}

void Fleet::Do(const order::TellLoaded& order) {
  RunEntry* entry = Find(order.run);
  const auto& loaded = processes_.at(order.worker).loaded;
  if (entry == nullptr || !loaded) return;
  entry->changed = true;
  Guard(entry, order.worker, [&] {
    entry->run->Loaded(order.worker, *loaded);
    return true;
  });
}

void Fleet::Do(order::TellRefused order) {
  if (order.see_logs) order.why += SeeLogs();
  TellRun(order.run, order);
}

void Fleet::Do(const order::TellSetAside& order) {
  log::Error("device {} of host {} is set aside: {}", order.device, order.host, order.why);
  TellAll(order);
}

void Fleet::Do(order::TellNoWorkers order) {
  order.why += SeeLogs();
  TellRun(order.run, order);
}

void Fleet::Do(order::TellNoMetricProcesses order) {
  order.why += SeeLogs();
  TellRun(order.run, order);
}

void Fleet::Do(order::TellVain order) {
  order.why += SeeLogs();
  TellRun(order.run, order);
}

// ---- the rest

void Fleet::Do(const order::DropStaged& order) {
  auto node = kept_.extract(order.fingerprint);
  if (!node.empty() && release) release(std::move(node.mapped()));
}

void Fleet::Do(const order::ShowChange& order) {
  if (on_change) on_change(order.worker);
}

void Fleet::Do(const order::Ignored& order) {
  log::Debug("{}: {} says nothing, since it is {}", order.id, order.event, order.state);
}

}  // namespace evald
