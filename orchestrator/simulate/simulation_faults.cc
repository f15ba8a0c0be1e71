#include <algorithm>

#include "orchestrator/simulate/simulation.h"

namespace evald {

// What is not in a finished file is open again; where the device scores, nothing is finished before
// the scores are. A copy's documents are those of the trial that it is of.
void Simulation::GiveBack(Trial* trial) {
  trial->over = true;
  const int64_t partner = trial->partner;
  Part(trial);
  if (trial->copy && partner >= 0) ReportBegun(trials_[partner].device);  // another copy may be due
  for (auto slice = trial->slices.rbegin(); slice != trial->slices.rend() && !trial->copy;
       ++slice) {
    if (slice->done && decouplings_.score_elsewhere) continue;
    work_.PutBack(slice->task, slice->documents);
  }
  trial->slices = {};
}

// A document has to be begun again: nothing can be over before it could be.
void Simulation::Interrupted(const PlacedDocument& document) {
  if (document.begin > now_) return;
  ++result_.documents_again;
  result_.left_bound_s = std::max(result_.left_bound_s, now_ + document.place_s);
}

// Lines of what was finished are in half-written files, which the next attempt on that host
// resumes.
void Simulation::KeepFinished(int64_t number) {
  Trial& trial = trials_[number];
  if (kept_.empty()) {
    for (const SimTask& task : tasks_) kept_.emplace_back(task.place_s.size(), 0);
  }
  std::vector<std::vector<bool>> unfinished;
  for (const Slice& slice : trial.slices)
    unfinished.emplace_back(static_cast<size_t>(slice.documents.size()), false);
  for (const PlacedDocument& document : devices_[trial.device].queue.documents()) {
    if (document.trial != number || document.end <= now_) continue;
    unfinished[document.slice][document.document - trial.slices[document.slice].documents.first] =
        true;
  }
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    const Slice& slice = trial.slices[s];
    if (slice.done) continue;
    for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
      if (!unfinished[s][i - slice.documents.first])
        kept_[slice.task][i] = NodeOf(trial.device) + 1;
    }
  }
}

void Simulation::OnTrialFails(int64_t number) {
  Trial& trial = trials_[number];
  if (trial.over) return;
  ++result_.trials_failed;
  Device& device = devices_[trial.device];
  for (const PlacedDocument& document : device.queue.documents()) {
    if (document.trial == number && document.end > now_) Interrupted(document);
  }
  KeepFinished(number);
  device.queue.Drop(now_, [&](const PlacedDocument& document) { return document.trial == number; });
  std::erase(device.trials, number);
  GiveBack(&trial);
  ScheduleAllSlices(&device);
  if (stealing_began_) Report(trial.device);
  idle_.erase(trial.device);
  Push(now_, Kind::kAsk, trial.device, 0, ++device.ask_version);
  WakeIdle(work_.documents());
}

// Scores that were being made there are made again elsewhere, of generations that are in the
// service's hands.
void Simulation::LoseSlots() {
  const int left = cluster_.score_slots() - cluster_.score_slots_per_node;
  for (Scoring& scoring : scoring_) {
    if (scoring.slot < left) continue;
    scoring.slot = -1;
    pool_.Add(scoring.job);
  }
  pool_.Remove(left);
  work_.SetScoreSlots(left);
  ServeScoring();
}

void Simulation::OnNodeLost() {
  const int lost = cluster_.nodes - 1;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (NodeOf(static_cast<int64_t>(d)) != lost) continue;
    devices_[d].lost = true;
    for (const PlacedDocument& document : devices_[d].queue.documents()) {
      const Trial& trial = trials_[document.trial];
      if (!trial.over && !trial.slices[document.slice].done) Interrupted(document);
    }
    devices_[d].queue.Clear(now_);
    idle_.erase(static_cast<int64_t>(d));
    stealing_.Forget(static_cast<int>(d));
    doubling_.Forget(static_cast<int>(d));
    for (const int64_t number : devices_[d].trials) GiveBack(&trials_[number]);
    devices_[d].trials.clear();
  }
  LoseSlots();
  const int left = cluster_.devices() - cluster_.devices_per_node;
  work_.SetDevices(left);
  result_.left_bound_s = std::max(result_.left_bound_s, now_ + DeviceSecondsLeft() / left);
  WakeIdle(work_.documents());
  WatchLate();
}

// Of what is open, or is under way on devices that are left.
double Simulation::DeviceSecondsLeft() const {
  double place_s = 0;
  const auto add = [&](size_t task, const DocumentRange& documents) {
    for (int64_t i = documents.first; i < documents.end; ++i) place_s += tasks_[task].place_s[i];
  };
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (const DocumentRange& range : work_.ranges(t)) add(t, range);
  }
  for (const Device& device : devices_) {
    for (const PlacedDocument& document : device.queue.documents()) {
      place_s += std::max(0.0, document.end - std::max(now_, document.begin));
    }
  }
  return place_s / cluster_.places;
}

}  // namespace evald
