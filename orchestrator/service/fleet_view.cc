// The fleet as people see it.
#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/service/fleet.h"
#include "orchestrator/service/process_id.h"

namespace evald {
namespace {

const char* StateOf(const FleetMachine::Host& host) {
  return host.here ? "connected" : host.left ? "left" : "away";
}

// `followable`: the staging that the worker was last told to follow goes on.
const char* StateOf(const WorkerSlot& slot, bool here, bool followable) {
  const char* at_work = slot.held.empty() ? "idle" : "working";
  if (!here) return "away";
  switch (slot.state()) {
    case WorkerState::kSetAside:
      return "set aside";
    case WorkerState::kAbsent:
    case WorkerState::kIdle:
    case WorkerState::kGivenUp:
      return slot.restarts > 0 ? "failed" : "idle";
    case WorkerState::kPausing:
      return "restarting";
    case WorkerState::kWaiting:
      return "waiting";
    case WorkerState::kStarting:
      return "starting";
    case WorkerState::kLoading:
      return "loading";
    case WorkerState::kFollowing:
      return followable ? "loading" : at_work;
    case WorkerState::kStopping:
      return slot.loading && !slot.engine ? "loading" : at_work;
    case WorkerState::kEmpty:
    case WorkerState::kReady:
      return at_work;
  }
  return at_work;
}

}  // namespace

int Fleet::device_count() const { return machine_.device_count(); }

Witness Fleet::WitnessOf(const std::string& id) const {
  const std::string name = PlaceOfProcess(id).first;
  const auto host = hosts_.find(name);
  if (processes_.count(id) == 0 || host == hosts_.end()) return {"", "", false};
  return {name, host->second.owner, name == kLocalHost};
}

std::string Fleet::HostState(const std::string& name) const {
  const auto host = machine_.hosts().find(name);
  return host == machine_.hosts().end() ? "" : StateOf(host->second);
}

void Fleet::Awaits(const std::string& nodes, bool hosts_come) {
  machine_.Awaits(nodes, hosts_come);
}

NodeHost Fleet::NodeHostOf(const std::string& name) const {
  const auto found = machine_.hosts().find(name);
  if (found == machine_.hosts().end()) return {};
  const FleetMachine::Host& host = found->second;
  int usable = 0;
  std::string aside;
  NodeHost node{.connected = host.here, .leaving = host.leaving || host.left || host.ending};
  for (const size_t i : host.workers) {
    const WorkerSlot& slot = machine_.workers()[i];
    if (slot.device.empty()) continue;
    ++node.devices;
    const auto why = machine_.set_aside(slot);
    if (why) aside = *why;
    usable += why ? 0 : 1;
    node.busy =
        node.busy || !slot.held.empty() || slot.pulls() || slot.state() == WorkerState::kStarting;
  }
  for (const size_t i : host.metric_processes)
    node.busy = node.busy || machine_.metric_processes()[i].job_of != 0;
  if (usable == 0 && !aside.empty()) node.broken = "its devices are set aside: " + aside;
  if (node.busy || !node.broken.empty()) return node;
  if (const auto unused = machine_.WhyUnused(name)) {
    const auto known = hosts_.find(name);
    const std::string failure = known == hosts_.end() ? "" : known->second.last_failure;
    // Without room the next job must go elsewhere, whoever is at fault. Failures may be the run's.
    node.at_fault = !unused->why.empty() || unused->others_can;
    node.broken = !unused->why.empty()
                      ? unused->why
                      : "what it does fails: " + (failure.empty() ? "it is doubted" : failure);
  }
  return node;
}

NodeDemand Fleet::Demand() const {
  NodeDemand demand;
  for (const auto& [number, entry] : runs_) {
    if (entry.view.ending) continue;
    const std::optional<double> open_s = OpenSeconds(number);
    if (!open_s)
      ++demand.unknown_runs;
    else if (entry.view.needs_workers)
      demand.open_s += *open_s;
  }
  demand.devices = machine_.device_count();
  return demand;
}

std::optional<double> Fleet::OpenSeconds(int64_t run) const {
  const auto found = runs_.find(run);
  if (found == runs_.end() || !found->second.view.planned) return std::nullopt;
  return found->second.view.open_s;
}

Json Fleet::Workers() const {
  Json workers = Json::array();
  for (const WorkerSlot& slot : machine_.workers()) {
    if (slot.device.empty()) continue;
    const FleetMachine::Host& host = machine_.hosts().at(slot.host);
    if (host.left) continue;
    const auto run = runs_.find(slot.run);
    const bool followable = slot.following && run != runs_.end() && run->second.view.followable;
    const bool pulls = slot.pulls() && slot.to_pull > 0;
    workers.push_back(
        {{"id", slot.id},
         {"host", slot.host},
         {"device", slot.device},
         {"state", StateOf(slot, host.here, followable)},
         {"run", run == runs_.end() || slot.held.empty() ? Json() : Json(run->second.run->id())},
         {"fingerprint", slot.engine ? Json(*slot.loading) : Json()},
         {"trials", slot.held.size()},
         {"pid", slot.has_process() ? processes_.at(slot.id).pid : 0},
         {"engine", slot.engine ? slot.engine->name : ""},
         {"pull", pulls ? Json({{"done", slot.pulled}, {"total", slot.to_pull}}) : Json()},
         {"waits", slot.waits.empty() ? Json() : Json(slot.waits)},
         {"restarts", slot.restarts}});
  }
  return workers;
}

Json Fleet::Hosts() const {
  Json hosts = Json::array();
  for (const auto& [name, host] : machine_.hosts()) {
    Json devices = Json::array();
    for (const WorkerSlot& slot : machine_.workers()) {
      if (host.left || slot.host != name || slot.device.empty()) continue;
      const auto aside = machine_.set_aside(slot);
      devices.push_back({{"id", slot.device},
                         {"worker", slot.has_process() ? Json(slot.id) : Json()},
                         {"set_aside", aside ? Json(*aside) : Json()}});
    }
    const auto known = hosts_.find(name);
    const double ends_at = known == hosts_.end() ? 0 : known->second.ends_at;
    hosts.push_back({{"id", name},
                     {"state", StateOf(host)},
                     {"devices", std::move(devices)},
                     {"ends_at", ends_at > 0 ? Json(ends_at) : Json()},
                     {"staged", host.staged}});
  }
  return hosts;
}

}  // namespace evald
