#include "orchestrator/schedule/stealing.h"

#include <algorithm>
#include <cmath>

namespace evald {

void Stealing::Report(double now, int device, std::vector<WaitingDocuments> waiting,
                      const OpenWork& work) {
  Forget(device);
  if (devices_.size() <= static_cast<size_t>(device))
    devices_.resize(static_cast<size_t>(device) + 1);
  Device& of = devices_[static_cast<size_t>(device)];
  of.all_begun_at = now;
  for (WaitingDocuments& documents : waiting) {
    if (documents.documents.size() <= 0) continue;
    const TaskEstimate& estimate = work.estimate(documents.task);
    of.all_begun_at += static_cast<double>(documents.documents.size()) * estimate.device_s;
    of.prefix_s = estimate.prefix_s;
    of.waiting.push_back({std::move(documents), estimate.device_s, estimate.prefix_s});
  }
  if (!of.waiting.empty()) order_.insert({of.worth_until(), device});
}

void Stealing::Forget(int device) {
  if (static_cast<size_t>(device) >= devices_.size()) return;
  Device& of = devices_[static_cast<size_t>(device)];
  if (!of.waiting.empty()) order_.erase({of.worth_until(), device});
  of.waiting.clear();
}

std::optional<Theft> Stealing::Next(double now, int thief) const {
  auto victim = order_.rbegin();
  if (victim != order_.rend() && victim->second == thief) ++victim;
  if (victim == order_.rend() || victim->first - now < least_s_ || victim->first <= now)
    return std::nullopt;
  const Device& of = devices_[static_cast<size_t>(victim->second)];
  Theft theft{victim->second, {}};
  // Thief and victim share the documents and each prefix that the thief needs.
  double shared = of.all_begun_at - now;
  for (auto last = of.waiting.rbegin(); last != of.waiting.rend(); ++last) {
    if (theft.documents.empty() || theft.documents.back().task != last->documents.task)
      shared -= last->prefix_s;
    const double left = shared / 2;
    WaitingDocuments taken = last->documents;
    const auto all = static_cast<double>(taken.documents.size());
    const double fits = last->document_s > 0 ? std::floor(left / last->document_s)
                        : left < 0           ? 0
                                             : all;
    if (fits < 1 && !theft.documents.empty()) break;
    const auto count = static_cast<int64_t>(std::clamp(fits, 1.0, all));
    taken.documents.first = taken.documents.end - count;
    theft.documents.push_back(taken);
    shared -= 2 * static_cast<double>(count) * last->document_s;
    if (static_cast<double>(count) < all) break;
  }
  std::reverse(theft.documents.begin(), theft.documents.end());
  return theft;
}

}  // namespace evald
