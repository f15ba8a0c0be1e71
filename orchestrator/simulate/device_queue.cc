#include "orchestrator/simulate/device_queue.h"

#include <algorithm>

namespace evald {

void DeviceQueue::Place(double now, PlacedDocument* document) {
  document->begin = std::max(now, free_at_.top());
  document->end = document->begin + document->place_s;
  free_at_.ReplaceTop(document->end);
  active_to_ = std::max(active_to_, document->end);
}

void DeviceQueue::Add(double now, std::vector<PlacedDocument>* documents) {
  if (now > active_to_) {
    busy_s_ += active_to_ - active_from_;
    active_from_ = active_to_ = now;
  }
  for (PlacedDocument& document : *documents) {
    Place(now, &document);
    documents_.push_back(document);
  }
}

void DeviceQueue::RebuildPlaces(double now) {
  std::vector<double> busy;
  for (const PlacedDocument& document : documents()) {
    if (document.begin <= now && document.end > now) busy.push_back(document.end);
  }
  busy.resize(std::max(busy.size(), free_at_.size()), now);
  free_at_ = WideHeap(std::move(busy));
}

void DeviceQueue::Drop(double now, const std::function<bool(const PlacedDocument&)>& unwanted) {
  Keep(now, [&](const PlacedDocument& document) {
    return document.begin <= now || !unwanted(document);
  });
}

void DeviceQueue::Stop(double now, const std::function<bool(const PlacedDocument&)>& unwanted) {
  Keep(now, [&](const PlacedDocument& document) { return !unwanted(document); });
}

void DeviceQueue::Keep(double now, const std::function<bool(const PlacedDocument&)>& kept) {
  std::vector<PlacedDocument> waiting, begun;
  for (const PlacedDocument& document : documents()) {
    if (!kept(document)) continue;
    if (document.begin <= now) {
      begun.push_back(document);
    } else {
      waiting.push_back(document);
    }
  }
  documents_ = std::move(begun);
  forgotten_ = 0;
  active_to_ = std::max(active_from_, now);
  for (const PlacedDocument& document : documents_) active_to_ = std::max(active_to_, document.end);
  RebuildPlaces(now);
  Add(now, &waiting);
}

void DeviceQueue::Clear(double now) {
  documents_.clear();
  forgotten_ = 0;
  active_to_ = std::clamp(now, active_from_, active_to_);
  RebuildPlaces(now);
}

void DeviceQueue::Forget(double now) {
  // Documents end nearly in order. One that has ended behind one that has not is forgotten together
  // with that one.
  while (forgotten_ < documents_.size() && documents_[forgotten_].end <= now) ++forgotten_;
  if (forgotten_ <= documents_.size() / 2) return;
  documents_.erase(documents_.begin(), documents_.begin() + static_cast<ptrdiff_t>(forgotten_));
  forgotten_ = 0;
}

double DeviceQueue::AllBegunAt(double now) const {
  return documents().empty() ? now : std::max(now, documents_.back().begin);
}

double DeviceQueue::busy_s(double now) const {
  return busy_s_ + std::max(0.0, std::min(now, active_to_) - active_from_);
}

}  // namespace evald
