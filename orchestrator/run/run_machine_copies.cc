// What is computed a second time: copies of late trials, of which whichever commits first counts.
#include "orchestrator/run/run_machine.h"

namespace evald {
namespace {

double Seconds(int64_t micros) { return static_cast<double>(micros) / 1e6; }

}  // namespace

bool RunMachine::is_copy(int64_t trial) const {
  const auto found = trials_.find(trial);
  return found != trials_.end() && found->second.copy;
}

void RunMachine::ReportBegun(const std::string& worker, int64_t now) {
  if (!policy_->doubles_stragglers()) return;
  std::vector<BegunTrial> begun;
  for (const Grant& grant : trials_table_.HeldBy(worker)) {
    const TrialState& trial = trials_.at(grant.item);
    if (trial.copy || trial.copies >= Doubling::kCopiesMax || partner_.count(grant.item) > 0)
      continue;
    if (AllReported(grant.item)) continue;  // it only has to say that it is done
    FreshSeconds fresh(lease_s_);
    for (const SliceState& slice : trial.slices) {
      if (!slice.reported) fresh.Add(costs_, slice.task, slice.documents.size());
    }
    begun.push_back({grant.item, Seconds(trial.since_us), fresh.total()});
  }
  doubling_.Report(Seconds(now), DeviceOf(worker), begun);
}

std::optional<TrialLease> RunMachine::LeaseCopy(const std::string& worker, int64_t now) {
  if (has_trials() || !policy_->doubles_stragglers() || relief_[worker] > now) return std::nullopt;
  if (stealing_.Next(Seconds(now), DeviceOf(worker))) return std::nullopt;
  const auto of_device = doubling_.Next(Seconds(now), DeviceOf(worker), [&](int device) {
    ReportBegun(worker_of_[static_cast<size_t>(device)], now);
  });
  if (!of_device) return std::nullopt;
  const int64_t of = of_device->trial;
  const int64_t copy = next_trial_++;
  TrialState& late = trials_.at(of);
  ++late.copies;
  const auto [holder, attempt] = trials_table_.HolderOf(of).value();
  TrialState& twin = trials_[copy];
  twin.copy = true;
  for (const SliceState& slice : late.slices) {
    if (slice.reported) continue;
    twin.slices.push_back(slice);
    const std::string file =
        FileOf(slice, of, attempt);  // what is in it need not be computed again
    twin.slices.back().salvage.insert(twin.slices.back().salvage.end(), {file, file + ".part"});
  }
  partner_[of] = copy;
  partner_[copy] = of;
  trials_table_.Add(copy, copy);
  ReportBegun(holder, now);
  return LeaseOf(*trials_table_.Lease(worker, now), now);
}

// What one of a trial and its copy has committed, the other need not do.
void RunMachine::Supersede(int64_t trial, size_t task, DocumentRange documents) {
  const auto partner = partner_.find(trial);
  if (partner == partner_.end()) return;
  const int64_t other = partner->second;
  for (SliceState& slice : trials_.at(other).slices) {
    const DocumentRange& of = slice.documents;
    if (slice.task == task && documents.first <= of.first && of.end <= documents.end)
      slice.reported = true;
  }
  if (AllReported(other)) Withdraw(other);
}

void RunMachine::Withdraw(int64_t trial) {
  Part(trial);
  const auto held = trials_table_.Withdraw(trial);
  if (!held) return;  // it was given up, and is complete all the same
  if (!held->first.empty()) withdrawn_.push_back({held->first, trial, held->second});
  trials_.erase(trial);
}

// It failed, or its worker did. Its half-written files can be resumed by the trial's next attempt.
void RunMachine::EndCopy(int64_t trial, int attempt) {
  const auto partner = partner_.find(trial);
  for (const SliceState& of : trials_.at(trial).slices) {
    if (of.reported || partner == partner_.end()) continue;
    const std::string file = FileOf(of, trial, attempt);
    for (SliceState& slice : trials_.at(partner->second).slices) {
      if (of.task != slice.task || of.documents.first != slice.documents.first) continue;
      slice.salvage.insert(slice.salvage.end(), {file, file + ".part"});
    }
  }
  const int64_t leased_us = trials_.at(trial).since_us;
  const auto holder =
      partner == partner_.end() ? std::nullopt : trials_table_.HolderOf(partner->second);
  Part(trial);
  trials_table_.Withdraw(trial);
  trials_.erase(trial);
  if (holder) ReportBegun(holder->first, leased_us);  // another copy may be due
}

void RunMachine::Part(int64_t trial) {
  const auto partner = partner_.find(trial);
  if (partner == partner_.end()) return;
  partner_.erase(partner->second);
  partner_.erase(trial);
}

}  // namespace evald
