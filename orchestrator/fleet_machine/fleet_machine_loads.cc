// Loads of checkpoints: sending a load, following a staging, loads that are stuck or needless, and
// checkpoints left in memory.
#include <fmt/format.h>

#include <algorithm>

#include "orchestrator/fleet_machine/fleet_machine.h"

namespace evald {
namespace {

constexpr int64_t kKillAgainMicros = 60'000'000;

}  // namespace

void FleetMachine::SendLoad(size_t index, const Run& run, int64_t now) {
  WorkerSlot& slot = workers_[index];
  Move(index, WorkerEvent::kLoad);
  slot.run = run.view.number;
  slot.loading = run.view.load;
  slot.load_sent_us = slot.load_moved_us = now;
  slot.load_missed_us = 0;
  WatchLoad(index);
  Push(order::Load{slot.id, slot.run});
}

// An idle worker of the staging host pulls a checkpoint while it is being staged, as far as it has
// landed. Not if a run may still ask for the checkpoint that the worker has loaded.
void FleetMachine::FollowStaging(size_t index, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (!hosts_.at(slot.host).spec.stages_here || !slot.follows || !slot.held.empty()) return;
  if (slot.loading && fingerprints_.count(*slot.loading) > 0) return;
  const Run* best = nullptr;
  for (const auto& [number, run] : runs_) {
    if (!run.view.followable || run.view.profile != slot.profile || TriedInVain(slot, run) ||
        TooLate(slot, run, now))
      continue;
    if (best == nullptr || run.view.priority > best->view.priority) best = &run;
  }
  if (best == nullptr) return;
  const std::pair<int64_t, int64_t> what(best->view.number, *best->view.followable);
  if (slot.following == what) return;
  Move(index, WorkerEvent::kFollow);
  ready_.Erase(index);
  slot.following = what;
  slot.run = what.first;
  Push(order::Follow{slot.id, slot.run});
}

void FleetMachine::OnLoaded(size_t index, const news::Loaded& loaded, int64_t now) {
  WorkerSlot& slot = workers_[index];
  // Otherwise it answers an earlier Load.
  if (slot.state() != WorkerState::kLoading || slot.loading != loaded.fingerprint) {
    return Ignore(slot.id, "loaded", Name(slot.state()));
  }
  Move(index, WorkerEvent::kLoaded);
  slot.engine = loaded.engine;
  if (Run* run = Find(slot.run);
      run != nullptr && slot.load_sent_us != 0 && HostHas(slot.host, *run))
    run->load_s = static_cast<double>(now - slot.load_sent_us) / 1e6;
  NoteStaged(slot, loaded.fingerprint, now);
  if (Find(slot.run) != nullptr) Push(order::TellLoaded{slot.run, slot.id, loaded.engine});
  ReleaseStaged();
}

void FleetMachine::NoteStaged(const WorkerSlot& slot, const std::string& fingerprint, int64_t now) {
  Host& host = hosts_.at(slot.host);
  if (fingerprint.empty() || host.staged.count(fingerprint) > 0) return;
  LookForCopies(now);
  const auto under_way = static_cast<int>(copies_.size() + 1 - copies_.count(slot.host));
  host.staged.insert(fingerprint);
  ++revision_;
  ready_.InsertAll(declined_);  // the turn of another host may have come
  const Run* run = Find(slot.run);
  const double seconds = static_cast<double>(now - slot.load_sent_us) / 1e6;
  if (slot.load_sent_us == 0 || run == nullptr || run->view.fingerprint != fingerprint ||
      run->view.checkpoint_bytes <= 0 || seconds <= 0)
    return;
  host.stage_bytes_per_s = run->view.checkpoint_bytes / seconds;
  if (!host.spec.stages_here) pace_.Ended(under_way, run->view.checkpoint_bytes, seconds);
}

// ---- loads that end

void FleetMachine::OnPulled(size_t index, const news::Pulled& pulled, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (!slot.pulls() || pulled.of <= 0) return;
  // A worker of another host pulls once its host has the checkpoint. The first report may be about
  // the checkpoint before.
  const bool comes_on = slot.to_pull > 0 && pulled.bytes != slot.pulled;
  if (comes_on && slot.state() == WorkerState::kLoading) NoteStaged(slot, *slot.loading, now);
  if (pulled.bytes != slot.pulled) slot.load_moved_us = now;
  slot.pulled = pulled.bytes;
  slot.to_pull = pulled.of;
  WatchLoad(index);
}

// Whether a run that goes on wants the checkpoint that the worker loads.
bool FleetMachine::Needed(const WorkerSlot& slot) const {
  return std::any_of(runs_.begin(), runs_.end(), [&](const auto& run) {
    const RunView& view = run.second.view;
    return !view.ending && view.load == slot.loading && view.profile == slot.profile;
  });
}

// Sets the time at which the load is ended unless it makes progress. A needless or stuck load keeps
// the device from other runs.
void FleetMachine::WatchLoad(size_t index) {
  const WorkerSlot& slot = workers_[index];
  if (slot.state() != WorkerState::kLoading) return;
  const bool pulling = slot.pulled < slot.to_pull;
  const double patience_s = !Needed(slot) ? options_.needless_load_s
                            : pulling     ? std::min(options_.pull_stall_s, options_.load_stall_s)
                                          : options_.load_stall_s;
  SetDue(index, slot.load_moved_us + static_cast<int64_t>(patience_s * 1e6));
}

// An engine that loads does not come back before the load has ended. One that goes on coming back
// has not begun: its worker has lost the Load. On another host, the agent keeps the Load until the
// checkpoint is there.
void FleetMachine::WatchUnheardLoad(size_t index, const news::Idle& idle, int64_t now) {
  WorkerSlot& slot = workers_[index];
  if (slot.state() != WorkerState::kLoading || idle.silent_us < 0 || slot.load_sent_us == 0 ||
      slot.excused || !slot.held.empty() || !hosts_.at(slot.host).spec.stages_here)
    return;
  const int64_t back_us = now - idle.silent_us;
  if (back_us <= slot.load_sent_us) return;
  if (slot.load_missed_us == 0) slot.load_missed_us = back_us;
  const double missed_s = static_cast<double>(back_us - slot.load_missed_us) / 1e6;
  if (missed_s < options_.unheard_load_s) return;
  slot.excused = true;  // the device is not at fault
  KillHung(slot.id, fmt::format("it was told to load {:.0f} s ago and has not begun",
                                static_cast<double>(now - slot.load_sent_us) / 1e6));
  SetDue(index, now + kKillAgainMicros);
}

// To be called after a run came, went, or asks for another checkpoint.
void FleetMachine::WatchLoads() {
  for (size_t i = 0; i < workers_.size(); ++i) WatchLoad(i);
}

void FleetMachine::OnLoadDue(size_t index, int64_t now) {
  WorkerSlot& slot = workers_[index];
  // It is watched again when its host is back
  if (!hosts_.at(slot.host).here) return SetDue(index, 0);
  if (!slot.held.empty()) {  // the worker ends its trials before it loads
    slot.load_moved_us = now;
    return WatchLoad(index);
  }
  if (!Needed(slot)) return Renew(index, "it loads a checkpoint that no run needs any more", now);
  const double waited_s = static_cast<double>(now - slot.load_moved_us) / 1e6;
  slot.excused = true;  // the device is not at fault
  KillHung(slot.id, fmt::format("its load has not come on for {:.0f} s", waited_s));
  SetDue(index, now + kKillAgainMicros);
}

// Restarts the worker without a checkpoint. This counts as no failure.
void FleetMachine::Renew(size_t index, const std::string& why, int64_t now) {
  const WorkerSlot& slot = workers_[index];
  StopFor(index, {slot.profile, slot.run, slot.on_gpu}, why, now);
}

// ---- staged checkpoints that no run needs

// Orders DropStaged for checkpoints that no run and no worker uses. A worker of another host uses
// its host's own copy once it has loaded it.
void FleetMachine::ReleaseStaged() {
  if (kept_.empty()) return;
  std::set<std::string> used;
  for (const WorkerSlot& slot : workers_) {
    const auto host = hosts_.find(slot.host);
    if (slot.loading && (!slot.engine || host->second.spec.stages_here)) used.insert(*slot.loading);
  }
  for (auto kept = kept_.begin(); kept != kept_.end();) {
    if (used.count(*kept) > 0 || fingerprints_.count(*kept) > 0) {
      ++kept;
    } else {
      Push(order::DropStaged{*kept});
      kept = kept_.erase(kept);
    }
  }
}

bool FleetMachine::FreeStaged(int64_t now) {
  ReleaseStaged();
  bool on_its_way = false;
  for (size_t i = 0; i < workers_.size(); ++i) {
    const WorkerSlot& slot = workers_[i];
    const auto host = hosts_.find(slot.host);
    if (host == hosts_.end() || !slot.loading) continue;
    const std::string& has = *slot.loading;
    if (fingerprints_.count(has) > 0) continue;
    // The worker still loads it, or has yet to let go of it
    if (kept_.count(has) > 0 && host->second.here) on_its_way = true;
    if (!slot.engine || !slot.held.empty() || !host->second.spec.stages_here) continue;
    if (has.empty() || has.starts_with(kUnstagedLoad)) continue;
    on_its_way = true;
    if (slot.state() != WorkerState::kReady) continue;
    Renew(i, "its checkpoint takes space that another checkpoint needs", now);
  }
  return on_its_way;
}

}  // namespace evald
