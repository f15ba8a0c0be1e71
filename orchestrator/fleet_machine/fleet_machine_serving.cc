// Giving out work: which run serves a free process, and the steps until it can.
#include <algorithm>

#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

constexpr int64_t kStopMicros = 5'000'000;
// A copy that takes so many times as long as expected, and so many seconds more, is late.
constexpr double kLateCopyFactor = 2, kLateCopySeconds = 10;

}  // namespace

void FleetMachine::WakeWorkers() {
  if (ready_.size() < free_.size()) ready_.InsertAll(free_);
}
void FleetMachine::WakeMetricProcesses() {
  ready_metric_processes_.InsertAll(free_metric_processes_);
}

// Whether any run could use a free worker. Free workers stay ready until then: thousands of idle
// ones cost nothing each time that a few documents come back.
bool FleetMachine::AnyWanted() const {
  return !wanting_.empty() || std::any_of(runs_.begin(), runs_.end(), [](const auto& run) {
    return run.second.view.followable.has_value();
  });
}

// Each worker gets one thing in its turn, so the first to ask does not take work that another could
// begin at once. A question is asked after the one before it is answered: the answer may have been
// the last that there was.
void FleetMachine::Serve(int64_t now) {
  if (closed_) return;
  while (!ready_.empty() && AnyWanted()) {
    if (last_asked_ < workers_.size() && workers_[last_asked_].asked != 0) break;
    const auto next = ready_.NextFrom(last_served_ + 1);
    last_served_ = next ? *next : *ready_.NextFrom(0);
    ready_.Erase(last_served_);
    ServeWorker(last_served_, now);
  }
  while (const auto index = ready_metric_processes_.NextFrom(0)) {
    ready_metric_processes_.Erase(*index);
    ServeMetricProcess(*index, now);
  }
}

void FleetMachine::ServeWorker(size_t index, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (!free_.has(index)) return;
  Run* run = Choose(index, now);
  if (!slot.has_process()) {
    if (run != nullptr) StartAs(index, StartFor(slot, *run), now);
    return;
  }
  if (run == nullptr) return FollowStaging(index, now);
  if (slot.profile != run->view.profile) {  // its trials end first
    if (slot.held.empty()) StopFor(index, StartFor(slot, *run), "", now);
  } else if (slot.loading != run->view.load) {
    SendLoad(index, *run, now);
  } else if (!run->view.planned) {  // the checkpoint was loaded for another run
    slot.run = run->view.number;
    run->nothing_for.insert(index);
    Push(order::TellLoaded{slot.run, slot.id, *slot.engine});
  } else {
    slot.run = slot.asked = run->view.number;
    slot.asked_to_steal = false;
    last_asked_ = index;
    Update(index);
    Push(order::LeaseTrial{slot.id, slot.asked, UntilOf(slot.host)});
  }
}

// ---- which run

// Whether the worker may compute for the run. All numbers of one run come from one kind of engine:
// that of the GPUs, if there are any. A worker that would be restarted for the run may get another
// kind of engine than it has, but no processor becomes a GPU.
bool FleetMachine::Suits(const WorkerSlot& slot, const Run& run) const {
  const RunView& view = run.view;
  if (Doubts(view, slot.host) || TriedInVain(slot, run)) return false;
  if (view.uses_devices && view.engine && view.engine->own_gpu != slot.gpu) return false;
  if (view.engine && slot.engine && slot.profile == view.profile &&
      (view.engine->own_gpu || slot.engine->own_gpu)) {
    const EngineFacts &a = *view.engine, &b = *slot.engine;
    if (a.name != b.name || a.version != b.version || a.device != b.device) return false;
  }
  return view.engine || !view.uses_devices || slot.gpu || !HasGpuFor(run);
}

bool FleetMachine::HasGpuFor(const Run& run) const {
  int vain = 0;
  for (const auto& [index, times] : run.ended_loads) {
    const WorkerSlot& slot = workers_[index];
    if (OffersGpu(slot) && TriedInVain(slot, run) && !Doubts(run.view, slot.host)) ++vain;
  }
  for (const WorkerSlot& slot : workers_) {
    if (run.view.doubted.empty() && run.view.doubted_owners.empty()) break;
    if (OffersGpu(slot) && Doubts(run.view, slot.host)) ++vain;
  }
  return offered_gpus_ > vain;
}

// The best run that the worker can do something for. Whether a run is worth a load is computed only
// where it decides: for the worker's current run, which has a say in whose turn it is, and for the
// chosen run.
FleetMachine::Run* FleetMachine::Choose(size_t index, int64_t now) {
  const WorkerSlot& slot = workers_[index];
  declined_.Erase(index);
  std::vector<DispatchRun> wanting;
  const auto loads = [&](const Run& run) {
    return slot.loading != run.view.load || slot.profile != run.view.profile;
  };
  for (const int64_t number : wanting_) {
    const Run& run = runs_.at(number);
    if (!run.view.wants_workers && !loads(run)) continue;
    if (run.nothing_for.count(index) > 0 || Spent(slot, run) || !Suits(slot, run)) continue;
    if (TooLate(slot, run, now)) {
      declined_.Insert(index);  // the shortest trial may be another one soon
      continue;
    }
    wanting.push_back({number, run.view.priority, run.view.user});
  }
  const auto worth = [&](int64_t number) {
    Run* run = &runs_.at(number);
    if (!loads(*run) || WorthLoading(slot, run, now)) return true;
    declined_.Insert(index);
    std::erase_if(wanting, [&](const DispatchRun& other) { return other.number == number; });
    return false;
  };
  if (std::any_of(wanting.begin(), wanting.end(),
                  [&](const DispatchRun& run) { return run.number == slot.run; })) {
    worth(slot.run);
  }
  while (const auto chosen = ChooseRun(wanting, use_, slot.run)) {
    if (worth(*chosen)) return &runs_.at(*chosen);
  }
  return nullptr;
}

// Whether the host has the run's checkpoint in memory. The service stages checkpoints in the memory
// of its own host.
bool FleetMachine::HostHas(const std::string& host, const Run& run) const {
  if (run.view.fingerprint.empty()) return true;
  const Host& entry = hosts_.at(host);
  return entry.spec.stages_here || entry.staged.count(run.view.fingerprint) > 0;
}

// Seconds that a copy to the host is expected to take.
double FleetMachine::StageSeconds(const Host& host, double bytes) const {
  return bytes / (host.stage_bytes_per_s > 0 ? host.stage_bytes_per_s : pace_.bytes_per_s());
}

// Finds the hosts that are getting a checkpoint. A host where that takes much longer than expected
// keeps no other host waiting.
void FleetMachine::LookForCopies(int64_t now) {
  if (now >= copies_until_us_) ++revision_;
  if (copies_revision_ == revision_) return;
  copies_revision_ = revision_;
  copies_until_us_ = INT64_MAX;
  copies_.clear();
  for (size_t i = 0; i < workers_.size(); ++i) {
    const WorkerSlot& slot = workers_[i];
    if (slot.state() != WorkerState::kLoading || slot.loading->empty() || !Usable(slot)) continue;
    const Host& host = *homes_[i];
    const Run* run = Find(slot.run);
    if (host.spec.stages_here || host.staged.count(*slot.loading) > 0 || run == nullptr ||
        run->view.fingerprint != *slot.loading)
      continue;
    const double patience_s =
        kLateCopyFactor * StageSeconds(host, run->view.checkpoint_bytes) * pace_.at_once() +
        kLateCopySeconds;
    const int64_t until = slot.load_moved_us + static_cast<int64_t>(patience_s * 1e6);
    if (until <= now) continue;
    copies_until_us_ = std::min(copies_until_us_, until);
    copies_[slot.host] = *slot.loading;
  }
}

// A worker of a host that is getting the checkpoint joins the others there. Further hosts get it in
// turn, if that pays.
bool FleetMachine::WorthLoading(const WorkerSlot& slot, Run* run, int64_t now) {
  if (HostHas(slot.host, *run)) return true;
  LookForCopies(now);
  const auto copy = copies_.find(slot.host);
  if (copy != copies_.end() && copy->second == run->view.fingerprint) return true;
  if (!options_.hosts_pass_on && static_cast<int>(copies_.size()) >= pace_.at_once()) return false;
  const double stage_s = StageSeconds(hosts_.at(slot.host), run->view.checkpoint_bytes);
  return WorthStaging({DevicesBeside(run), run->view.open_s, stage_s});
}

// Devices that are idle or work for the run, on hosts that have its checkpoint or are getting it.
int FleetMachine::DevicesBeside(Run* run) {
  if (run->beside_revision == revision_) return run->beside;
  run->beside_revision = revision_;
  const auto has = [&](const std::string& host) {
    if (HostHas(host, *run)) return true;
    const auto copy = copies_.find(host);
    return copy != copies_.end() && copy->second == run->view.fingerprint;
  };
  run->beside =
      static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [&](const WorkerSlot& slot) {
        return slot.kept_running() && Usable(slot) && slot.state() != WorkerState::kWaiting &&
               has(slot.host) && (slot.held.empty() || slot.run == run->view.number) &&
               Suits(slot, *run);
      }));
  return run->beside;
}

// ---- starting and stopping

WorkerSlot::Start FleetMachine::StartFor(const WorkerSlot& slot, const Run& run) const {
  return {run.view.profile, run.view.number, run.view.uses_devices && slot.gpu};
}

void FleetMachine::StartAs(size_t index, const WorkerSlot::Start& start, int64_t now) {
  WorkerSlot& slot = workers_[index];
  // A run asks for it: earlier failures are forgotten
  if (slot.state() != WorkerState::kPausing) slot.restarts = 0;
  slot.profile = start.profile;
  slot.run = start.run;
  slot.on_gpu = start.on_gpu;
  if (!Serves(slot.host)) {  // it starts with Resume
    Move(index, WorkerEvent::kPause);
    return;
  }
  if (!Move(index, WorkerEvent::kStart)) return;
  slot.started_us = now;
  SetDue(index, now + kHelloMicros);
  Push(order::StartWorker{slot.id, slot.profile, slot.run});
}

// Starts processes in the host's empty slots, if a run could use them.
void FleetMachine::StartMissing(const std::string& host, int64_t now) {
  if (closed_ || runs_.empty() || !Serves(host)) return;
  const auto goes_on = [](const auto& run) { return !run.second.view.ending; };
  const auto newest = std::find_if(runs_.rbegin(), runs_.rend(), goes_on);
  for (const size_t i : hosts_.at(host).workers) {
    const WorkerSlot& slot = workers_[i];
    const bool startable =
        slot.state() == WorkerState::kIdle || slot.state() == WorkerState::kGivenUp;
    if (!startable || !Usable(slot)) continue;
    const Run* run = Choose(i, now);
    if (run == nullptr && newest != runs_.rend() && !Spent(slot, newest->second) &&
        !TooLate(slot, newest->second, now))
      run = &newest->second;
    if (run != nullptr) StartAs(i, StartFor(slot, *run), now);
  }
  for (const size_t i : hosts_.at(host).metric_processes) {
    MetricProcessSlot& slot = metric_processes_[i];
    if (slot.state != MetricProcessState::kIdle && slot.state != MetricProcessState::kGivenUp)
      continue;
    slot.restarts = 0;
    MoveMetricProcess(i, MetricProcessState::kStarting, now + kHelloMicros);
    Push(order::StartMetricProcess{slot.id});
  }
}

void FleetMachine::StopFor(size_t index, WorkerSlot::Start next, const std::string& why,
                           int64_t now) {
  WorkerSlot& slot = workers_[index];
  Move(index, WorkerEvent::kStop);
  slot.next = std::move(next);
  SetDue(index, now + kStopMicros);
  Push(order::Stop{slot.id, why});
}

// ---- a worker that found no trial

// Asks other runs with the worker's checkpoint for work: documents that another worker has not
// begun, or a backup of a late trial. Asks the first such run after `after`.
void FleetMachine::AskToSteal(size_t index, int64_t after) {
  WorkerSlot& slot = workers_[index];
  slot.asked = 0;
  slot.asked_to_steal = false;
  for (auto run = runs_.upper_bound(after); run != runs_.end(); ++run) {
    const RunView& view = run->second.view;
    if (!view.planned || view.ending || view.load != slot.loading || view.profile != slot.profile)
      continue;
    if (!Suits(slot, run->second)) continue;
    slot.asked = run->first;
    slot.asked_to_steal = true;
    Update(index);
    return Push(order::Steal{slot.id, slot.asked, UntilOf(slot.host)});
  }
  Update(index);
}

// ---- metric processes

// A job is scored on the host that has its generations, unless that host is busy and another is
// not.
void FleetMachine::ServeMetricProcess(size_t index, int64_t now) {
  MetricProcessSlot& slot = metric_processes_[index];
  if (!free_metric_processes_.has(index)) return;
  std::vector<DispatchRun> wanting;
  for (const auto& [number, run] : runs_) {
    if (!run.view.wants_metric_processes || run.no_job_for.count(index) > 0 ||
        Doubts(run.view, slot.host))
      continue;
    wanting.push_back({number, run.view.priority, run.view.user});
  }
  const auto chosen = scoring_.Choose(wanting, now);
  if (!chosen) {
    slot.asked_own = false;
    return;
  }
  slot.asked = *chosen;
  slot.asked_own = !slot.asked_own;  // first jobs of its own host, then any
  free_metric_processes_.Erase(index);
  Push(order::LeaseJob{slot.id, slot.asked, slot.asked_own, UntilOf(slot.host)});
}

}  // namespace evald
