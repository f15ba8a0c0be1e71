// Workers: they ask for trials, compute them, and report slices and ends.
#include <algorithm>
#include <map>

#include "orchestrator/schedule/slice.h"
#include "orchestrator/simulate/simulation.h"

namespace evald {
namespace {

constexpr double kAskAheadSeconds = 1;  // a worker asks before its engine runs dry

}  // namespace

// ---- asking

void Simulation::ScheduleWant(int64_t d, double at) {
  if (devices_[d].wants) return;  // it has asked
  Push(at, Kind::kWant, d, 0, ++devices_[d].want_version);
}

// A warm device asks for the next trial before the last has run dry; any other device asks when it
// is free. How early it asks is set in seconds, not in documents: as many long ones as there are
// places would wait for minutes.
void Simulation::ScheduleNextWant(int64_t d) {
  ScheduleWant(d, std::max(now_, devices_[d].queue.PlaceFreeAt(now_) - kAskAheadSeconds));
}

void Simulation::OnWant(const Event& event) {
  SimDevice& device = devices_[event.a];
  if (device.lost || device.wants || event.version != device.want_version) return;
  device.queue.Forget(now_);
  device.wants = true;
  Hear(event.a, news::Want{1});
  if (device.wants) Beat();
}

// ---- computing

double Simulation::PrepareSeconds(const SimTrial& trial, SimDevice* device) {
  if (decouplings_.prepare_once) return 0;
  double seconds = 0;
  if (!decouplings_.stay_warm) device->prepared.assign(device->prepared.size(), false);
  for (const SimSlice& slice : trial.slices) {
    const auto dataset = static_cast<size_t>(tasks_[slice.task].dataset);
    if (device->prepared[dataset]) continue;
    device->prepared[dataset] = true;
    seconds += cluster_.prepare_s;
  }
  return seconds;
}

void Simulation::StartTrial(int64_t d, int64_t number) {
  SimDevice& device = devices_[d];
  SimTrial& trial = trials_[number];
  ++result_.trials;
  if (trial.backup) {
    ++result_.trials_backed_up;
    for (const SimSlice& slice : trial.slices) {
      for (int64_t i = slice.documents.first; i < slice.documents.end; ++i)
        result_.documents_again += kept(slice.task, i, d) ? 0 : 1;
    }
  }
  device.trials.push_back(number);
  if (decouplings_.stay_warm) return RunDocuments(number, now_);
  // A process of its own: starts, loads, and only then computes.
  device.pending = number;
  device.spent[kSimStart] += cluster_.start_s;
  Span(d, "start", now_, now_ + cluster_.start_s, "");
  if (decouplings_.load_once) {
    const double pull = weights_bytes_ / cluster_.pcie_bytes_per_s;
    device.spent[kSimLoad] += pull;
    Span(d, "load", now_ + cluster_.start_s, now_ + cluster_.start_s + pull, "");
    Push(now_ + cluster_.start_s + pull, Kind::kReady, d);
  } else {
    // the transfer begins then
    Push(now_ + cluster_.start_s, Kind::kStorage, NodeOf(d), d + 1, -1);
  }
}

void Simulation::RunDocuments(int64_t number, double at) {
  SimTrial& trial = trials_[number];
  SimDevice& device = devices_[trial.device];
  const double prepare = PrepareSeconds(trial, &device);
  if (prepare > 0) {
    device.spent[kSimPrepare] += prepare;
    Span(trial.device, "prepare", at, at + prepare, "");
  }
  const double begin = at + prepare + cluster_.lease_s;
  std::vector<PlacedDocument>& documents = placed_;
  documents.clear();
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    const SimSlice& slice = trial.slices[s];
    const SimTask& task = tasks_[slice.task];
    for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
      if (kept(slice.task, i, trial.device)) continue;
      double place_s = task.place_s[i];
      // The prefix is computed again where a group is cut.
      const bool follows = s > 0 && trial.slices[s - 1].task == slice.task;
      if (i == slice.documents.first && !follows && !task.begins_group(i))
        place_s += task.prefix_s * cluster_.places;
      documents.push_back(
          {number, static_cast<int>(s), i, place_s * SlownessOf(trial.device), 0, 0});
    }
  }
  device.queue.Add(begin, &documents);
  std::vector<double> ends(trial.slices.size(), now_);
  for (const PlacedDocument& document : documents)
    ends[document.slice] = std::max(ends[document.slice], document.end);
  if (options_.faults.trial_failure_rate > 0 &&
      std::uniform_real_distribution<>()(random_) < options_.faults.trial_failure_rate) {
    const double share = std::uniform_real_distribution<>()(random_);
    const double end = std::max(begin, *std::max_element(ends.begin(), ends.end()));
    Push(begin + share * (end - begin), Kind::kTrialFails, number);
  }
  if (decouplings_.use_priors && !trial.backup) WatchOverdue(trial, documents);
  ScheduleSlices(number, ends);
  if (decouplings_.stay_warm && decouplings_.score_elsewhere) ScheduleNextWant(trial.device);
}

void Simulation::ScheduleSlices(int64_t number, const std::vector<double>& ends) {
  SimTrial& trial = trials_[number];
  ++trial.version;
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    if (!trial.slices[s].done)
      Push(ends[s], Kind::kSlice, number, static_cast<int64_t>(s), trial.version);
  }
}

// After documents have been taken from among others.
void Simulation::ScheduleAllSlices(SimDevice* device) {
  device->report_due = 0;
  std::map<int64_t, std::vector<double>> ends;
  for (const int64_t number : device->trials) {
    if (number != device->pending) ends[number].assign(trials_[number].slices.size(), now_);
  }
  for (const PlacedDocument& document : device->queue.documents()) {
    const auto trial = ends.find(document.trial);
    if (trial == ends.end()) continue;
    double& end = trial->second[static_cast<size_t>(document.slice)];
    end = std::max(end, document.end);
  }
  for (const auto& [number, slice_ends] : ends) {
    if (trials_[number].slices_left > 0) ScheduleSlices(number, slice_ends);
  }
}

// ---- what is finished

void Simulation::OnSlice(const Event& event) {
  SimTrial& trial = trials_[event.a];
  if (trial.over || event.version != trial.version) return;
  SimSlice& slice = trial.slices[event.b];
  if (slice.done) return;
  slice.done = true;
  --trial.slices_left;
  double place_s = 0, longest = 0;
  won_.clear();
  for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
    const double seconds = tasks_[slice.task].place_s[i] * SlownessOf(trial.device);
    place_s += seconds;
    longest = std::max(longest, seconds);
    auto committed = committed_[slice.task].begin() + i;
    if (*committed) continue;
    if (decouplings_.score_elsewhere) *committed = true;
    won_.push_back(i);
  }
  trial.device_s += place_s / cluster_.places;
  if (!decouplings_.score_elsewhere) {
    trial.score_s += static_cast<double>(slice.documents.size()) * tasks_[slice.task].score_s;
    if (trial.slices_left > 0) return;
    devices_[trial.device].spent[kSimScore] += trial.score_s;
    Span(trial.device, "score", now_, now_ + trial.score_s, "");
    return Push(now_ + trial.score_s, Kind::kTrialOver, event.a);
  }
  // Otherwise another worker has committed it, or another attempt
  if (run_.SliceReported(trial.device, trial.number, trial.attempt, slice.task, slice.documents)) {
    Measure(trial, slice, place_s, longest);
    run_.GenerationsCommitted(slice.task, won_, "", trial.number, trial.attempt);
    TakeRevoked();
  }
  ServeScoring();
  if (trial.slices_left == 0) OnTrialOver(event.a);
}

// As a run measures: backups and later attempts take over what others have done.
void Simulation::Measure(const SimTrial& trial, const SimSlice& slice, double place_s,
                         double longest_s) {
  if (!decouplings_.use_priors || trial.backup || trial.attempt > 1) return;
  run_.Measured(trial.device, slice.task, slice.documents.size(), place_s / cluster_.places,
                longest_s);
}

void Simulation::OnTrialOver(int64_t number) {
  SimTrial& trial = trials_[number];
  if (trial.over) return;
  if (options_.keep_spans) {
    std::string label;
    for (const SimSlice& slice : trial.slices) {
      if (label.find(tasks_[slice.task].name) == std::string::npos)
        label += (label.empty() ? "" : " ") + tasks_[slice.task].name;
    }
    Span(trial.device, "generate", trial.begin,
         now_ - (decouplings_.score_elsewhere ? 0 : trial.score_s), label);
  }
  if (!decouplings_.score_elsewhere) {  // nothing is there before the scores are
    for (const SimSlice& slice : trial.slices) {
      run_.SliceReported(trial.device, trial.number, trial.attempt, slice.task, slice.documents);
      auto committed = committed_[slice.task].begin();
      std::fill(committed + slice.documents.first, committed + slice.documents.end, true);
      if (decouplings_.use_priors) {
        double place_s = 0, longest = 0;
        for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
          const double seconds = tasks_[slice.task].place_s[i] * SlownessOf(trial.device);
          place_s += seconds;
          longest = std::max(longest, seconds);
        }
        Measure(trial, slice, place_s, longest);
      }
      CountScored(slice.task, slice.documents);
    }
  }
  run_.TrialDone(trial.device, trial.number, trial.attempt);
  TakeRevoked();
  TellChanges();
  fleet_.Heard(
      static_cast<size_t>(trial.device),
      news::TrialOver{{view_.number, trial.number, trial.attempt}, true, true, trial.device_s},
      micros());
  EndOnDevice(number);
  if (!decouplings_.stay_warm || !decouplings_.score_elsewhere) {
    devices_[trial.device].queue.Forget(now_);
    ScheduleWant(trial.device, now_);
  }
}

// The device has it no longer.
void Simulation::EndOnDevice(int64_t number) {
  SimTrial& trial = trials_[number];
  trial.over = true;
  trial.slices = {};
  std::erase(devices_[trial.device].trials, number);
}

}  // namespace evald
