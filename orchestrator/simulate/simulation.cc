#include "orchestrator/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "orchestrator/simulate/bound.h"

namespace evald {
namespace {

constexpr double kForeverSeconds = 1e9;
// A modelled trial is tried until it is done, and a modelled worker is not silent.
constexpr LeaseLimits kPatient = {.attempts_max = std::numeric_limits<int>::max(),
                                  .silence_max_us = std::numeric_limits<int64_t>::max()};

FleetMachine::Options PatientFleet(const SimCluster& cluster) {
  FleetMachine::Options options;
  options.hosts_pass_on = cluster.staging == SimStaging::kTree;
  options.load_stall_s = kForeverSeconds;
  return options;
}

Decouplings DecouplingsOf(const Simulation::Options& options) {
  return options.decouplings.value_or(MakePolicy(options.policy)->decouplings());
}

}  // namespace

double SimResult::bound_s(const SimCluster& cluster) const {
  return BoundOf(
             {device_work_s, longest_request_s, long_documents, first_generation_s, score_work_s},
             cluster, weights_bytes)
      .total_s();
}

Simulation::Simulation(const SimCluster& cluster, double weights_bytes,
                       const std::vector<SimTask>& tasks,
                       const std::vector<TaskEstimate>& estimates, Options options)
    : cluster_(cluster),
      weights_bytes_(weights_bytes),
      tasks_(tasks),
      options_(std::move(options)),
      decouplings_(DecouplingsOf(options_)),
      random_(options_.seed),
      run_(kPatient, kPatient),
      fleet_(PatientFleet(cluster)),
      nodes_(static_cast<size_t>(cluster.nodes)),
      storage_(static_cast<size_t>(cluster.nodes), SharedLink(cluster.storage_bytes_per_s)),
      storage_version_(static_cast<size_t>(cluster.nodes), 0),
      pool_(cluster.score_slots()),
      scoring_(static_cast<size_t>(cluster.score_slots())),
      scored_(tasks.size(), 0) {
  for (const SimTask& task : tasks)
    committed_.emplace_back(static_cast<size_t>(task.documents), false);
  const int datasets = tasks.empty() ? 0 : tasks.back().dataset + 1;
  for (int d = 0; d < cluster.devices(); ++d) {
    devices_.emplace_back(cluster.places);
    if (!decouplings_.prepare_once)
      devices_.back().prepared.assign(static_cast<size_t>(datasets), false);
  }
  result_.task_scored_s.assign(tasks.size(), 0);
  PlanRun(estimates);
}

int64_t Simulation::micros() const {
  constexpr int64_t kBegin = 1'000'000;
  return kBegin + static_cast<int64_t>(std::llround(now_ * 1e6));
}

void Simulation::Push(double time, Kind kind, int64_t a, int64_t b, int64_t version) {
  events_.Push({time, next_order_++, kind, static_cast<int32_t>(b), a, version});
}

SimResult Simulation::Run() {
  if (options_.faults.node_lost_at_s) Push(*options_.faults.node_lost_at_s, Kind::kNodeLost, 0);
  AddHosts();
  BeginLoading();
  while (!events_.empty()) {
    const Event event = events_.Pop();
    now_ = event.time;
    ++result_.events;
    Handle(event);
    Settle();
  }
  return Finish();
}

void Simulation::Handle(const Event& event) {
  switch (event.kind) {
    case Kind::kStorage:
      return OnStorage(event);
    case Kind::kCopied:
      return OnNodeStaged(static_cast<int>(event.a));
    case Kind::kReady:
      return OnReady(event.a);
    case Kind::kWant:
      return OnWant(event);
    case Kind::kSlice:
      return OnSlice(event);
    case Kind::kTrialFails:
      return OnTrialFails(event.a);
    case Kind::kTrialOver:
      return OnTrialOver(event.a);
    case Kind::kScored:
      return OnScored(event);
    case Kind::kNodeLost:
      return OnNodeLost();
    case Kind::kHeartbeat:
      return OnHeartbeat();
    case Kind::kOverdue:
      return OnOverdue(event);
  }
}

// ---- results

void Simulation::Span(int64_t device, const char* name, double begin, double end,
                      const std::string& label) {
  if (options_.keep_spans && end > begin)
    result_.spans.push_back({static_cast<int>(device), name, begin, end, label});
}

// All devices together, at the rates that they have. The fastest nodes have the checkpoint first.
double Simulation::SlowBound(double work_s) const {
  std::vector<double> devices;
  for (int node = 0; node < cluster_.nodes; ++node) {
    double& of_node = devices.emplace_back(0);
    for (int d = 0; d < cluster_.devices_per_node; ++d)
      of_node += 1 / SlownessOf(int64_t{node} * cluster_.devices_per_node + d);
  }
  std::sort(devices.rbegin(), devices.rend());
  return WorkEnd(StagedTimes(cluster_, weights_bytes_), devices, work_s);
}

SimResult Simulation::Finish() {
  SimResult& result = result_;
  result.stage_s = weights_bytes_ / cluster_.storage_bytes_per_s;
  result.weights_bytes = weights_bytes_;
  result.nodes_staged = static_cast<int>(
      std::count_if(nodes_.begin(), nodes_.end(), [](const Node& node) { return node.staged; }));
  const SimWork work = WorkOf(tasks_, cluster_.places);
  result.device_work_s = work.device_s;
  result.longest_request_s = work.longest_request_s;
  result.long_documents = work.long_documents;
  result.first_generation_s = work.first_generation_s;
  result.score_work_s = work.score_s;
  if (options_.faults.slow_device > 1 || options_.faults.slow_node > 1)
    result.left_bound_s = std::max(result.left_bound_s, SlowBound(work.device_s));
  double weighted = 0;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const TaskEstimate truth = TrueEstimate(tasks_[t], cluster_.places);
    const double device_s = truth.device_s * static_cast<double>(truth.documents);
    const double prior = prior_device_s_[t];
    if (prior > 0 && truth.device_s > 0)
      weighted += device_s * std::abs(std::log(prior / truth.device_s));
    result.documents_scored += scored_[t];
  }
  result.estimate_error = std::exp(weighted / std::max(1e-9, result.device_work_s));
  double busy = 0, after = 0, all = 0;
  for (SimDevice& device : devices_) {
    result.weights_in_s = std::max(result.weights_in_s, device.weights_in);
    if (device.lost) continue;
    all += result.makespan_s;
    busy += device.queue.busy_s(result.makespan_s);
    if (device.weights_in > 0) after += result.makespan_s - device.weights_in;
    for (size_t cause = 0; cause < kSimCauses.size(); ++cause) {
      if (device.spent[cause] > 0) result.lost_shares[kSimCauses[cause]] += device.spent[cause];
    }
  }
  result.idle_share = after > 0 ? std::max(0.0, 1 - busy / after) : 0;
  if (all <= 0) return result;
  result.generate_share = busy / all;
  for (auto& [cause, seconds] : result.lost_shares) seconds /= all;
  return result;
}

}  // namespace evald
