#include "orchestrator/schedule/time_left.h"

#include <algorithm>
#include <cmath>

namespace evald {
namespace {

// A trial of a task that the policy did not choose has documents for at most so long.
constexpr double kOtherTrialSeconds = 15;

}  // namespace

void TrialSeconds::Add(size_t task, int64_t documents) {
  const TaskEstimate& estimate = work_.estimate(task);
  request_s_ = std::max(request_s_, estimate.request_s);
  device_s_ += estimate.device_s * static_cast<double>(documents);
  if (last_ != task) device_s_ += estimate.prefix_s;
  last_ = task;
}

int64_t TrialSeconds::Room(size_t task, int64_t most, double seconds) const {
  TrialSeconds empty = *this;
  empty.Add(task, 0);
  const double each = slow_ * work_.estimate(task).device_s, room = seconds - empty.total();
  if (room < each) return 0;
  if (each <= 0) return most;
  return std::min(most, static_cast<int64_t>(std::min(room / each, 1e15)));
}

std::vector<Cut> CutToFit(const OpenWork& work, const std::vector<Cut>& cuts, double lease_s,
                          double slow, double seconds) {
  std::vector<Cut> fit;
  TrialSeconds trial(work, lease_s, slow);
  for (const Cut& cut : cuts) {
    const int64_t documents = trial.Room(cut.task, cut.documents, seconds);
    if (documents == 0) continue;
    trial.Add(cut.task, documents);
    fit.push_back({cut.task, documents});
  }
  if (!fit.empty()) return fit;
  std::optional<Cut> other;
  for (size_t task = work.FirstOpen(0); task < work.tasks(); task = work.FirstOpen(task + 1)) {
    if (other && work.estimate(task).request_s <= work.estimate(other->task).request_s) continue;
    const double each = std::max(work.estimate(task).device_s, 1e-9);
    const auto most = static_cast<int64_t>(
        std::clamp(kOtherTrialSeconds / each, 1.0, static_cast<double>(work.open(task))));
    const int64_t documents = TrialSeconds(work, lease_s, slow).Room(task, most, seconds);
    if (documents > 0) other = Cut{task, documents};
  }
  return other ? std::vector<Cut>{*other} : std::vector<Cut>{};
}

std::optional<double> ShortestTrialSeconds(const OpenWork& work, double lease_s) {
  std::optional<double> shortest;
  for (size_t task = work.FirstOpen(0); task < work.tasks(); task = work.FirstOpen(task + 1)) {
    TrialSeconds trial(work, lease_s);
    trial.Add(task, 1);
    if (!shortest || trial.total() < *shortest) shortest = trial.total();
  }
  return shortest;
}

double JobSeconds(const TaskEstimate& estimate, int64_t documents) {
  return std::min(static_cast<double>(documents) * estimate.score_s,
                  kJobSeconds + estimate.score_s);
}

}  // namespace evald
