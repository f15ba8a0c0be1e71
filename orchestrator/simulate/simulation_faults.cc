// Trials that fail, and a node that is lost.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/simulate/simulation.h"

namespace evald {

// A document has to be begun again: nothing can be over before it could be.
void Simulation::Interrupted(const PlacedDocument& document) {
  if (document.begin > now_) return;
  ++result_.documents_again;
  result_.left_bound_s = std::max(result_.left_bound_s, now_ + document.place_s);
}

// Lines of what was finished are in half-written files, which the next attempt on that host
// resumes.
void Simulation::KeepFinished(int64_t number) {
  SimTrial& trial = trials_[number];
  if (kept_.empty()) {
    for (const SimTask& task : tasks_) kept_.emplace_back(task.place_s.size(), 0);
  }
  std::vector<std::vector<bool>> unfinished;
  for (const SimSlice& slice : trial.slices)
    unfinished.emplace_back(static_cast<size_t>(slice.documents.size()), false);
  for (const PlacedDocument& document : devices_[trial.device].queue.documents()) {
    if (document.trial != number || document.end <= now_) continue;
    unfinished[document.slice][document.document - trial.slices[document.slice].documents.first] =
        true;
  }
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    const SimSlice& slice = trial.slices[s];
    if (slice.done) continue;
    for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
      if (!unfinished[s][i - slice.documents.first])
        kept_[slice.task][i] = NodeOf(trial.device) + 1;
    }
  }
}

// The same of the trial that this one is a backup of.
void Simulation::KeepFinishedOf(int64_t backup) {
  const int64_t original = run_.counterpart(backup);
  const auto held = run_.trials().HolderOf(original);
  if (!held) return;
  for (const int64_t number : devices_[held->first].trials) {
    if (trials_[number].number == original) return KeepFinished(number);
  }
}

void Simulation::OnTrialFails(int64_t number) {
  SimTrial& trial = trials_[number];
  if (trial.over) return;
  ++result_.trials_failed;
  SimDevice& device = devices_[trial.device];
  for (const PlacedDocument& document : device.queue.documents()) {
    if (document.trial == number && document.end > now_) Interrupted(document);
  }
  KeepFinished(number);
  device.queue.Drop(now_, [&](const PlacedDocument& document) { return document.trial == number; });
  run_.TrialFailed(trial.device, trial.number, trial.attempt, "it failed", true);
  came_back_ = true;
  TakeRevoked();
  TellChanges();
  fleet_.Heard(static_cast<size_t>(trial.device),
               news::TrialOver{{view_.number, trial.number, trial.attempt}}, micros());
  EndOnDevice(number);
  ScheduleAllSlices(&device);
  ScheduleWant(trial.device, now_);
}

// Scores that were being made there are made again elsewhere, of generations that are in the
// service's hands.
void Simulation::LoseSlots() {
  const int left = cluster_.score_slots() - cluster_.score_slots_per_node;
  for (int slot = left; slot < cluster_.score_slots(); ++slot)
    run_.MetricProcessLost(slot, "it is lost");
  pool_.Remove(left);
  run_.SetScoreSlots(left);
  ServeScoring();
}

void Simulation::OnNodeLost() {
  const int lost = cluster_.nodes - 1;
  LoseStaging(lost);
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (NodeOf(static_cast<int64_t>(d)) != lost) continue;
    SimDevice& device = devices_[d];
    device.lost = true;
    for (const PlacedDocument& document : device.queue.documents()) {
      const SimTrial& trial = trials_[document.trial];
      if (!trial.over && !trial.slices[document.slice].done) Interrupted(document);
    }
    device.queue.Clear(now_);
    while (!device.trials.empty()) EndOnDevice(device.trials.back());
  }
  fleet_.HostIs(fmt::format("n{}", lost), HostNews::kLeft, micros());
  Settle();
  LoseSlots();
  const int left = cluster_.devices() - cluster_.devices_per_node;
  result_.left_bound_s = std::max(result_.left_bound_s, now_ + DeviceSecondsLeft() / left);
}

// Device seconds of the documents that no device has, or that are under way on the remaining
// devices.
double Simulation::DeviceSecondsLeft() const {
  double place_s = 0;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (int64_t i = 0; i < tasks_[t].documents; ++i)
      place_s += committed_[t][i] ? 0 : tasks_[t].place_s[i];
  }
  for (const SimDevice& device : devices_) {
    for (const int64_t number : device.trials) {
      if (trials_[number].backup || number == device.pending) continue;
      for (const SimSlice& slice : trials_[number].slices) {
        for (int64_t i = slice.documents.first; i < slice.documents.end; ++i)
          place_s -= committed_[slice.task][i] ? 0 : tasks_[slice.task].place_s[i];
      }
    }
    for (const PlacedDocument& document : device.queue.documents())
      place_s += std::max(0.0, document.end - std::max(now_, document.begin));
  }
  return place_s / cluster_.places;
}

}  // namespace evald
