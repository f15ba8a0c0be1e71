#include <algorithm>
#include <cmath>
#include <utility>

#include "orchestrator/schedule/policies/dataset_order.h"
#include "orchestrator/schedule/policies/planned_trials.h"

namespace evald {
namespace {

/// The scheduler of "Characterization of Large Language Model Development in the Datacenter" (NSDI
/// 2024), section 6.2, as far as it is described there: datasets are batched and split by what
/// earlier runs cost, sorted with long CPU work first, and dealt round robin.
class RoundRobin : public Policy {
 public:
  const char* name() const override { return "round-robin"; }
  const char* summary() const override {
    return "the paper's: datasets split and batched by priors, long scoring first, dealt round "
           "robin";
  }
  Decouplings decouplings() const override { return {true, true, true, false, false}; }

  std::vector<Cut> Next(const OpenWork& work, int device) override {
    if (queues_.empty()) Plan(work);
    DealAgain(static_cast<size_t>(std::max(1, work.devices())));
    std::vector<Cut> next = queues_[static_cast<size_t>(device) % queues_.size()].Next(work);
    if (!next.empty()) return next;
    for (const PlannedTrials& queue : queues_) {
      if (!queue.empty()) return {};  // the rest belongs to other devices
    }
    return NextDataset(work);  // documents that came back after the plan
  }

 private:
  struct Trial {
    std::vector<Cut> cuts;
    double device_s = 0;
    double score_s = 0;
  };

  void Plan(const OpenWork& work) {
    std::vector<Trial> trials = Trials(work);
    std::stable_sort(trials.begin(), trials.end(), [](const Trial& a, const Trial& b) {
      const bool long_a = a.score_s > a.device_s / 4, long_b = b.score_s > b.device_s / 4;
      return long_a != long_b ? long_a : a.device_s > b.device_s;
    });
    queues_.resize(static_cast<size_t>(std::max(1, work.devices())));
    for (size_t i = 0; i < trials.size(); ++i)
      queues_[i % queues_.size()].Add(std::move(trials[i].cuts));
  }

  // Trials of lost devices go to the others in turn.
  void DealAgain(size_t devices) {
    std::vector<PlannedTrials> lost;
    while (queues_.size() > devices) {
      lost.push_back(std::move(queues_.back()));
      queues_.pop_back();
    }
    size_t to = 0;
    for (PlannedTrials& queue : lost) {
      for (std::vector<Cut>& trial : queue.TakeAll()) queues_[to++ % devices].Add(std::move(trial));
    }
  }

  // No trial is longer than a quarter of a device's share. Small datasets are put together up to
  // that.
  static std::vector<Trial> Trials(const OpenWork& work) {
    const double share = work.device_s() / std::max(1, work.devices()) / 4;
    std::vector<Trial> trials;
    Trial batch;
    for (size_t task = 0; task < work.tasks(); ++task) {
      const TaskEstimate& estimate = work.estimate(task);
      const int64_t open = work.open(task);
      if (open == 0) continue;
      const double device_s = static_cast<double>(open) * estimate.device_s;
      const double wanted = share > 0 ? std::ceil(device_s / share) : 1;
      const auto parts = static_cast<int64_t>(std::clamp(wanted, 1.0, static_cast<double>(open)));
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t documents = open * (part + 1) / parts - open * part / parts;
        const auto count = static_cast<double>(documents);
        if (batch.device_s + count * estimate.device_s > share && !batch.cuts.empty()) {
          trials.push_back(std::exchange(batch, {}));
        }
        // Parts of a task follow each other: if the task is in the batch, it is the last there.
        if (!batch.cuts.empty() && batch.cuts.back().task == task) {
          batch.cuts.back().documents += documents;
        } else {
          batch.cuts.push_back({task, documents});
        }
        batch.device_s += count * estimate.device_s;
        batch.score_s += count * estimate.score_s;
      }
    }
    if (!batch.cuts.empty()) trials.push_back(std::move(batch));
    return trials;
  }

  std::vector<PlannedTrials> queues_;
};

}  // namespace

std::unique_ptr<Policy> MakeRoundRobinPolicy() { return std::make_unique<RoundRobin>(); }

}  // namespace evald
