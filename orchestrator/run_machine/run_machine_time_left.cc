// Workers whose hosts end: trials that end in time, and documents that are handed back.
#include <algorithm>

#include "orchestrator/run_machine/run_machine.h"
#include "orchestrator/schedule/time_left.h"

namespace evald {

// Expected seconds of the documents that the worker holds and has not computed.
double RunMachine::HeldSeconds(Holder worker) const {
  double seconds = 0;
  for (const int64_t number : trials_table_.ItemsOf(worker)) {
    const TrialState& trial = trials_.at(number);
    double done = static_cast<double>(trial.requests_done);
    for (const SliceState& slice : trial.slices) {
      const double each = std::max(specs_[slice.task].requests_per_document, 1e-9);
      const double all = static_cast<double>(slice.documents.size()) * each;
      const double of_slice = std::min(done, all);
      done -= of_slice;
      if (!slice.reported) seconds += (all - of_slice) / each * work_.estimate(slice.task).device_s;
    }
  }
  return seconds;
}

// Seconds that the worker has for a trial that must end before `until_us` (0: no limit), after all
// that it holds.
double RunMachine::SecondsFor(Holder worker, int64_t now, int64_t until_us) {
  if (until_us == 0) return kForever;
  return Seconds(until_us - now) - SlownessOf(worker) * HeldSeconds(worker);
}

double RunMachine::SlownessOf(Holder worker) {
  return std::max(backups_.slowness(DeviceOf(worker)), ExcessOf(worker));
}

double RunMachine::SecondsOf(const TrialState& trial, double slow) const {
  TrialSeconds seconds(work_, lease_s_, slow);
  for (const SliceState& slice : trial.slices) {
    if (!slice.reported) seconds.Add(slice.task, slice.documents.size());
  }
  return seconds.total();
}

// Whether the worker has time for one of the documents at least.
bool RunMachine::EndsInTime(const Theft& theft, Holder worker, double seconds) {
  return std::any_of(theft.documents.begin(), theft.documents.end(),
                     [&, slow = SlownessOf(worker)](const WaitingDocuments& documents) {
                       return TrialSeconds(work_, lease_s_, slow).Room(documents.task, 1, seconds) >
                              0;
                     });
}

std::optional<double> RunMachine::shortest_s() const {
  std::optional<double> shortest = ShortestTrialSeconds(work_, lease_s_);
  if (trials_table_.queued() == 0) return shortest;
  trials_.ForEach([&](int64_t number, const TrialState& trial) {
    if (!trials_table_.has(number) || trials_table_.leased(number)) return;
    shortest = std::min(shortest.value_or(kForever), SecondsOf(trial, 1));
  });
  return shortest;
}

std::vector<ShortenOrder> RunMachine::HandBack(Holder worker, int64_t trial, int attempt,
                                               int64_t now) {
  std::vector<ShortenOrder> orders;
  if (!trials_table_.Holds(worker, trial, attempt)) return orders;
  TrialState& state = trials_.at(trial);
  if (state.counterpart >= 0) return orders;  // another worker computes it too
  for (const SliceState& slice : state.slices) {
    if (slice.reported || slice.documents.size() < 2) continue;
    orders.push_back(
        {worker, trial, attempt, slice.task, slice.documents.first, slice.documents.first + 1});
  }
  if (!orders.empty() && state.shorten_us == 0) state.shorten_us = now;
  stealing_.Forget(DeviceOf(worker));
  return orders;
}

}  // namespace evald
