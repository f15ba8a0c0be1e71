#include <algorithm>

#include "orchestrator/simulate/simulation.h"

namespace evald {
namespace {

constexpr double kHeartbeatSeconds = 1;  // as workers report

}  // namespace

// Documents are taken from other devices until there is something to give.
bool Simulation::Steal(int64_t thief) {
  if (!stealing_began_) {
    stealing_began_ = true;
    OnHeartbeat();
  }
  // It could begin nothing that its victim could not.
  if (devices_[thief].queue.PlaceFreeAt(now_) > now_) return false;
  while (const auto theft = stealing_.Next(now_, static_cast<int>(thief))) {
    if (!TakeBack(*theft)) continue;
    if (!GiveOpen(thief)) return false;
    // There is enough for others, or there may be more to be had.
    WakeIdle(std::max<int64_t>(1, work_.documents()));
    return true;
  }
  return false;
}

// What the victim has begun meanwhile, it keeps. It has reported anew in any case.
bool Simulation::TakeBack(const Theft& theft) {
  Device& device = devices_[theft.device];
  bool any = false;
  for (auto taken = theft.documents.rbegin(); taken != theft.documents.rend(); ++taken) {
    Slice& slice = trials_[taken->trial].slices[taken->slice];
    int64_t first = slice.documents.end;
    for (auto waiting = device.queue.documents().rbegin();
         waiting != device.queue.documents().rend(); ++waiting) {
      if (waiting->begin <= now_) break;
      if (waiting->trial != taken->trial || waiting->slice != taken->slice) continue;
      if (waiting->document >= taken->documents.first) first = std::min(first, waiting->document);
    }
    if (first == slice.documents.end) continue;
    work_.PutBack(slice.task, {first, slice.documents.end});
    slice.documents.end = first;
    any = true;
  }
  if (any) {
    device.queue.Drop(now_, [&](const PlacedDocument& document) {
      return document.document >= trials_[document.trial].slices[document.slice].documents.end;
    });
    ScheduleAllSlices(&device);
    Push(device.queue.AllBegunAt(now_), Kind::kAsk, theft.device, 0, ++device.ask_version);
  }
  Report(theft.device);
  return any;
}

// What a device would say it has waiting. What begins within the time that a lease takes is where
// it should be.
void Simulation::Report(int64_t d) {
  if (!policy_->doubles_stragglers()) return;
  const Device& device = devices_[d];
  const double soon = now_ + 2 * cluster_.lease_s;
  std::vector<WaitingDocuments> waiting;
  const auto& documents = device.queue.documents();
  for (auto document = documents.rbegin(); document != documents.rend() && document->begin > soon;
       ++document) {
    if (waiting.empty() || waiting.back().trial != document->trial ||
        waiting.back().slice != document->slice) {
      const Slice& slice = trials_[document->trial].slices[document->slice];
      waiting.push_back({document->trial,
                         document->slice,
                         slice.task,
                         {document->document, slice.documents.end}});
    }
    waiting.back().documents.first = document->document;
  }
  std::reverse(waiting.begin(), waiting.end());
  if (!waiting.empty() && !heartbeat_due_) {
    heartbeat_due_ = true;
    Push(now_ + kHeartbeatSeconds, Kind::kHeartbeat, 0);
  }
  stealing_.Report(now_, static_cast<int>(d), std::move(waiting), work_);
  ReportBegun(d);
}

void Simulation::OnHeartbeat() {
  heartbeat_due_ = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (!devices_[d].lost) Report(static_cast<int64_t>(d));
  }
  WakeIdle(1);
}

}  // namespace evald
