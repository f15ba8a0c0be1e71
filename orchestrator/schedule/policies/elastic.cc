#include <algorithm>
#include <cmath>
#include <set>

#include "orchestrator/schedule/policy.h"

namespace evald {
namespace {

// A trial takes one part in kRounds of a device's share of the open work: guided self-scheduling
// (Polychronopoulos and Kuck, 1987), in which trials shrink towards the end. Four rather than one,
// because shares are only expected.
constexpr double kRounds = 4;
// A task is tried out before any is done in bulk when it may hold up the end: when more than this
// part of a device's share follows its documents. A quarter of a device's places is enough to learn
// from.
constexpr double kTriedShare = 1.0 / 16;
constexpr double kTriedPlaces = 0.25;
constexpr size_t kTasksPerTrialMax = 16;
constexpr double kLittleKnown = 2.5;  // as a factor of doubt
// A trial's documents over the prefix that it computes for them. If there are enough documents,
// they must take at least kWorthPrefixes times as long as the prefix. A long prefix may make the
// trial up to kPrefixesMax times as long as itself.
constexpr double kWorthPrefixes = 4;
constexpr double kPrefixesMax = 10;

/// evald's own policy. Documents are cut into trials when a device asks, not before:
///
/// - Order: first the task whose last document is followed by most time: its own, then that of its
///   scoring. This is Jackson's rule (the largest delivery time first). It is optimal on one
///   machine and nearly so on many, with jobs as small as documents. Tasks that are slow to score
///   start first, then tasks with long requests; short documents fill the end. Ties: the larger
///   task first.
/// - Before that, a few documents of each task that is expected to have a long tail. A tail that is
///   longer than expected is then known while there is still time.
/// - Size: a quarter of a device's share of the open work, and at least so much that leasing and
///   the repeated prefix cost at most `overhead_share` of it. A task that is little known is cut by
///   what it may cost. If the prefix costs more than a trial is long, trials become longer; a rest
///   that would be mostly prefix joins the trial before it.
///
/// A decision takes log n steps for n tasks: only tasks that changed since the last decision are
/// placed in the order anew.
class Elastic : public Policy {
 public:
  explicit Elastic(const LeaseCosts& costs) : costs_(costs) {}
  const char* name() const override { return "elastic"; }
  const char* summary() const override {
    return "evald's: cut when asked for, long tails first, ever smaller towards the end, "
           "stragglers doubled";
  }
  bool backs_up_stragglers() const override { return true; }

  std::vector<Cut> Next(const OpenWork& work, int) override {
    Refresh(work);
    const double share = work.device_s() / std::max(1, work.devices());
    const double least = std::min(costs_.lease_s / costs_.overhead_share, costs_.trial_max_s);
    const double target = std::clamp(share / kRounds, least, costs_.trial_max_s);
    if (!untouched_.empty() &&
        untouched_.begin()->follows > std::max(share * kTriedShare, costs_.trial_max_s)) {
      const size_t task = untouched_.begin()->task;
      const TaskEstimate& estimate = work.estimate(task);
      const double worth = kWorthPrefixes * estimate.prefix_s / std::max(MayCost(estimate), 1e-9);
      const auto few =
          static_cast<int64_t>(std::max({1.0, work.places() * kTriedPlaces, std::floor(worth)}));
      return {{task, std::min(few, Documents(work, task, costs_.trial_max_s, share))}};
    }
    std::vector<Cut> trial;
    double taken = 0, documents_s = 0;
    for (const Place& place : order_) {
      if (trial.size() == kTasksPerTrialMax) break;
      const TaskEstimate& estimate = work.estimate(place.task);
      const Cut cut{place.task, Documents(work, place.task, target - taken, share)};
      const double seconds = static_cast<double>(cut.documents) * MayCost(estimate);
      const bool fits = estimate.prefix_s + seconds <= 1.5 * (target - taken) &&
                        documents_s + seconds <= costs_.trial_max_s;
      if (!trial.empty() && !fits) break;
      trial.push_back(cut);
      taken += estimate.prefix_s + seconds;
      documents_s += seconds;
      if (taken >= target * 0.75) break;
    }
    return trial;
  }

 private:
  /// A task's place in the order.
  struct Place {
    double follows = -1;  // seconds after its last document was begun; < 0: no open documents
    double device_s = 0;
    size_t task = 0;
    bool operator<(const Place& other) const {
      if (follows != other.follows) return follows > other.follows;
      if (device_s != other.device_s) return device_s > other.device_s;
      return task < other.task;
    }
  };

  static double MayCost(const TaskEstimate& estimate) { return estimate.device_s * estimate.doubt; }

  // A task that is little known fills a device once, if there is as much for every device.
  static double Least(const OpenWork& work, const TaskEstimate& estimate, double open) {
    if (estimate.doubt < kLittleKnown) return 1;
    return std::clamp(std::floor(open / std::max(1, work.devices())), 1.0,
                      static_cast<double>(std::max(1, work.places())));
  }

  // Each trial computes the prefix again. A costly prefix is shared by more documents, as long as
  // that leaves no device without work. If half of a device's share is not worth the prefix, the
  // device takes all of it: each device computes the prefix once in any case.
  double Prefixed(const TaskEstimate& estimate, double share) const {
    const double part = share / 2 < kWorthPrefixes * estimate.prefix_s ? share : share / 2;
    return std::clamp(part, estimate.prefix_s, estimate.prefix_s / costs_.overhead_share);
  }

  int64_t Documents(const OpenWork& work, size_t task, double seconds, double share) const {
    const TaskEstimate& estimate = work.estimate(task);
    const double each = std::max(MayCost(estimate), 1e-9);
    const double wanted = std::max(seconds - estimate.prefix_s, Prefixed(estimate, share)) / each;
    const double most = std::max(costs_.trial_max_s, kPrefixesMax * estimate.prefix_s);
    const auto open = static_cast<double>(work.open(task));
    // A small rest is not worth a trial of its own.
    const double count =
        std::min(wanted > open * 0.8 ? open : std::floor(wanted), std::floor(most / each));
    return static_cast<int64_t>(std::clamp(count, Least(work, estimate, open), open));
  }

  void Refresh(const OpenWork& work) {
    const auto changed = work.ChangedSince(revision_);
    places_.resize(work.tasks());
    if (changed) {
      for (const size_t task : *changed) Put(work, task);
    } else {
      for (size_t task = 0; task < work.tasks(); ++task) Put(work, task);
    }
    revision_ = work.revision();
  }

  void Put(const OpenWork& work, size_t task) {
    Place place{-1, 0, task};
    if (work.open(task) > 0) {
      const TaskEstimate& estimate = work.estimate(task);
      const double all =
          static_cast<double>(work.open(task)) * estimate.score_s / std::max(1, work.score_slots());
      place.follows = estimate.request_s + std::max(estimate.score_s, all);
      place.device_s = estimate.device_s;
    }
    if (places_[task].follows >= 0) order_.erase(places_[task]);
    untouched_.erase(places_[task]);
    if (place.follows >= 0) order_.insert(place);
    if (place.follows >= 0 && work.open(task) == work.estimate(task).documents)
      untouched_.insert(place);
    places_[task] = place;
  }

  LeaseCosts costs_;
  int64_t revision_ = -1;
  std::vector<Place> places_;  // by task
  std::set<Place> order_;      // of tasks with open documents
  std::set<Place> untouched_;  // of these, the tasks whose documents are all open
};

}  // namespace

std::unique_ptr<Policy> MakeElasticPolicy(const LeaseCosts& costs) {
  return std::make_unique<Elastic>(costs);
}

}  // namespace evald
