#include <algorithm>
#include <utility>

#include "orchestrator/simulate/simulation.h"

namespace evald {

// Transfers are numbered: -n is the staging of node n, d + 1 is device d loading for itself.
void Simulation::BeginLoading() {
  if (staged_by_order()) return BeginTransfer(0, 0);
  for (int node = 0; node < cluster_.nodes; ++node) {
    if (decouplings_.load_once) {
      BeginTransfer(node, -node);
    } else if (decouplings_.stay_warm) {
      for (int d = 0; d < cluster_.devices_per_node; ++d)
        BeginTransfer(node, node * cluster_.devices_per_node + d + 1);
    }
  }
  if (decouplings_.load_once || decouplings_.stay_warm) return;
  for (size_t d = 0; d < devices_.size(); ++d) ScheduleWant(static_cast<int64_t>(d), 0);
}

void Simulation::BeginTransfer(int node, int64_t transfer) {
  if (transfer <= 0) nodes_[node].copying = true;
  storage_[LinkOf(node)].Begin(now_, transfer, weights_bytes_);
  StorageChanged(LinkOf(node));
}

void Simulation::StorageChanged(size_t link) {
  const auto next = storage_[link].FirstEnd();
  ++storage_version_[link];
  if (next)
    Push(next->time, Kind::kStorage, static_cast<int64_t>(link), next->transfer,
         storage_version_[link]);
}

void Simulation::OnStorage(const Event& event) {
  if (event.version < 0) {  // a transfer is to begin
    if (devices_[event.b - 1].lost) return;
    devices_[event.b - 1].load_begin = now_;
    return BeginTransfer(static_cast<int>(event.a), event.b);
  }
  const auto link = static_cast<size_t>(event.a);
  if (event.version != storage_version_[link]) return;
  storage_[link].End(now_, event.b);
  StorageChanged(link);
  if (event.b > 0) return OnDeviceLoaded(event.b - 1);
  OnNodeStaged(-event.b);
}

void Simulation::OnDeviceLoaded(int64_t d) {
  SimDevice& device = devices_[d];
  device.spent[kSimLoad] += now_ - device.load_begin;
  Span(d, "load", device.load_begin, now_, "");
  Push(now_, Kind::kReady, d);
}

// The devices of the node pull the weights from its memory.
void Simulation::OnNodeStaged(int n) {
  Node& node = nodes_[n];
  if (node.lost) return;
  node.staged = true;
  node.copying = false;
  if (node.from >= 0) --nodes_[node.from].serves;
  if (staged_by_order()) {
    for (const int64_t device : node.waiting) Pull(device);
    if (node.waiting.empty()) return;
    const auto first = static_cast<size_t>(node.waiting[0]);
    node.waiting.clear();
    for (const int64_t bytes : {0, 1})
      fleet_.Heard(first, news::Pulled{bytes, static_cast<int64_t>(weights_bytes_)}, micros());
    return;
  }
  for (int d = 0; d < cluster_.devices_per_node; ++d) {
    const int64_t device = int64_t{n} * cluster_.devices_per_node + d;
    // A cold executor asks for its trial first, and starts and pulls for each.
    if (decouplings_.stay_warm) {
      Pull(device);
    } else {
      devices_[device].spent[kSimLoad] += now_;
      Span(device, "load", 0, now_, "");
      ScheduleWant(device, now_);
    }
  }
}

void Simulation::Pull(int64_t d) {
  const double ready = now_ + weights_bytes_ / cluster_.pcie_bytes_per_s;
  devices_[d].spent[kSimLoad] += ready - devices_[d].load_begin;
  Span(d, "load", devices_[d].load_begin, ready, "");
  Push(ready, Kind::kReady, d);
}

// ---- nodes that get the checkpoint when the fleet orders a load there

void Simulation::LoadByOrder(int64_t d) {
  const int n = NodeOf(d);
  devices_[d].load_begin = n == 0 ? 0 : now_;  // the first node is staged for the run
  if (nodes_[n].staged) return Pull(d);
  nodes_[n].waiting.push_back(d);
  if (!nodes_[n].copying) BeginCopy(n);
}

// In a tree each node gets the checkpoint from the one that has its end first, among those that can
// pass on one more copy. A slow node passes on none, since its children would leave it.
void Simulation::BeginCopy(int n) {
  if (cluster_.staging == SimStaging::kLink) return BeginTransfer(n, -n);
  Node& node = nodes_[n];
  const Node* best = nullptr;
  for (const Node& other : nodes_) {
    const auto number = static_cast<int>(&other - nodes_.data());
    if (other.lost || (!other.staged && !other.copying) || other.serves >= cluster_.fan_out ||
        (number > 0 && options_.faults.slow_node > 1 && IsSlow(number)))
      continue;
    if (best == nullptr || other.staged_at < best->staged_at) best = &other;
  }
  node.copying = true;
  node.from = best == nullptr ? 0 : static_cast<int>(best - nodes_.data());
  ++nodes_[node.from].serves;
  const double slowness = IsSlow(n) ? options_.faults.slow_node : 1;
  const double copied = now_ + slowness * weights_bytes_ / cluster_.node_bytes_per_s;
  node.staged_at = std::max(copied, nodes_[node.from].staged_at) + cluster_.hop_s;
  Push(node.staged_at, Kind::kCopied, n);
}

void Simulation::LoseStaging(int n) {
  nodes_[n].lost = true;
  if (cluster_.staging != SimStaging::kLink || !nodes_[n].copying) return;
  storage_[0].End(now_, -n);
  StorageChanged(0);
}

void Simulation::OnReady(int64_t d) {
  SimDevice& device = devices_[d];
  if (device.lost) return;
  if (device.weights_in == 0) device.weights_in = now_;
  if (device.pending >= 0) {
    const int64_t trial = device.pending;
    device.pending = -1;
    return RunDocuments(trial, now_);
  }
  Loaded(d);
  ScheduleWant(d, now_);
}

void Simulation::Loaded(int64_t d) {
  fleet_.Heard(static_cast<size_t>(d), news::Loaded{view_.load, *view_.engine}, micros());
}

}  // namespace evald
