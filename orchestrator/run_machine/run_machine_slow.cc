// Workers that are slower than others: how they show before they get long requests, and what they
// are given.
#include <algorithm>
#include <tuple>

#include "orchestrator/run_machine/run_machine.h"
#include "orchestrator/schedule/time_left.h"

namespace evald {
namespace {

// A device that takes so many times as long as the others is slow.
constexpr double kSlowFactor = 1.3;
// Documents for so many device seconds show how fast a device is. Their requests take at most
// kProbeRequestSeconds each.
constexpr double kProbeSeconds = 0.5, kProbeRequestSeconds = 2;
// A device whose times cannot be taken gets no more of them.
constexpr size_t kProbesMax = 8;
// Requests are long if they would hold up the end on a device that is so many times slower.
constexpr double kSlowest = 8;
// A shared prefix takes at most this part of them.
constexpr double kProbePrefixShare = 0.1;

}  // namespace

bool RunMachine::IsSlow(int device) const {
  return speeds_.measured_s(device) >= kProbeSeconds / 2 && speeds_.slowness(device) >= kSlowFactor;
}

// The time of the worker's device as a multiple of an ordinary one's, if it is slow; otherwise 1.
// Estimates are those of ordinary devices.
double RunMachine::ExcessOf(Holder worker) {
  const int device = DeviceOf(worker);
  return IsSlow(device) ? speeds_.slowness(device) : 1;
}

// Long requests differ too much, and tell too late. What a slow device shows may have made the
// requests of a task longer than they were expected to be.
void RunMachine::NoteSpeed(Holder worker, size_t task, int64_t documents, double device_s,
                           double longest_s) {
  if (!policy_->backs_up_stragglers() || longest_s > kSlowest * kProbeRequestSeconds) return;
  if (std::min(work_.estimate(task).request_s, costs_.prior(task).request_s) <=
      kProbeRequestSeconds)
    speeds_.Measured(DeviceOf(worker), task, documents, device_s);
}

int64_t& RunMachine::WaitsSinceOf(Holder worker) {
  const auto at = static_cast<size_t>(worker);
  if (at >= waits_since_us_.size()) waits_since_us_.resize(at + 1, 0);
  return waits_since_us_[at];
}

// A long request on a slow device holds up the end of the run, and shows only when it has ended
// that the device is slow. So a device of which nothing is known first gets short documents for a
// moment, if there are any.
std::optional<Cut> RunMachine::ProbeOf(Holder worker, const std::vector<Cut>& cuts) {
  if (!policy_->backs_up_stragglers() || work_.devices() < 2) return std::nullopt;
  if (speeds_.measured_s(DeviceOf(worker)) >= kProbeSeconds / 2) return std::nullopt;
  const double share = work_.device_s() / work_.devices();
  const bool any_long = std::any_of(cuts.begin(), cuts.end(), [&](const Cut& cut) {
    const double request_s = work_.estimate(cut.task).request_s;
    return request_s > kProbeRequestSeconds && kSlowest * request_s >= share;
  });
  if (!any_long) return std::nullopt;
  const std::vector<size_t> tasks = ProbeTasks();
  if (tasks.empty()) return std::nullopt;
  const auto device = static_cast<size_t>(DeviceOf(worker));
  if (device >= probes_of_.size()) probes_of_.resize(device + 1, 0);
  if (probes_of_[device] >= kProbesMax) return std::nullopt;
  const size_t task = tasks[std::min(probes_of_[device]++, tasks.size() - 1)];
  const double documents = kProbeSeconds / work_.estimate(task).device_s;
  return Cut{task, std::clamp<int64_t>(static_cast<int64_t>(documents), 1, work_.open(task))};
}

// The tasks whose documents show how fast a device is. First come those that most devices were
// measured with, since devices are compared by documents of one task.
std::vector<size_t> RunMachine::ProbeTasks() const {
  std::vector<size_t> tasks;
  for (size_t task = work_.FirstOpen(0); task < work_.tasks(); task = work_.FirstOpen(task + 1)) {
    const TaskEstimate& estimate = work_.estimate(task);
    const double open_s = static_cast<double>(work_.open(task)) * estimate.device_s;
    if (estimate.request_s <= kProbeRequestSeconds && open_s >= kProbeSeconds &&
        estimate.prefix_s <= kProbePrefixShare * kProbeSeconds && !specs_[task].command)
      tasks.push_back(task);
  }
  std::sort(tasks.begin(), tasks.end(), [this](size_t a, size_t b) {
    const auto rank = [this](size_t task) {
      return std::tuple(speeds_.devices_of(task), work_.estimate(task).documents);
    };
    return rank(a) != rank(b) ? rank(a) > rank(b) : a < b;
  });
  return tasks;
}

// Seconds that a slow worker has for a trial, so that the run does not end later for it: the others
// are at work for their share of the open work, or for as long as the longest open request, which
// one of them could begin now.
//
// No limit if no other worker computes, or if the worker has waited for as long as that request
// takes: then it could nearly have ended it.
double RunMachine::SecondsOfSlow(Holder worker, int64_t now) {
  if (!policy_->backs_up_stragglers() || !IsSlow(DeviceOf(worker))) return kForever;
  const bool others = std::any_of(worker_of_.begin(), worker_of_.end(), [&](Holder other) {
    return !trials_table_.ItemsOf(other).empty() && !IsSlow(DeviceOf(other));
  });
  if (!others) return kForever;
  double request_s = 0;
  for (size_t task = work_.FirstOpen(0); task < work_.tasks(); task = work_.FirstOpen(task + 1))
    request_s = std::max(request_s, work_.estimate(task).request_s);
  const int64_t since = WaitsSinceOf(worker);
  if (since != 0 && Seconds(now - since) > request_s) return kForever;
  const double share = work_.device_s() / std::max(1, work_.devices());
  return std::max(share, request_s) - SlownessOf(worker) * HeldSeconds(worker);
}

std::optional<TrialLease> RunMachine::LeaseLeft(Holder worker, int64_t now, int64_t until_us) {
  return has_trials() ? LeaseTrial(worker, now, until_us) : std::nullopt;
}

}  // namespace evald
