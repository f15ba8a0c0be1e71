#include "orchestrator/schedule/backups.h"

#include <algorithm>

namespace evald {
namespace {

// A device counts as average until about this much of its time was measured.
constexpr double kBelievedSeconds = 1;
constexpr double kStaleSeconds = 2;  // workers say how far they are twice a second

}  // namespace

void FreshSeconds::Add(const Corrections& costs, size_t task, int64_t documents) {
  request_s_ = std::max(request_s_, costs.ended_request_s(task));
  device_s_ += costs.device_s(task) * static_cast<double>(documents);
  if (last_ != task) device_s_ += costs.prior(task).prefix_s;
  last_ = task;
}

Backups::Device& Backups::At(int device) {
  if (devices_.size() <= static_cast<size_t>(device))
    devices_.resize(static_cast<size_t>(device) + 1);
  return devices_[static_cast<size_t>(device)];
}

void Backups::Measured(int device, double expected_s, double device_s) {
  Device& of = At(device);
  of.expected_s += expected_s;
  of.device_s += device_s;
  expected_s_ += expected_s;
  device_s_ += device_s;
}

double Backups::slowness(int device) const {
  if (static_cast<size_t>(device) >= devices_.size() || expected_s_ <= 0 || device_s_ <= 0)
    return 1;
  const Device& of = devices_[static_cast<size_t>(device)];
  // Estimates are off for all devices alike: this scales them to the time measured.
  const double expected_s = of.expected_s * device_s_ / expected_s_;
  return (of.device_s + kBelievedSeconds) / (expected_s + kBelievedSeconds);
}

double Backups::quiet_s(int device, double fresh_s) const {
  return std::min(kQuietFactor * slowness(device) * fresh_s + kQuietLeastSeconds,
                  kQuietMostSeconds);
}

void Backups::Report(double now, int device, const std::vector<BegunTrial>& begun) {
  Forget(device);
  if (begun.empty()) return;
  Device& of = At(device);
  const double slow = slowness(device);
  for (const BegunTrial& trial : begun) {
    const double clearly_later = kLateFactor * trial.fresh_s + least_s_;
    const double left = slow * trial.fresh_s - (now - trial.since);
    const double late_at = left > clearly_later ? trial.since : trial.since + clearly_later;
    const Late late{std::min(late_at, trial.quiet + quiet_s(device, trial.fresh_s)), trial.trial,
                    device};
    if (!of.first || late < *of.first) of.first = late;
  }
  order_.insert(*of.first);
  of.reported = now;
  reports_.insert({now, device});
}

void Backups::Forget(int device) {
  if (static_cast<size_t>(device) >= devices_.size()) return;
  Device& of = devices_[static_cast<size_t>(device)];
  if (!of.first) return;
  order_.erase(*of.first);
  of.first.reset();
  reports_.erase({of.reported, device});
}

std::optional<Backups::Late> Backups::First(double now, int helper) const {
  for (const Late& late : order_) {
    if (late.at > now) break;
    if (late.device != helper) return late;
  }
  return std::nullopt;
}

std::optional<Backups::Late> Backups::Next(double now, int helper,
                                           const std::function<void(int device)>& report) {
  // A silent device sends no report, and its estimates may have been corrected since the last one.
  if (!reports_.empty() && reports_.begin()->first < now - kStaleSeconds)
    report(reports_.begin()->second);
  for (std::optional<Late> before;;) {
    const std::optional<Late> late = First(now, helper);
    const bool confirmed =
        late && before && before->trial == late->trial && before->device == late->device;
    if (!late || confirmed) return late;
    report(late->device);
    before = late;
  }
}

std::optional<double> Backups::next_at() const {
  return order_.empty() ? std::nullopt : std::optional(order_.begin()->at);
}

}  // namespace evald
