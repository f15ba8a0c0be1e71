// Giving out: which run a free process is served from, and what it takes until it can be.
#include <algorithm>

#include "orchestrator/fleet_machine/fleet_machine.h"
#include "orchestrator/schedule/placement.h"

namespace evald {
namespace {

constexpr int64_t kHelloMicros = 60'000'000;
constexpr int64_t kStopMicros = 5'000'000;

}  // namespace

void FleetMachine::WakeWorkers() { ready_.insert(free_.begin(), free_.end()); }
void FleetMachine::WakeScorers() {
  ready_scorers_.insert(free_scorers_.begin(), free_scorers_.end());
}

// One thing each in turn, since a question is answered after those that were asked before it: so
// the first to ask does not take what another could do at once.
void FleetMachine::Serve(int64_t now) {
  if (closed_) return;
  while (!ready_.empty()) {
    const size_t index = *ready_.begin();
    ready_.erase(ready_.begin());
    ServeWorker(index, now);
  }
  while (!ready_scorers_.empty()) {
    const size_t index = *ready_scorers_.begin();
    ready_scorers_.erase(ready_scorers_.begin());
    ServeScorer(index, now);
  }
}

void FleetMachine::ServeWorker(size_t index, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (free_.count(index) == 0) return;
  Run* run = Choose(index);
  if (!slot.has_process()) {
    if (run != nullptr) StartAs(index, StartFor(slot, *run), now);
    return;
  }
  if (run == nullptr) return FollowStaging(index);
  if (slot.profile != run->view.profile) {  // what it holds, it ends first
    if (slot.held.empty()) StopFor(index, StartFor(slot, *run), "", now);
  } else if (slot.loading != run->view.load) {
    SendLoad(index, *run, now);
  } else if (!run->view.planned) {  // another run of this checkpoint had it loaded
    slot.run = run->view.number;
    run->nothing_for.insert(index);
    Push(order::TellLoaded{slot.run, slot.id, *slot.engine});
  } else {
    slot.run = slot.asked = run->view.number;
    slot.asked_relief = false;
    Update(index);
    Push(order::LeaseTrial{slot.id, slot.asked});
  }
}

// ---- which run

// All numbers of one run come from one kind of engine: that of the GPUs if there are any. A worker
// that would be started anew for the run may come to have another kind of engine than it has, but
// no processor becomes a GPU.
bool FleetMachine::Suits(const WorkerSlot& slot, const Run& run) const {
  const RunView& view = run.view;
  if (view.doubted.count(slot.host) > 0 || TriedInVain(slot, run)) return false;
  if (view.native && view.engine && view.engine->own_gpu != slot.gpu) return false;
  if (view.engine && slot.engine && slot.profile == view.profile &&
      (view.engine->own_gpu || slot.engine->own_gpu)) {
    const EngineFacts &a = *view.engine, &b = *slot.engine;
    if (a.name != b.name || a.version != b.version || a.device != b.device) return false;
  }
  return view.engine || !view.native || slot.gpu || !HasGpuFor(run);
}

bool FleetMachine::HasGpuFor(const Run& run) const {
  int vain = 0;
  for (const auto& [index, times] : run.ended_loads) {
    const WorkerSlot& slot = workers_[index];
    if (slot.gpu && Usable(slot) && TriedInVain(slot, run) &&
        run.view.doubted.count(slot.host) == 0)
      ++vain;
  }
  for (const WorkerSlot& slot : workers_) {
    if (run.view.doubted.empty()) break;
    if (slot.gpu && Usable(slot) && run.view.doubted.count(slot.host) > 0) ++vain;
  }
  return usable_gpus_ > vain;
}

// The best run of those that the worker can do something for. Whether a run is worth a load is
// looked at only where it decides: for the run that the worker is at, which has a say in whose turn
// it is, and for the one that is chosen.
FleetMachine::Run* FleetMachine::Choose(size_t index) {
  const WorkerSlot& slot = workers_[index];
  declined_.erase(index);
  std::vector<DispatchRun> wanting;
  const auto loads = [&](const Run& run) {
    return slot.loading != run.view.load || slot.profile != run.view.profile;
  };
  for (const int64_t number : wanting_) {
    const Run& run = runs_.at(number);
    if (!run.view.wants_workers && !loads(run)) continue;
    if (run.nothing_for.count(index) > 0 || Spent(slot, run) || !Suits(slot, run)) continue;
    wanting.push_back({number, run.view.priority, run.view.user});
  }
  const auto worth = [&](int64_t number) {
    Run* run = &runs_.at(number);
    if (!loads(*run) || WorthLoading(slot, run)) return true;
    declined_.insert(index);
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

// The service stages checkpoints in the memory of its own host.
bool FleetMachine::HostHas(const std::string& host, const Run& run) const {
  if (run.view.fingerprint.empty()) return true;
  const Host& entry = hosts_.at(host);
  return entry.spec.stages_here || entry.staged.count(run.view.fingerprint) > 0;
}

bool FleetMachine::WorthLoading(const WorkerSlot& slot, Run* run) {
  if (HostHas(slot.host, *run)) return true;
  const double stage_s = run->view.checkpoint_bytes / hosts_.at(slot.host).stage_bytes_per_s;
  return WorthStaging({DevicesBeside(run), run->view.open_s, stage_s});
}

// Devices of hosts that have its checkpoint, that are idle or work for the run.
int FleetMachine::DevicesBeside(Run* run) {
  if (run->beside_revision == revision_) return run->beside;
  run->beside_revision = revision_;
  run->beside =
      static_cast<int>(std::count_if(workers_.begin(), workers_.end(), [&](const WorkerSlot& slot) {
        return slot.kept_running() && Usable(slot) && slot.state() != WorkerState::kWaiting &&
               HostHas(slot.host, *run) && (slot.held.empty() || slot.run == run->view.number) &&
               Suits(slot, *run);
      }));
  return run->beside;
}

// ---- what it takes

WorkerSlot::Start FleetMachine::StartFor(const WorkerSlot& slot, const Run& run) const {
  return {run.view.profile, run.view.number, run.view.native && slot.gpu};
}

void FleetMachine::StartAs(size_t index, const WorkerSlot::Start& start, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (slot.state() != WorkerState::kPausing)
    slot.restarts = 0;  // somebody asks for it: failures before are forgotten
  slot.profile = start.profile;
  slot.run = start.run;
  slot.on_gpu = start.on_gpu;
  if (!Serves(slot.host)) {  // it goes on with Resume
    Move(index, WorkerEvent::kPause);
    return;
  }
  if (!Move(index, WorkerEvent::kStart)) return;
  SetDue(index, now + kHelloMicros);
  Push(order::StartWorker{slot.id, slot.profile, slot.run});
}

// Processes that the host has a place for and that somebody could use.
void FleetMachine::StartMissing(const std::string& host, int64_t now) {
  if (closed_ || runs_.empty() || !Serves(host)) return;
  const auto goes_on = [](const auto& run) { return !run.second.view.ending; };
  const auto newest = std::find_if(runs_.rbegin(), runs_.rend(), goes_on);
  for (size_t i = 0; i < workers_.size(); ++i) {
    const WorkerSlot& slot = workers_[i];
    const bool startable =
        slot.state() == WorkerState::kIdle || slot.state() == WorkerState::kGivenUp;
    if (slot.host != host || !startable || !Usable(slot)) continue;
    const Run* run = Choose(i);
    if (run == nullptr && newest != runs_.rend() && !Spent(slot, newest->second))
      run = &newest->second;
    if (run != nullptr) StartAs(i, StartFor(slot, *run), now);
  }
  for (size_t i = 0; i < scorers_.size(); ++i) {
    ScorerSlot& slot = scorers_[i];
    if (slot.host != host ||
        (slot.state != ScorerState::kIdle && slot.state != ScorerState::kGivenUp))
      continue;
    slot.restarts = 0;
    MoveScorer(i, ScorerState::kStarting, now + kHelloMicros);
    Push(order::StartScorer{slot.id});
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

// ---- a worker that found nothing

// It takes part in what another of its checkpoint has not begun, or does again what another is late
// with: of the first run after `after` that has something.
void FleetMachine::AskRelief(size_t index, int64_t after) {
  WorkerSlot& slot = workers_[index];
  slot.asked = 0;
  slot.asked_relief = false;
  for (auto run = runs_.upper_bound(after); run != runs_.end(); ++run) {
    const RunView& view = run->second.view;
    if (!view.planned || view.ending || view.load != slot.loading || view.profile != slot.profile)
      continue;
    if (!Suits(slot, run->second)) continue;
    slot.asked = run->first;
    slot.asked_relief = true;
    Update(index);
    return Push(order::Relieve{slot.id, slot.asked});
  }
  Update(index);
}

// ---- metric processes

// Scores are made where the generations lie, unless that host is busy and another is not.
void FleetMachine::ServeScorer(size_t index, int64_t now) {
  ScorerSlot& slot = scorers_[index];
  if (free_scorers_.count(index) == 0) return;
  std::vector<DispatchRun> wanting;
  for (const auto& [number, run] : runs_) {
    if (!run.view.wants_scorers || run.no_job_for.count(index) > 0 ||
        run.view.doubted.count(slot.host) > 0)
      continue;
    wanting.push_back({number, run.view.priority, run.view.user});
  }
  const auto chosen = scoring_.Choose(wanting, now);
  if (!chosen) {
    slot.asked_own = false;
    return;
  }
  slot.asked = *chosen;
  slot.asked_own = !slot.asked_own;  // its own first, then any
  free_scorers_.erase(index);
  Push(order::LeaseJob{slot.id, slot.asked, slot.asked_own});
}

}  // namespace evald
