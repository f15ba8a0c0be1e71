// The executor of the machines: it carries their orders out on modelled workers, and tells them
// what those do.
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "orchestrator/simulate/simulation.h"

namespace evald {
namespace {

constexpr int64_t kSimRun = 1;
constexpr const char* kSimProfile = "simulated";
constexpr const char* kSimCheckpoint = "checkpoint";

}  // namespace

// Weights of a warm executor are a load. Another executor loads in each trial, on its device's
// time: the fleet has nothing to load.
void Simulation::PlanRun(const std::vector<TaskEstimate>& estimates) {
  std::vector<MachineTask> specs;
  for (const SimTask& task : tasks_)
    specs.push_back({task.name, task.documents, task.slow_scoring, 1});
  run_.SetTasks(std::move(specs));
  for (size_t t = 0; t < tasks_.size(); ++t) {
    Prior prior;
    prior.estimate = estimates[t];
    prior.weight = options_.weight;
    run_.Expect(t, prior);
    prior_device_s_.push_back(estimates[t].device_s);
  }
  PlanSetup setup;
  setup.policy = options_.policy;
  setup.costs = {cluster_.lease_s, 0.01};
  setup.devices = cluster_.devices();
  setup.places = cluster_.places;
  setup.score_slots = cluster_.score_slots();
  run_.Plan(setup);
  view_.number = kSimRun;
  view_.profile = kSimProfile;
  view_.engine = EngineFacts{kSimProfile, "1", "modelled", false};
  view_.load = decouplings_.stay_warm ? kSimCheckpoint : "";
  view_.planned = true;
  if (!staged_by_order()) return;
  view_.fingerprint = kSimCheckpoint;
  view_.checkpoint_bytes = weights_bytes_;
}

void Simulation::AddHosts() {
  for (int node = 0; node < cluster_.nodes; ++node) {
    HostSpec host;
    host.name = fmt::format("n{}", node);
    host.prefix = host.name + ".";
    host.devices.assign(static_cast<size_t>(cluster_.devices_per_node), "modelled");
    host.stages_here = staged_by_order() && node == 0;
    host.metric_processes = 0;  // the pool is modelled as a whole
    fleet_.HostAdded(host, micros());
    fleet_.HostReady(host.name, {}, {}, micros());
  }
  for (size_t d = 0; d < devices_.size(); ++d) run_.AddWorker(static_cast<Holder>(d));
  came_back_ = true;
  Settle();
}

// The fleet looks at the run if what it wants has changed, or if documents came back: only then may
// a worker that got nothing get something.
void Simulation::TellChanges() {
  // A service gives out loads once its own host has the checkpoint
  const bool staged = !staged_by_order() || nodes_[0].staged;
  const bool wants = staged && run_.has_trials(), needs = staged && !run_.trials_idle();
  if (!came_back_ && wants == view_.wants_workers && needs == view_.needs_workers) return;
  came_back_ = false;
  view_.wants_workers = wants;
  view_.needs_workers = needs;
  view_.open_s = run_.open_s();
  fleet_.RunChanged(view_, micros());
}

void Simulation::Settle() {
  for (;;) {
    TellChanges();
    const std::vector<Order> orders = fleet_.TakeOrders();
    if (orders.empty()) return;
    for (const Order& order : orders) {
      std::visit([this](const auto& of) { Do(of); }, order);
      TellChanges();
    }
  }
}

void Simulation::Hear(int64_t device, const ProcessNews& news) {
  fleet_.Heard(static_cast<size_t>(device), news, micros());
  Settle();
}

void Simulation::TakeRevoked() {
  for (const RevokeOrder& order : run_.TakeRevoked()) {
    fleet_.Answered(answer::Revoked{IdOf(order.worker), {kSimRun, order.trial, order.attempt}},
                    micros());
  }
}

// ---- orders

void Simulation::Do(const order::StartWorker& order) {
  fleet_.Heard(order.worker, news::Hello{}, micros());
}

// Otherwise the weights of warm executors are under way since time 0.
void Simulation::Do(const order::Load& order) {
  if (staged_by_order()) {
    LoadByOrder(DeviceOf(order.worker));
  } else if (!decouplings_.stay_warm) {
    Loaded(DeviceOf(order.worker));
  }
}

void Simulation::Do(const order::LeaseTrial& order) {
  const int64_t device = DeviceOf(order.worker);
  const auto lease = run_.LeaseTrial(static_cast<Holder>(device), micros());
  if (lease) return Give(device, *lease);
  fleet_.Answered(answer::NothingToLease{order.worker, kSimRun}, micros());
}

void Simulation::Do(const order::Steal& order) {
  const int64_t device = DeviceOf(order.worker);
  const auto worker = static_cast<Holder>(device);
  const std::vector<ShortenOrder> orders = run_.Steal(worker, micros());
  if (!orders.empty()) {
    fleet_.Answered(answer::Stolen{order.worker, kSimRun}, micros());
    devices_[device].steal_wait_until = now_ + kSimStealWaitSeconds;
    for (const ShortenOrder& of : orders) Shorten(of);
    return;
  }
  if (const auto left = run_.LeaseLeft(worker, micros())) return Give(device, *left);
  if (decouplings_.stay_warm && decouplings_.score_elsewhere) {
    if (const auto backup = run_.LeaseBackup(worker, micros())) {
      KeepFinishedOf(backup->trial);
      return Give(device, *backup);
    }
  }
  fleet_.Answered(answer::NothingToLease{order.worker, kSimRun}, micros());
}

void Simulation::Do(const order::Revoke& order) {
  const int64_t device = DeviceOf(order.worker);
  for (const int64_t trial : devices_[device].trials) {
    if (trials_[trial].number != order.held.trial || trials_[trial].attempt != order.held.attempt)
      continue;
    return Revoke(trial);
  }
}

void Simulation::Do(const order::TellWorkerLost& order) {
  run_.WorkerLost(static_cast<Holder>(DeviceOf(order.worker)), order.why, order.suspect);
  came_back_ = true;
  TakeRevoked();
}

void Simulation::Do(const order::TellDevices& order) { run_.SetDevices(std::max(1, order.count)); }

// A worker has got a trial.
void Simulation::Give(int64_t device, const TrialLease& lease) {
  const auto number = static_cast<int64_t>(trials_.size());
  SimTrial& trial = trials_.emplace_back();
  trial.number = lease.trial;
  trial.attempt = lease.attempt;
  trial.device = static_cast<int>(device);
  trial.backup = run_.is_backup(lease.trial);
  trial.begin = now_;
  trial.slices.reserve(lease.slices.size());
  for (const LeasedSlice& slice : lease.slices) {
    trial.slices.push_back({slice.task, slice.documents, false});
    trial.documents += slice.documents.size();
  }
  trial.slices_left = trial.slices.size();
  devices_[device].wants = false;
  devices_[device].report_due = devices_[device].steal_wait_until = 0;
  fleet_.Answered(answer::Leased{IdOf(device), {kSimRun, lease.trial, lease.attempt}}, micros());
  StartTrial(device, number);
}

}  // namespace evald
