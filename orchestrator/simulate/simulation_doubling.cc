// Copies of late trials, on idle devices: whichever commits first counts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "orchestrator/simulate/simulation.h"

namespace evald {

bool Simulation::doubles() const {
  return policy_->doubles_stragglers() && decouplings_.stay_warm && decouplings_.score_elsewhere;
}

// Of a trial that waits behind others, all is begun when it was given: it is late all the same.
void Simulation::ReportBegun(int64_t d) {
  if (!doubles()) return;
  const Device& device = devices_[d];
  const std::vector<int64_t>& numbers = device.trials;  // in ascending order
  std::vector<double> since(numbers.size(), std::numeric_limits<double>::infinity());
  for (const PlacedDocument& document : device.queue.documents()) {
    if (document.begin > now_) break;
    if (document.end <= now_) continue;
    const auto trial = std::lower_bound(numbers.begin(), numbers.end(), document.trial);
    if (trial == numbers.end() || *trial != document.trial) continue;
    double& first = since[static_cast<size_t>(trial - numbers.begin())];
    first = std::min(first, document.begin);
  }
  std::vector<BegunTrial> begun;
  for (size_t i = 0; i < numbers.size(); ++i) {
    const int64_t number = numbers[i];
    const Trial& trial = trials_[number];
    if (trial.copy || trial.partner >= 0 || trial.copies >= Doubling::kCopiesMax) continue;
    FreshSeconds fresh(cluster_.lease_s);
    int64_t documents = 0;  // none when all that was left has been taken back
    for (const Slice& slice : trial.slices) {
      if (slice.done) continue;
      fresh.Add(costs_, slice.task, slice.documents.size());
      documents += slice.documents.size();
    }
    if (documents == 0) continue;
    begun.push_back({number, std::isinf(since[i]) ? trial.begin : since[i], fresh.total()});
  }
  doubling_.Report(now_, static_cast<int>(d), begun);
  if (!idle_.empty()) WatchLate();
}

// Somebody who is idle looks when the next trial is late.
void Simulation::WatchLate() {
  const auto at = doubling_.next_at();
  if (!doubles() || idle_.empty() || !at) return;
  const double due = std::max(*at, now_);
  if (late_watched_ && *late_watched_ <= due) return;
  late_watched_ = due;
  Push(due, Kind::kLate, 0);
}

void Simulation::OnLate() {
  if (!late_watched_ || now_ < *late_watched_) return;  // an earlier look has come instead
  late_watched_.reset();
  const auto helper = std::find_if(idle_.begin(), idle_.end(),
                                   [this](int64_t d) { return devices_[d].queue.end() <= now_; });
  // Who has something under way still looks again when it ends.
  if (helper == idle_.end()) return;
  const bool doubled = Double(*helper);
  const auto next = doubling_.next_at();
  if (doubled || (next && *next > now_)) WatchLate();
}

bool Simulation::Double(int64_t helper) {
  const auto device = static_cast<int>(helper);
  if (work_.documents() > 0 || stealing_.Next(now_, device)) return false;
  const auto late = doubling_.Next(now_, device, [this](int d) { ReportBegun(d); });
  if (!late) return false;
  KeepFinished(late->trial);
  const auto number = static_cast<int64_t>(trials_.size());
  Trial copy;
  copy.copy = true;
  copy.partner = late->trial;
  for (const Slice& slice : trials_[late->trial].slices) {
    if (!slice.done) AddSlices(helper, slice.task, slice.documents, &copy);
  }
  for (const Slice& slice : copy.slices) {
    if (!slice.kept) result_.documents_again += slice.documents.size();
  }
  trials_[late->trial].partner = number;
  ++trials_[late->trial].copies;
  ++result_.trials_doubled;
  idle_.erase(helper);
  StartTrial(helper, std::move(copy));
  ReportBegun(late->device);
  return true;
}

// Slices whose documents another trial has committed need not be done any more.
void Simulation::CloseCommitted(int64_t number) {
  Trial& trial = trials_[number];
  for (Slice& slice : trial.slices) {
    if (slice.done) continue;
    const auto documents = committed_[slice.task].begin();
    if (!std::all_of(documents + slice.documents.first, documents + slice.documents.end,
                     [](bool done) { return done; }))
      continue;
    slice.done = true;
    --trial.slices_left;
  }
  if (trial.slices_left == 0) Withdraw(number);
}

// The engine cannot forget single requests: while others are under way, those of this trial end
// unread.
void Simulation::Withdraw(int64_t number) {
  Trial& trial = trials_[number];
  trial.over = true;
  Part(&trial);
  trial.slices = {};
  Device& device = devices_[trial.device];
  std::erase(device.trials, number);
  const auto& documents = device.queue.documents();
  const bool others =
      std::any_of(documents.begin(), documents.end(), [this](const PlacedDocument& document) {
        return document.begin <= now_ && document.end > now_ && !trials_[document.trial].over;
      });
  const auto withdrawn = [this](const PlacedDocument& document) {
    return trials_[document.trial].over;
  };
  if (others) {
    device.queue.Drop(now_, withdrawn);
  } else {
    device.queue.Stop(now_, withdrawn);
  }
  ScheduleAllSlices(&device);
  Report(trial.device);
  idle_.erase(trial.device);
  Push(now_, Kind::kAsk, trial.device, 0, ++device.ask_version);
}

void Simulation::Part(Trial* trial) {
  if (trial->partner >= 0) trials_[trial->partner].partner = -1;
  trial->partner = -1;
}

}  // namespace evald
