// Backups of late trials. A slice counts for whichever of the two commits it first.
#include <algorithm>
#include <cmath>

#include "orchestrator/run_machine/run_machine.h"

namespace evald {
namespace {

// A backup has so long to begin before a trial that has been quiet for too long is taken back.
constexpr double kStalledSeconds = 30;
constexpr int kStallsDoubled = 8;

}  // namespace

bool RunMachine::is_backup(int64_t trial) const {
  const TrialState* of = trials_.Find(trial);
  return of != nullptr && of->backup;
}

int64_t RunMachine::counterpart(int64_t trial) const {
  const TrialState* of = trials_.Find(trial);
  return of == nullptr ? -1 : of->counterpart;
}

// The set of trials that the worker has begun has changed. While documents are open nobody asks for
// backups: the report waits.
void RunMachine::NoteBegun(Holder worker, int64_t now) {
  if (!policy_->backs_up_stragglers()) return;
  if (work_.documents() == 0) return ReportBegun(worker, now);
  const int device = DeviceOf(worker);
  const auto at = static_cast<size_t>(device);
  if (at >= untold_of_.size()) untold_of_.resize(at + 1);
  if (untold_of_[at]) return;
  untold_of_[at] = true;
  untold_.push_back(device);
}

void RunMachine::ReportUntold(int64_t now) {
  for (const int device : untold_) {
    const auto at = static_cast<size_t>(device);
    if (untold_of_[at]) ReportBegun(worker_of_[at], now);
    untold_of_[at] = false;
  }
  untold_.clear();
}

void RunMachine::ReportBegun(Holder worker, int64_t now) {
  if (!policy_->backs_up_stragglers()) return;
  std::vector<BegunTrial> begun;
  for (const int64_t number : trials_table_.ItemsOf(worker)) {
    const TrialState& trial = trials_.at(number);
    if (trial.backup || trial.backups >= Backups::kBackupsMax || trial.counterpart >= 0) continue;
    if (AllReported(trial)) continue;  // it is about to report the trial done
    if (IsCommand(trial)) continue;    // a program of the user's runs once
    begun.push_back(
        {number, Seconds(trial.since_us), FreshOf(trial).total(), Seconds(trial.quiet_us)});
  }
  backups_.Report(Seconds(now), DeviceOf(worker), begun);
}

FreshSeconds RunMachine::FreshOf(const TrialState& trial) const {
  FreshSeconds fresh(lease_s_);
  for (const SliceState& slice : trial.slices) {
    if (!slice.reported) fresh.Add(costs_, slice.task, slice.documents.size());
  }
  return fresh;
}

// A program of the user's, which has a time limit of its own.
bool RunMachine::IsCommand(const TrialState& trial) const {
  return std::any_of(trial.slices.begin(), trial.slices.end(),
                     [this](const SliceState& slice) { return specs_[slice.task].command; });
}

bool RunMachine::IsStalled(Holder worker, const TrialState& trial, int64_t now) const {
  if (trial.slice_came || AllReported(trial) || IsCommand(trial)) return false;
  const auto at = static_cast<size_t>(worker);
  const int device = at < device_of_.size() ? std::max(0, device_of_[at]) : 0;
  const double patience_s =
      std::ldexp(backups_.quiet_s(device, FreshOf(trial).total()) + kStalledSeconds,
                 std::min(stalls_, kStallsDoubled));
  return Seconds(now - trial.quiet_us) > patience_s;
}

std::vector<Grant> RunMachine::TakeStalled(Holder worker, int64_t now) {
  std::vector<Grant> taken;
  for (const Grant& grant : trials_table_.HeldBy(worker)) {
    const TrialState& trial = trials_.at(grant.item);
    if (!IsStalled(worker, trial, now)) continue;
    const auto other =
        trial.counterpart < 0 ? std::nullopt : trials_table_.HolderOf(trial.counterpart);
    if (other && !IsStalled(other->first, trials_.at(trial.counterpart), now)) continue;
    taken.push_back(grant);
  }
  for (const Grant& grant : taken) TrialGivenBack(worker, grant.item, grant.attempt);
  stalls_ += taken.empty() ? 0 : 1;
  return taken;
}

std::optional<TrialLease> RunMachine::LeaseBackup(Holder worker, int64_t now, int64_t until_us) {
  if (has_trials() || !policy_->backs_up_stragglers() || StealWaitOf(worker) > now)
    return std::nullopt;
  if (stealing_.Next(Seconds(now), DeviceOf(worker))) return std::nullopt;
  ReportUntold(now);
  const auto of_device = backups_.Next(Seconds(now), DeviceOf(worker), [&](int device) {
    ReportBegun(worker_of_[static_cast<size_t>(device)], now);
  });
  if (!of_device) return std::nullopt;
  const int64_t of = of_device->trial;
  if (SecondsOf(trials_.at(of), SlownessOf(worker)) > SecondsFor(worker, now, until_us))
    return std::nullopt;
  const int64_t number = next_trial_++;
  TrialState& late = trials_.at(of);
  ++late.backups;
  const auto [holder, attempt] = trials_table_.HolderOf(of).value();
  trials_.Add(number, {});
  TrialState& second = trials_.at(number);
  second.backup = true;
  for (const SliceState& slice : late.slices) {
    if (slice.reported) continue;
    second.slices.push_back(slice);
    // Documents in it need not be computed again
    const std::string file = FileOf(slice, of, attempt);
    second.slices.back().salvage.insert(second.slices.back().salvage.end(), {file, file + ".part"});
  }
  late.counterpart = number;
  second.counterpart = of;
  const Grant grant = trials_table_.AddLeased(number, number, worker, now);
  ReportBegun(holder, now);
  return LeaseOf(grant, now);
}

// Marks the slices that one of a trial and its backup has committed as reported in the other.
// Revokes the other if none is left.
void RunMachine::Supersede(int64_t trial, size_t task, DocumentRange documents) {
  const int64_t other = trials_.at(trial).counterpart;
  if (other < 0) return;
  for (SliceState& slice : trials_.at(other).slices) {
    const DocumentRange& of = slice.documents;
    if (slice.task == task && documents.first <= of.first && of.end <= documents.end)
      slice.reported = true;
  }
  if (AllReported(other)) Revoke(other);
}

void RunMachine::Revoke(int64_t trial) {
  Part(trial);
  const auto held = trials_table_.Revoke(trial);
  if (!held) return;  // it was given up, and is complete all the same
  if (held->first != kNobody) revoked_.push_back({held->first, trial, held->second});
  trials_.Erase(trial);
}

// Ends a backup that failed, or whose worker did. The trial's next attempt can resume from its
// half-written files.
void RunMachine::EndBackup(int64_t trial, int attempt) {
  const int64_t counterpart = trials_.at(trial).counterpart;
  for (const SliceState& of : trials_.at(trial).slices) {
    if (of.reported || counterpart < 0) continue;
    const std::string file = FileOf(of, trial, attempt);
    for (SliceState& slice : trials_.at(counterpart).slices) {
      if (of.task != slice.task || of.documents.first != slice.documents.first) continue;
      slice.salvage.insert(slice.salvage.end(), {file, file + ".part"});
    }
  }
  const int64_t leased_us = trials_.at(trial).since_us;
  const auto holder = counterpart < 0 ? std::nullopt : trials_table_.HolderOf(counterpart);
  Part(trial);
  trials_table_.Revoke(trial);
  trials_.Erase(trial);
  if (holder) ReportBegun(holder->first, leased_us);  // another backup may be due
}

void RunMachine::Part(int64_t trial) {
  TrialState& of = trials_.at(trial);
  if (of.counterpart >= 0) trials_.at(of.counterpart).counterpart = -1;
  of.counterpart = -1;
}

}  // namespace evald
