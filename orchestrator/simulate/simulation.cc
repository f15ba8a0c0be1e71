#include "orchestrator/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "orchestrator/schedule/slice.h"
#include "orchestrator/simulate/bound.h"

namespace evald {
namespace {

constexpr double kAskAheadSeconds = 1;  // a heartbeat

}  // namespace

double SimResult::bound_s(const SimCluster& cluster) const {
  return BoundOf({device_work_s, longest_request_s, first_generation_s, score_work_s}, cluster,
                 stage_s)
      .total_s();
}

Simulation::Simulation(const SimCluster& cluster, double weights_bytes,
                       const std::vector<SimTask>& tasks,
                       const std::vector<TaskEstimate>& estimates, Options options)
    : cluster_(cluster),
      weights_bytes_(weights_bytes),
      tasks_(tasks),
      options_(std::move(options)),
      policy_(MakePolicy(options_.policy, {cluster.lease_s, 0.01})),
      decouplings_(options_.decouplings.value_or(policy_->decouplings())),
      work_(cluster.devices(), cluster.places, cluster.score_slots()),
      random_(options_.seed),
      storage_(static_cast<size_t>(cluster.nodes), SharedLink(cluster.storage_bytes_per_s)),
      storage_version_(static_cast<size_t>(cluster.nodes), 0),
      stealing_(2 * cluster.lease_s),
      pool_(cluster.score_slots()),
      scored_(tasks.size(), 0) {
  for (size_t t = 0; t < tasks.size(); ++t) {
    costs_.Add({estimates[t], options_.weight});
    committed_.emplace_back(static_cast<size_t>(tasks[t].documents), false);
    work_.Add(estimates[t], {{0, tasks[t].documents}});
  }
  const int datasets = tasks.empty() ? 0 : tasks.back().dataset + 1;
  for (int d = 0; d < cluster.devices(); ++d) {
    devices_.emplace_back(cluster.places);
    if (!decouplings_.prepare_once)
      devices_.back().prepared.assign(static_cast<size_t>(datasets), false);
  }
  result_.task_scored_s.assign(tasks.size(), 0);
}

void Simulation::Push(double time, Kind kind, int64_t a, int64_t b, int64_t version) {
  events_.push({time, next_order_++, kind, a, b, version});
}

SimResult Simulation::Run() {
  if (options_.faults.node_lost_at_s) Push(*options_.faults.node_lost_at_s, Kind::kNodeLost, 0);
  BeginLoading();
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    now_ = event.time;
    ++result_.events;
    Handle(event);
  }
  return Finish();
}

void Simulation::Handle(const Event& event) {
  switch (event.kind) {
    case Kind::kStorage:
      return OnStorage(event);
    case Kind::kReady:
      return OnReady(event.a);
    case Kind::kAsk:
      return OnAsk(event);
    case Kind::kSlice:
      return OnSlice(event);
    case Kind::kTrialFails:
      return OnTrialFails(event.a);
    case Kind::kTrialOver:
      return OnTrialOver(event.a);
    case Kind::kScored:
      return OnScored(event);
    case Kind::kNodeLost:
      return OnNodeLost();
    case Kind::kHeartbeat:
      return OnHeartbeat();
    case Kind::kOverdue:
      return OnOverdue(event);
    case Kind::kLate:
      return OnLate();
  }
}

// ---- giving out

void Simulation::OnAsk(const Event& event) {
  Device& device = devices_[event.a];
  if (device.lost || event.version != device.ask_version) return;
  device.queue.Forget(now_);
  idle_.erase(event.a);
  if (GiveTrial(event.a)) return;
  // With nothing open, it asks again when it has begun all that it has and a place is free: it may
  // take from another then.
  const double again = std::max(device.queue.AllBegunAt(now_), device.queue.PlaceFreeAt(now_));
  if (again > now_) {
    Push(again, Kind::kAsk, event.a, 0, ++device.ask_version);
  } else {
    idle_.insert(event.a);
    WatchLate();
  }
}

// A warm device asks for the next trial before the last has run dry; another when it is free. That
// is a matter of seconds, not of documents: as many long ones as there are places would wait for
// minutes.
void Simulation::ScheduleAsk(int64_t d) {
  Device& device = devices_[d];
  Push(std::max(now_, device.queue.PlaceFreeAt(now_) - kAskAheadSeconds), Kind::kAsk, d, 0,
       ++device.ask_version);
}

// So many of them, or as many as there are, ask again.
void Simulation::WakeIdle(int64_t devices) {
  for (; devices > 0 && !idle_.empty(); --devices) {
    const int64_t d = *idle_.begin();
    idle_.erase(idle_.begin());
    Push(now_, Kind::kAsk, d, 0, ++devices_[d].ask_version);
  }
}

bool Simulation::GiveTrial(int64_t d) {
  return GiveOpen(d) || (policy_->doubles_stragglers() && Steal(d));
}

bool Simulation::GiveOpen(int64_t d) {
  const std::vector<Cut> cuts = policy_->Next(work_, static_cast<int>(d));
  if (cuts.empty()) return false;
  Trial trial;
  for (const Cut& cut : cuts) {
    for (const DocumentRange& range : work_.Take(cut.task, cut.documents))
      AddSlices(d, cut.task, range, &trial);
  }
  StartTrial(d, std::move(trial));
  return true;
}

// Documents whose lines lie on the device's host, in a half-written file, are slices of their own:
// there is nothing to compute.
void Simulation::AddSlices(int64_t d, size_t task, DocumentRange range, Trial* trial) {
  const auto kept = [&](int64_t document) {
    return !kept_.empty() && kept_[task][document] == NodeOf(d) + 1;
  };
  while (range.size() > 0) {
    Slice slice{task, {range.first, range.first + 1}, false, kept(range.first)};
    const int64_t most =
        std::min(range.end, range.first + SliceDocumentsMax(tasks_[task].slow_scoring));
    while (slice.documents.end < most && kept(slice.documents.end) == slice.kept)
      ++slice.documents.end;
    range.first = slice.documents.end;
    trial->slices.push_back(slice);
  }
}

double Simulation::PrepareSeconds(const Trial& trial, Device* device) {
  if (decouplings_.prepare_once) return 0;
  double seconds = 0;
  if (!decouplings_.stay_warm) device->prepared.assign(device->prepared.size(), false);
  for (const Slice& slice : trial.slices) {
    const auto dataset = static_cast<size_t>(tasks_[slice.task].dataset);
    if (device->prepared[dataset]) continue;
    device->prepared[dataset] = true;
    seconds += cluster_.prepare_s;
  }
  return seconds;
}

void Simulation::StartTrial(int64_t d, Trial trial) {
  Device& device = devices_[d];
  trial.device = static_cast<int>(d);
  trial.slices_left = trial.slices.size();
  trial.begin = now_;
  ++result_.trials;
  const auto number = static_cast<int64_t>(trials_.size());
  trials_.push_back(std::move(trial));
  device.trials.push_back(number);
  if (decouplings_.stay_warm) return RunDocuments(number, now_);
  // A process of its own: starts, loads, and only then computes.
  device.pending = number;
  device.spent[kStart] += cluster_.start_s;
  Span(d, "start", now_, now_ + cluster_.start_s, "");
  if (decouplings_.load_once) {
    const double pull = weights_bytes_ / cluster_.pcie_bytes_per_s;
    device.spent[kLoad] += pull;
    Span(d, "load", now_ + cluster_.start_s, now_ + cluster_.start_s + pull, "");
    Push(now_ + cluster_.start_s + pull, Kind::kReady, d);
  } else {
    Push(now_ + cluster_.start_s, Kind::kStorage, NodeOf(d), d + 1,
         -1);  // the transfer begins then
  }
}

void Simulation::RunDocuments(int64_t number, double at) {
  Trial& trial = trials_[number];
  Device& device = devices_[trial.device];
  const double prepare = PrepareSeconds(trial, &device);
  if (prepare > 0) {
    device.spent[kPrepare] += prepare;
    Span(trial.device, "prepare", at, at + prepare, "");
  }
  const double begin = at + prepare + cluster_.lease_s;
  std::vector<PlacedDocument> documents;
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    const Slice& slice = trial.slices[s];
    if (slice.kept) continue;
    const SimTask& task = tasks_[slice.task];
    for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
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
  // Of each slice, the first that takes longer than the longest is expected to.
  for (size_t i = 0, seen = trial.slices.size(); i < documents.size() && decouplings_.use_priors;
       ++i) {
    const auto slice = static_cast<size_t>(documents[i].slice);
    const double expected_s = work_.estimate(trial.slices[slice].task).request_s;
    if (slice == seen || trial.copy || documents[i].place_s <= expected_s * kOverdueGrowth)
      continue;
    seen = slice;
    WatchOverdue(documents[i], expected_s * kOverdueGrowth);
  }
  ScheduleSlices(number, ends);
  if (stealing_began_) Report(trial.device);
  if (decouplings_.stay_warm && decouplings_.score_elsewhere) ScheduleAsk(trial.device);
}

void Simulation::ScheduleSlices(int64_t number, const std::vector<double>& ends) {
  Trial& trial = trials_[number];
  ++trial.version;
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    if (!trial.slices[s].done)
      Push(ends[s], Kind::kSlice, number, static_cast<int64_t>(s), trial.version);
  }
}

// After documents have been taken from among others.
void Simulation::ScheduleAllSlices(Device* device) {
  std::map<int64_t, std::vector<double>> ends;
  for (const int64_t number : device->trials)
    ends[number].assign(trials_[number].slices.size(), now_);
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
  Trial& trial = trials_[event.a];
  if (trial.over || event.version != trial.version) return;
  Slice& slice = trial.slices[event.b];
  if (slice.done) return;  // its partner's counted
  slice.done = true;
  double place_s = 0, longest = 0;
  int64_t won = 0;
  for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
    const double seconds = tasks_[slice.task].place_s[i] * SlownessOf(trial.device);
    place_s += seconds;
    longest = std::max(longest, seconds);
    auto committed = committed_[slice.task].begin() + i;
    if (*committed) continue;
    *committed = true;
    ++won;
  }
  if (decouplings_.use_priors && !trial.copy) {
    const double expected_s =
        work_.estimate(slice.task).device_s * static_cast<double>(slice.documents.size());
    doubling_.Measured(trial.device, expected_s, place_s / cluster_.places);
    costs_.Generated(slice.task, slice.documents.size(), place_s / cluster_.places, longest,
                     &work_);
  }
  if (decouplings_.score_elsewhere) {
    AddScoring(slice.task, won);
  } else {
    trial.score_s += static_cast<double>(slice.documents.size()) * tasks_[slice.task].score_s;
  }
  --trial.slices_left;
  if (trial.partner >= 0) CloseCommitted(trial.partner);
  if (trial.slices_left > 0) return;
  if (decouplings_.score_elsewhere) return OnTrialOver(event.a);
  devices_[trial.device].spent[kScore] += trial.score_s;
  Span(trial.device, "score", now_, now_ + trial.score_s, "");
  Push(now_ + trial.score_s, Kind::kTrialOver, event.a);
}

// A request that is under way for longer than any was expected to take says so before it ends.
void Simulation::WatchOverdue(const PlacedDocument& document, double age_s) {
  Push(document.begin + age_s, Kind::kOverdue, document.trial, document.slice, document.document);
}

void Simulation::OnOverdue(const Event& event) {
  const Trial& trial = trials_[event.a];
  if (trial.over || trial.slices[event.b].done) return;
  for (const PlacedDocument& document : devices_[trial.device].queue.documents()) {
    if (document.trial != event.a || document.document != event.version ||
        document.slice != event.b)
      continue;
    const double age_s = now_ - document.begin;
    if (document.end <= now_ || age_s <= 0) return;
    const size_t task = trial.slices[event.b].task;
    costs_.Overdue(task, age_s, &work_);
    if (document.end > now_ + age_s * (kOverdueGrowth - 1))
      WatchOverdue(document, age_s * kOverdueGrowth);
    return;
  }
}

void Simulation::OnTrialOver(int64_t number) {
  Trial& trial = trials_[number];
  if (trial.over) return;
  trial.over = true;
  Part(&trial);
  Device& device = devices_[trial.device];
  std::erase(device.trials, number);
  if (stealing_began_) ReportBegun(trial.device);
  if (idle_.count(trial.device) > 0) WatchLate();
  std::string label;
  if (options_.keep_spans) {
    for (const Slice& slice : trial.slices) {
      if (label.find(tasks_[slice.task].name) == std::string::npos)
        label += (label.empty() ? "" : " ") + tasks_[slice.task].name;
    }
    Span(trial.device, "generate", trial.begin,
         now_ - (decouplings_.score_elsewhere ? 0 : trial.score_s), label);
  }
  if (!decouplings_.score_elsewhere) {
    for (const Slice& slice : trial.slices) {
      scored_[slice.task] += slice.documents.size();
      if (scored_[slice.task] == tasks_[slice.task].documents)
        result_.task_scored_s[slice.task] = now_;
    }
    result_.makespan_s = std::max(result_.makespan_s, now_);
  }
  trial.slices = {};
  if (!decouplings_.stay_warm || !decouplings_.score_elsewhere) {
    device.queue.Forget(now_);
    Push(now_, Kind::kAsk, trial.device, 0, ++device.ask_version);
  }
}

// ---- scoring

void Simulation::AddScoring(size_t task, int64_t documents) {
  const SimTask& of = tasks_[task];
  const int64_t piece = of.slow_scoring ? kSlowJobDocuments : documents;
  for (int64_t first = 0; first < documents; first += piece) {
    const int64_t count = std::min(piece, documents - first);
    pool_.Add({task, count, static_cast<double>(count) * of.score_s, of.slow_scoring});
  }
  ServeScoring();
}

void Simulation::ServeScoring() {
  ScoreJob job;
  while (const auto slot = pool_.Begin(&job)) {
    if (free_numbers_.empty()) {
      free_numbers_.push_back(static_cast<int64_t>(scoring_.size()));
      scoring_.emplace_back();
    }
    const int64_t number = free_numbers_.back();
    free_numbers_.pop_back();
    scoring_[number] = {job, *slot};
    Push(now_ + job.seconds, Kind::kScored, number);
  }
}

void Simulation::OnScored(const Event& event) {
  const ScoreJob job = scoring_[event.a].job;
  const int slot = std::exchange(scoring_[event.a].slot, -1);
  free_numbers_.push_back(event.a);
  if (slot < 0) return;  // lost with its node
  pool_.End(slot);
  if (decouplings_.use_priors) costs_.Scored(job.task, job.documents, job.seconds, &work_);
  scored_[job.task] += job.documents;
  if (scored_[job.task] == tasks_[job.task].documents) result_.task_scored_s[job.task] = now_;
  result_.makespan_s = std::max(result_.makespan_s, now_);
  ServeScoring();
}

// ---- results

void Simulation::Span(int64_t device, const char* name, double begin, double end,
                      const std::string& label) {
  if (options_.keep_spans && end > begin)
    result_.spans.push_back({static_cast<int>(device), name, begin, end, label});
}

SimResult Simulation::Finish() {
  SimResult& result = result_;
  result.stage_s = weights_bytes_ / cluster_.storage_bytes_per_s;
  const SimWork work = WorkOf(tasks_, cluster_.places);
  result.device_work_s = work.device_s;
  result.longest_request_s = work.longest_request_s;
  result.first_generation_s = work.first_generation_s;
  result.score_work_s = work.score_s;
  if (options_.faults.slow_device > 1) {
    const double devices = cluster_.devices() - 1 + 1 / options_.faults.slow_device;
    result.left_bound_s = std::max(result.left_bound_s, result.stage_s + work.device_s / devices);
  }
  double weighted = 0;
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const TaskEstimate truth = TrueEstimate(tasks_[t], cluster_.places);
    const double device_s = truth.device_s * static_cast<double>(truth.documents);
    const double prior = costs_.prior(t).device_s;
    if (prior > 0 && truth.device_s > 0)
      weighted += device_s * std::abs(std::log(prior / truth.device_s));
    result.documents_scored += scored_[t];
  }
  result.estimate_error = std::exp(weighted / std::max(1e-9, result.device_work_s));
  double busy = 0, after = 0, all = 0;
  for (Device& device : devices_) {
    result.weights_in_s = std::max(result.weights_in_s, device.weights_in);
    if (device.lost) continue;
    all += result.makespan_s;
    busy += device.queue.busy_s(result.makespan_s);
    after += result.makespan_s - device.weights_in;
    for (size_t cause = 0; cause < kCauses.size(); ++cause) {
      if (device.spent[cause] > 0) result.lost_shares[kCauses[cause]] += device.spent[cause];
    }
  }
  result.idle_share = after > 0 ? std::max(0.0, 1 - busy / after) : 0;
  if (all <= 0) return result;
  result.generate_share = busy / all;
  for (auto& [cause, seconds] : result.lost_shares) seconds /= all;
  return result;
}

}  // namespace evald
