#include <algorithm>
#include <cmath>
#include <numeric>

#include "orchestrator/schedule/policy.h"

namespace evald {
namespace {

// Of a device's share of the open work, what one trial takes: guided self-scheduling (Polychronopoulos
// and Kuck, 1987), in which trials shrink as the end comes near. Four rather than one, because shares
// are only expected.
constexpr double kRounds = 4;
// No longer than this, so that scoring is not kept waiting for its first file, nor a lost worker's
// documents for its heartbeat.
constexpr double kTrialMaxSeconds = 60;
constexpr size_t kTasksPerTrialMax = 16;

/// evald's own. Documents are cut into trials when a device asks, not before:
///
/// - Order: the task first whose last document is followed by most: its own time and then that of its
///   scoring. This is Jackson's rule (the largest delivery time first), which is optimal on one machine
///   and, with jobs as small as documents, nearly so on many. So what takes long to score starts first,
///   then what has long requests, and short documents are left to fill the end. Ties: the larger first.
/// - Size: a quarter of a device's share of what is open, and not so little that leasing and the
///   prefix that is computed again cost more than `overhead_share` of it.
class Elastic : public Policy {
 public:
  explicit Elastic(const LeaseCosts& costs) : costs_(costs) {}
  const char* name() const override { return "elastic"; }
  const char* summary() const override {
    return "evald's: cut when asked for, long tails first, ever smaller towards the end, stragglers doubled";
  }
  bool doubles_stragglers() const override { return true; }

  std::vector<Cut> Next(const OpenWork& work, int) override {
    if (revision_ != work.revision()) Sort(work);
    const double share = work.device_s() / std::max(1, work.devices());
    const double target = std::clamp(share / kRounds, costs_.lease_s / costs_.overhead_share, kTrialMaxSeconds);
    std::vector<Cut> trial;
    double taken = 0;
    while (first_ < order_.size() && work.open(order_[first_]) == 0) ++first_;
    for (size_t i = first_; i < order_.size() && trial.size() < kTasksPerTrialMax; ++i) {
      const size_t task = order_[i];
      if (work.open(task) == 0) continue;
      const Cut cut{task, Documents(work, task, target - taken, share)};
      if (!trial.empty() && Cost(work, cut) > 1.5 * (target - taken)) break;
      trial.push_back(cut);
      taken += Cost(work, cut);
      if (taken >= target * 0.75) break;
    }
    return trial;
  }

 private:
  static double Cost(const OpenWork& work, const Cut& cut) {
    const TaskEstimate& estimate = work.estimate(cut.task);
    return estimate.prefix_s + static_cast<double>(cut.documents) * estimate.device_s;
  }

  // A prefix is computed again by each trial: one that is dear is shared by more documents, as long as
  // that leaves no device without work.
  int64_t Documents(const OpenWork& work, size_t task, double seconds, double share) const {
    const TaskEstimate& estimate = work.estimate(task);
    const double prefixed = std::min(estimate.prefix_s / costs_.overhead_share, share / 2);
    const double wanted = std::max(seconds - estimate.prefix_s, prefixed) / std::max(estimate.device_s, 1e-9);
    const auto open = static_cast<double>(work.open(task));
    // What would be left is not worth a trial of its own.
    const double count = wanted > open * 0.8 ? open : std::floor(wanted);
    return static_cast<int64_t>(std::clamp(count, 1.0, open));
  }

  void Sort(const OpenWork& work) {
    revision_ = work.revision();
    first_ = 0;
    std::vector<double> follows(work.tasks());
    for (size_t task = 0; task < work.tasks(); ++task) {
      const TaskEstimate& estimate = work.estimate(task);
      const double all = static_cast<double>(work.open(task)) * estimate.score_s / std::max(1, work.score_slots());
      follows[task] = estimate.request_s + std::max(estimate.score_s, all);
    }
    order_.resize(work.tasks());
    std::iota(order_.begin(), order_.end(), size_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
      if (follows[a] != follows[b]) return follows[a] > follows[b];
      return work.estimate(a).device_s > work.estimate(b).device_s;
    });
  }

  LeaseCosts costs_;
  int64_t revision_ = -1;
  std::vector<size_t> order_;
  size_t first_ = 0;  // before it, nothing is open
};

}  // namespace

std::unique_ptr<Policy> MakeElasticPolicy(const LeaseCosts& costs) { return std::make_unique<Elastic>(costs); }

}  // namespace evald
