#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "orchestrator/simulate/wide_heap.h"

namespace evald {

/// A document on a device: waiting, or in one of its places.
struct PlacedDocument {
  int64_t trial = 0;
  int slice = 0;  ///< of the trial
  int64_t document = 0;
  double place_s = 0;
  double begin = 0;
  double end = 0;
};

/// What one device has to compute: documents in the order in which they were given, each taking the
/// place that is free first. The times of their begins and ends are computed at once, and again
/// after a change.
class DeviceQueue {
 public:
  explicit DeviceQueue(int places) : free_at_(std::vector<double>(static_cast<size_t>(places), 0)) {
    documents_.reserve(2 * static_cast<size_t>(places));
  }

  /// Puts documents behind those that are there, and says of each when it begins and ends; none
  /// begins before `now`.
  void Add(double now, std::vector<PlacedDocument>* documents);
  /// Removes the documents that have not begun and for which `unwanted` is true. Moves the others
  /// up.
  void Drop(double now, const std::function<bool(const PlacedDocument&)>& unwanted);
  /// The same, also for documents that have begun.
  void Stop(double now, const std::function<bool(const PlacedDocument&)>& unwanted);
  /// Everything stops.
  void Clear(double now);
  /// Forgets what has ended.
  void Forget(double now);

  /// When the last one begins: from then on none waits.
  double AllBegunAt(double now) const;
  /// When a place is free, for what would be added now.
  double PlaceFreeAt(double now) const { return std::max(now, free_at_.top()); }
  /// In the order in which they begin.
  std::span<const PlacedDocument> documents() const {
    return std::span(documents_).subspan(forgotten_);
  }
  /// Seconds up to `now` in which at least one document was computed.
  double busy_s(double now) const;
  /// When it has nothing left.
  double end() const { return active_to_; }

 private:
  void Keep(double now, const std::function<bool(const PlacedDocument&)>& kept);
  void Place(double now, PlacedDocument* document);
  void RebuildPlaces(double now);

  WideHeap<double> free_at_;  // by place
  std::vector<PlacedDocument> documents_;
  size_t forgotten_ = 0;  // the number of those at the front that are forgotten
  double busy_s_ = 0;     // of the stretches before the one from active_from_ to active_to_
  double active_from_ = 0, active_to_ = 0;
};

}  // namespace evald
