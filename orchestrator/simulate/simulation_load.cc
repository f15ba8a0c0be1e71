#include "orchestrator/simulate/simulation.h"

namespace evald {

// Transfers are numbered: 0 is a node's staging, d + 1 is device d loading for itself.
void Simulation::BeginLoading() {
  for (int node = 0; node < cluster_.nodes; ++node) {
    if (decouplings_.load_once) {
      BeginTransfer(node, 0);
    } else if (decouplings_.stay_warm) {
      for (int d = 0; d < cluster_.devices_per_node; ++d)
        BeginTransfer(node, node * cluster_.devices_per_node + d + 1);
    }
  }
  if (decouplings_.load_once || decouplings_.stay_warm) return;
  for (size_t d = 0; d < devices_.size(); ++d) ScheduleWant(static_cast<int64_t>(d), 0);
}

void Simulation::BeginTransfer(int node, int64_t transfer) {
  storage_[node].Begin(now_, transfer, weights_bytes_);
  StorageChanged(node);
}

void Simulation::StorageChanged(int node) {
  const auto next = storage_[node].FirstEnd();
  ++storage_version_[node];
  if (next) Push(next->time, Kind::kStorage, node, next->transfer, storage_version_[node]);
}

void Simulation::OnStorage(const Event& event) {
  const auto node = static_cast<int>(event.a);
  if (event.version < 0) {  // a transfer is to begin
    if (devices_[event.b - 1].lost) return;
    devices_[event.b - 1].load_begin = now_;
    return BeginTransfer(node, event.b);
  }
  if (event.version != storage_version_[node]) return;
  storage_[node].End(now_, event.b);
  StorageChanged(node);
  if (event.b > 0) {
    SimDevice& device = devices_[event.b - 1];
    device.spent[kSimLoad] += now_ - device.load_begin;
    Span(event.b - 1, "load", device.load_begin, now_, "");
    return Push(now_, Kind::kReady, event.b - 1);
  }
  const double pull = weights_bytes_ / cluster_.pcie_bytes_per_s;
  for (int d = 0; d < cluster_.devices_per_node; ++d) {
    const int64_t device = int64_t{node} * cluster_.devices_per_node + d;
    devices_[device].spent[kSimLoad] += decouplings_.stay_warm ? now_ + pull : now_;
    // A cold executor asks for its trial first, and starts and pulls for each.
    if (decouplings_.stay_warm) {
      Span(device, "load", 0, now_ + pull, "");
      Push(now_ + pull, Kind::kReady, device);
    } else {
      Span(device, "load", 0, now_, "");
      ScheduleWant(device, now_);
    }
  }
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
