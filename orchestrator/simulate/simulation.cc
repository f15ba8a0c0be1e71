#include "orchestrator/simulate/simulation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace evald {
namespace {

constexpr int64_t kSliceDocumentsMax = 256;  // as in a run: what scoring waits for
constexpr int64_t kSlowJobDocuments = 4;     // likewise
constexpr double kLearnShare = 0.02;         // of a task's documents, after which its estimate is corrected

}  // namespace

double SimResult::bound_s(const SimCluster& cluster) const {
  return stage_s + std::max({device_work_s / cluster.devices(), longest_request_s,
                             score_work_s > 0 ? first_generation_s + score_work_s / cluster.score_slots() : 0.0});
}

Simulation::Simulation(const SimCluster& cluster, double weights_bytes, const std::vector<SimTask>& tasks,
                       const std::vector<TaskEstimate>& estimates, Options options)
    : cluster_(cluster),
      weights_bytes_(weights_bytes),
      tasks_(tasks),
      options_(std::move(options)),
      policy_(MakePolicy(options_.policy, {cluster.lease_s, 0.01})),
      decouplings_(options_.decouplings.value_or(policy_->decouplings())),
      work_(cluster.devices(), cluster.places, cluster.score_slots()),
      learned_(tasks.size(), 0),
      random_(options_.seed),
      storage_(static_cast<size_t>(cluster.nodes), SharedLink(cluster.storage_bytes_per_s)),
      storage_version_(static_cast<size_t>(cluster.nodes), 0),
      pool_(cluster.score_slots()),
      scored_(tasks.size(), 0) {
  for (size_t t = 0; t < tasks.size(); ++t) {
    estimates_.emplace_back(estimates[t], options_.weight);
    work_.Add(estimates[t], {{0, tasks[t].documents}});
  }
  const int datasets = tasks.empty() ? 0 : tasks.back().dataset + 1;
  for (int d = 0; d < cluster.devices(); ++d) {
    devices_.emplace_back(cluster.places);
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
    Handle(event);
  }
  return Finish();
}

void Simulation::Handle(const Event& event) {
  switch (event.kind) {
    case Kind::kStorage: return OnStorage(event);
    case Kind::kReady: return OnReady(event.a);
    case Kind::kAsk: return OnAsk(event);
    case Kind::kSlice: return OnSlice(event);
    case Kind::kTrialFails: return OnTrialFails(event.a);
    case Kind::kTrialOver: return OnTrialOver(event.a);
    case Kind::kScored: return OnScored(event);
    case Kind::kNodeLost: return OnNodeLost();
  }
}

// ---- giving out

void Simulation::OnAsk(const Event& event) {
  Device& device = devices_[event.a];
  if (device.lost || event.version != device.ask_version) return;
  device.queue.Forget(now_);
  device.idle = !GiveTrial(event.a);
  // With nothing open, it asks again when it has begun all that it has and a place is free: it may take
  // from another then.
  const double again = std::max(device.queue.AllBegunAt(now_), device.queue.PlaceFreeAt(now_));
  if (device.idle && again > now_) Push(again, Kind::kAsk, event.a, 0, ++device.ask_version);
}

// A warm device asks for the next trial before the last has run dry; another when it is free.
void Simulation::ScheduleAsk(int64_t d) {
  Device& device = devices_[d];
  Push(device.queue.LowAt(now_), Kind::kAsk, d, 0, ++device.ask_version);
}

bool Simulation::GiveTrial(int64_t d) {
  if (!returned_.empty()) {
    // Rather one whose half-written files are on this host.
    auto from = std::find_if(returned_.rbegin(), returned_.rend(),
                             [&](const Trial& trial) { return trial.kept_on == NodeOf(d); });
    if (from == returned_.rend()) from = returned_.rbegin();
    Trial trial = std::move(*from);
    returned_.erase(std::next(from).base());
    StartTrial(d, std::move(trial));
    return true;
  }
  const std::vector<Cut> cuts = policy_->Next(work_, static_cast<int>(d));
  if (cuts.empty()) return policy_->doubles_stragglers() && Steal(d);
  Trial trial;
  for (const Cut& cut : cuts) {
    for (DocumentRange range : work_.Take(cut.task, cut.documents)) {
      for (; range.size() > 0; range.first = std::min(range.end, range.first + kSliceDocumentsMax)) {
        trial.slices.push_back({cut.task, {range.first, std::min(range.end, range.first + kSliceDocumentsMax)}, false});
      }
    }
  }
  StartTrial(d, std::move(trial));
  return true;
}

// The trial that will take longest gives the last half of what it has not begun.
bool Simulation::Steal(int64_t thief) {
  // What would only wait here as well is not taken: it would go to and fro.
  const DeviceQueue& own = devices_[thief].queue;
  if (own.AllBegunAt(now_) > now_ || own.PlaceFreeAt(now_) > now_) return false;
  // What would begin within the time that a lease takes is where it should be.
  const double soon = now_ + 2 * cluster_.lease_s;
  int64_t victim = -1;
  double most = 0;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (devices_[d].lost || static_cast<int64_t>(d) == thief) continue;
    double waiting = 0;
    for (const PlacedDocument& document : devices_[d].queue.documents()) {
      if (document.begin > soon) waiting += work_.estimate(trials_[document.trial].slices[document.slice].task).device_s;
    }
    if (waiting > most) {
      most = waiting;
      victim = static_cast<int64_t>(d);
    }
  }
  if (victim < 0 || most < 2 * cluster_.lease_s) return false;
  DeviceQueue& queue = devices_[victim].queue;
  std::vector<PlacedDocument> waiting;
  for (const PlacedDocument& document : queue.documents()) {
    if (document.begin > soon) waiting.push_back(document);
  }
  const PlacedDocument& first = waiting[waiting.size() / 2];
  // From `first` on, to the end of its slice.
  Trial& from = trials_[first.trial];
  Slice& slice = from.slices[first.slice];
  const int64_t trial_number = first.trial;
  const int slice_number = first.slice;
  const DocumentRange taken{first.document, slice.documents.end};
  slice.documents.end = first.document;
  queue.Drop(now_, [&](const PlacedDocument& document) {
    return document.trial == trial_number && document.slice == slice_number && document.document >= taken.first;
  });
  for (const int64_t trial : devices_[victim].trials) ScheduleSlices(trial);
  // A cold victim asks when it is free, and not before: it starts for one trial at a time.
  if (decouplings_.stay_warm && decouplings_.score_elsewhere) ScheduleAsk(victim);
  Trial trial;
  trial.slices.push_back({slice.task, taken, false});
  StartTrial(thief, std::move(trial));
  return true;
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
  device.idle = false;
  trial.device = static_cast<int>(d);
  trial.slices_left = static_cast<size_t>(
      std::count_if(trial.slices.begin(), trial.slices.end(), [](const Slice& slice) { return !slice.done; }));
  trial.begin = now_;
  trial.over = false;
  ++result_.trials;
  const auto number = static_cast<int64_t>(trials_.size());
  trials_.push_back(std::move(trial));
  device.trials.push_back(number);
  if (decouplings_.stay_warm) return RunDocuments(number, now_);
  // A process of its own: starts, loads, and only then computes.
  device.pending = number;
  device.spent["start"] += cluster_.start_s;
  Span(d, "start", now_, now_ + cluster_.start_s, "");
  if (decouplings_.load_once) {
    const double pull = weights_bytes_ / cluster_.pcie_bytes_per_s;
    device.spent["load"] += pull;
    Span(d, "load", now_ + cluster_.start_s, now_ + cluster_.start_s + pull, "");
    Push(now_ + cluster_.start_s + pull, Kind::kReady, d);
  } else {
    Push(now_ + cluster_.start_s, Kind::kStorage, NodeOf(d), d + 1, -1);  // the transfer begins then
  }
}

void Simulation::RunDocuments(int64_t number, double at) {
  Trial& trial = trials_[number];
  Device& device = devices_[trial.device];
  const double prepare = PrepareSeconds(trial, &device);
  if (prepare > 0) {
    device.spent["prepare"] += prepare;
    Span(trial.device, "prepare", at, at + prepare, "");
  }
  const double begin = at + prepare + cluster_.lease_s;
  std::vector<PlacedDocument> documents;
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    const Slice& slice = trial.slices[s];
    if (slice.done) continue;
    const SimTask& task = tasks_[slice.task];
    for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
      if (!kept_.empty() && kept_[slice.task][i] == NodeOf(trial.device) + 1) continue;
      double place_s = task.place_s[i];
      // The prefix is computed again where a group is cut.
      const bool follows = s > 0 && trial.slices[s - 1].task == slice.task;
      if (i == slice.documents.first && !follows && !task.begins_group(i)) place_s += task.prefix_s * cluster_.places;
      documents.push_back({number, static_cast<int>(s), i, place_s, 0, 0});
    }
  }
  device.queue.Add(begin, std::move(documents));
  if (options_.faults.trial_failure_rate > 0 &&
      std::uniform_real_distribution<>()(random_) < options_.faults.trial_failure_rate) {
    const double share = std::uniform_real_distribution<>()(random_);
    double end = begin;
    for (const PlacedDocument& document : device.queue.documents()) {
      if (document.trial == number) end = std::max(end, document.end);
    }
    Push(begin + share * (end - begin), Kind::kTrialFails, number);
  }
  ScheduleSlices(number);
  if (decouplings_.stay_warm && decouplings_.score_elsewhere) ScheduleAsk(trial.device);
}

void Simulation::ScheduleSlices(int64_t number) {
  Trial& trial = trials_[number];
  if (trial.over) return;
  ++trial.version;
  std::vector<double> ends(trial.slices.size(), now_);
  for (const PlacedDocument& document : devices_[trial.device].queue.documents()) {
    if (document.trial == number) ends[document.slice] = std::max(ends[document.slice], document.end);
  }
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    if (!trial.slices[s].done) Push(ends[s], Kind::kSlice, number, static_cast<int64_t>(s), trial.version);
  }
}

// ---- what is finished

void Simulation::OnSlice(const Event& event) {
  Trial& trial = trials_[event.a];
  if (trial.over || event.version != trial.version) return;
  Slice& slice = trial.slices[event.b];
  slice.done = true;
  double place_s = 0, longest = 0;
  for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
    const double seconds = tasks_[slice.task].place_s[i];
    place_s += seconds;
    longest = std::max(longest, seconds);
  }
  Learn(slice.task, slice.documents.size(), place_s, longest);
  if (decouplings_.score_elsewhere) {
    AddScoring(slice.task, slice.documents.size());
  } else {
    trial.score_s += static_cast<double>(slice.documents.size()) * tasks_[slice.task].score_s;
  }
  if (--trial.slices_left > 0) return;
  if (decouplings_.score_elsewhere) return OnTrialOver(event.a);
  devices_[trial.device].spent["score"] += trial.score_s;
  Span(trial.device, "score", now_, now_ + trial.score_s, "");
  Push(now_ + trial.score_s, Kind::kTrialOver, event.a);
}

void Simulation::OnTrialOver(int64_t number) {
  Trial& trial = trials_[number];
  if (trial.over) return;
  trial.over = true;
  Device& device = devices_[trial.device];
  std::erase(device.trials, number);
  std::string label;
  if (options_.keep_spans) {
    for (const Slice& slice : trial.slices) {
      if (label.find(tasks_[slice.task].name) == std::string::npos) label += (label.empty() ? "" : " ") + tasks_[slice.task].name;
    }
    Span(trial.device, "generate", trial.begin, now_ - (decouplings_.score_elsewhere ? 0 : trial.score_s), label);
  }
  if (!decouplings_.score_elsewhere) {
    for (const Slice& slice : trial.slices) {
      scored_[slice.task] += slice.documents.size();
      if (scored_[slice.task] == tasks_[slice.task].documents) result_.task_scored_s[slice.task] = now_;
    }
    result_.makespan_s = std::max(result_.makespan_s, now_);
  }
  if (!decouplings_.stay_warm || !decouplings_.score_elsewhere) {
    device.queue.Forget(now_);
    Push(now_, Kind::kAsk, trial.device, 0, ++device.ask_version);
  }
}

void Simulation::Requeue(Trial* trial) {
  trial->over = true;
  Trial rest;
  rest.kept_on = trial->kept_on;
  for (const Slice& slice : trial->slices) {
    if (!slice.done) rest.slices.push_back(slice);
  }
  if (!rest.slices.empty()) returned_.push_back(std::move(rest));
}

// A document has to be begun again: nothing can be over before it could be.
void Simulation::Interrupted(const PlacedDocument& document) {
  if (document.begin > now_) return;
  ++result_.documents_again;
  result_.left_bound_s = std::max(result_.left_bound_s, now_ + document.place_s);
}

// Lines of what was finished are in half-written files, which the next attempt on that host resumes.
void Simulation::KeepFinished(int64_t number) {
  Trial& trial = trials_[number];
  if (kept_.empty()) {
    for (const SimTask& task : tasks_) kept_.emplace_back(task.place_s.size(), 0);
  }
  std::vector<std::vector<bool>> unfinished;
  for (const Slice& slice : trial.slices) unfinished.emplace_back(static_cast<size_t>(slice.documents.size()), false);
  for (const PlacedDocument& document : devices_[trial.device].queue.documents()) {
    if (document.trial != number || document.end <= now_) continue;
    unfinished[document.slice][document.document - trial.slices[document.slice].documents.first] = true;
  }
  for (size_t s = 0; s < trial.slices.size(); ++s) {
    const Slice& slice = trial.slices[s];
    if (slice.done) continue;
    for (int64_t i = slice.documents.first; i < slice.documents.end; ++i) {
      if (!unfinished[s][i - slice.documents.first]) kept_[slice.task][i] = NodeOf(trial.device) + 1;
    }
  }
  trial.kept_on = NodeOf(trial.device);
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
  Requeue(&trial);
  for (const int64_t other : device.trials) ScheduleSlices(other);
  Push(now_, Kind::kAsk, trial.device, 0, ++device.ask_version);
  WakeIdle();
}

void Simulation::OnNodeLost() {
  const int lost = cluster_.nodes - 1;
  for (size_t d = 0; d < devices_.size(); ++d) {
    if (NodeOf(static_cast<int64_t>(d)) != lost) continue;
    devices_[d].lost = true;
    for (const PlacedDocument& document : devices_[d].queue.documents()) {
      if (!trials_[document.trial].slices[document.slice].done) Interrupted(document);
    }
    devices_[d].queue.Clear(now_);
    for (const int64_t number : devices_[d].trials) Requeue(&trials_[number]);
    devices_[d].trials.clear();
  }
  const int left = cluster_.devices() - cluster_.devices_per_node;
  work_.SetDevices(left);
  result_.left_bound_s = std::max(result_.left_bound_s, now_ + DeviceSecondsLeft() / left);
  WakeIdle();
}

// Of what is open, was given back, or is under way on devices that are left.
double Simulation::DeviceSecondsLeft() const {
  double place_s = 0;
  const auto add = [&](size_t task, const DocumentRange& documents) {
    for (int64_t i = documents.first; i < documents.end; ++i) place_s += tasks_[task].place_s[i];
  };
  for (size_t t = 0; t < tasks_.size(); ++t) {
    for (const DocumentRange& range : work_.ranges(t)) add(t, range);
  }
  for (const Trial& trial : returned_) {
    for (const Slice& slice : trial.slices) add(slice.task, slice.documents);
  }
  for (const Device& device : devices_) {
    for (const PlacedDocument& document : device.queue.documents()) {
      place_s += std::max(0.0, document.end - std::max(now_, document.begin));
    }
  }
  return place_s / cluster_.places;
}

void Simulation::WakeIdle() {
  for (size_t d = 0; d < devices_.size() && !returned_.empty(); ++d) {
    if (devices_[d].idle && !devices_[d].lost) Push(now_, Kind::kAsk, static_cast<int64_t>(d), 0, ++devices_[d].ask_version);
  }
}

// What a run would know after these documents.
void Simulation::Learn(size_t task, int64_t documents, double place_s, double longest_s) {
  estimates_[task].SawGeneration(documents, place_s / cluster_.places, longest_s);
  learned_[task] += documents;
  const double due = kLearnShare * static_cast<double>(tasks_[task].documents);
  if (!decouplings_.use_priors || static_cast<double>(learned_[task]) < due) return;
  learned_[task] = 0;
  work_.Expect(task, estimates_[task].Now());
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
  while (pool_.Begin(&job)) {
    Push(now_ + job.seconds, Kind::kScored, static_cast<int64_t>(scoring_.size()));
    scoring_.push_back(job);
  }
}

void Simulation::OnScored(const Event& event) {
  const ScoreJob& job = scoring_[event.a];
  pool_.End();
  estimates_[job.task].SawScoring(job.documents, job.seconds);
  scored_[job.task] += job.documents;
  if (scored_[job.task] == tasks_[job.task].documents) result_.task_scored_s[job.task] = now_;
  result_.makespan_s = std::max(result_.makespan_s, now_);
  ServeScoring();
}

// ---- results

void Simulation::Span(int64_t device, const char* name, double begin, double end, const std::string& label) {
  if (options_.keep_spans && end > begin) result_.spans.push_back({static_cast<int>(device), name, begin, end, label});
}

SimResult Simulation::Finish() {
  SimResult& result = result_;
  result.stage_s = weights_bytes_ / cluster_.storage_bytes_per_s;
  double weighted = 0;
  result.first_generation_s = std::numeric_limits<double>::infinity();
  for (size_t t = 0; t < tasks_.size(); ++t) {
    const TaskEstimate truth = TrueEstimate(tasks_[t], cluster_.places);
    const double device_s = truth.device_s * static_cast<double>(truth.documents);
    result.device_work_s += device_s;
    result.longest_request_s = std::max(result.longest_request_s, truth.request_s);
    result.score_work_s += truth.score_s * static_cast<double>(truth.documents);
    for (const float place_s : tasks_[t].place_s) {
      result.first_generation_s = std::min(result.first_generation_s, static_cast<double>(place_s));
    }
    const double prior = estimates_[t].prior().device_s;
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
    for (const auto& [cause, seconds] : device.spent) result.lost_shares[cause] += seconds;
  }
  result.idle_share = after > 0 ? std::max(0.0, 1 - busy / after) : 0;
  if (all <= 0) return result;
  result.generate_share = busy / all;
  for (auto& [cause, seconds] : result.lost_shares) seconds /= all;
  return result;
}

}  // namespace evald
