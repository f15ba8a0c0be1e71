// Space for staged checkpoints: looking for it before a run starts, waiting for it, and taking it
// from paused runs.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "orchestrator/service/service.h"
#include "orchestrator/staging/stager.h"

namespace evald {

// Whether there is room to stage the run's checkpoint. A run without room waits until checkpoints
// of runs at work are dropped, until idle workers release their last checkpoint, and until paused
// runs have given up their space. Others pass it. If waiting cannot help, staging starts and says
// what is missing; also if the checkpoint or the staging root cannot be read. Looking takes time,
// so the answer comes in a later call.
bool Service::RoomFor(QueuedRun* run) {
  if (!NeedsStaging(run->config) || room_for_ == run->number) return true;
  if (!looking_for_room_) LookForRoom(run);
  return false;
}

void Service::LookForRoom(QueuedRun* run) {
  looking_for_room_ = true;
  looking_since_us_ = run->looked_us = MonotonicMicros();
  auto room = std::make_shared<bool>(true);
  looks_->Post(
      [room, config = run->config, state = options_.state_dir] {
        *room = Stager({.root = config.staging.root, .state = state, .roots = config.roots})
                    .HasRoom(config.checkpoint);
      },
      [this, room, number = run->number, id = run->id,
       releases = releases_](const std::optional<Error>& error) {
        if (error) log::Warn("run {}: {}", id, error->what());
        OnRoom(number, *room, releases);
      });
}

void Service::LookForRoomAgain() {
  if (looking_for_room_) return;
  QueuedRun* run = queue_.LookedAtLongestAgo();
  if (run != nullptr && MonotonicMicros() - run->looked_us >= kRoomEveryMicros) LookForRoom(run);
}

// `releases`: the releases that had begun when space was looked for. Later ones may not be in the
// answer.
void Service::OnRoom(int64_t number, bool room, int64_t releases) {
  looking_for_room_ = false;
  if (QueuedRun* run = queue_.Find(number)) {
    run->no_room = !room && RoomComes(*run, releases);
    WaitFor(run, run->no_room ? RoomWaitedFor(*run) : "");
    if (!run->no_room) room_for_ = number;
  }
  StartRuns();
  room_for_ = 0;
}

// Whether waiting may give the run space. Asks idle workers and paused runs for theirs.
bool Service::RoomComes(const QueuedRun& run, int64_t releases) {
  if (fleet_->FreeStaged() || releases_ != releases || queue_.AnyYields()) return true;
  if (QueuedRun* paused = queue_.NextToYield(run)) {
    Yield(paused, run.id);
    return true;
  }
  return queue_.RoomMayCome();
}

std::string Service::RoomWaitedFor(const QueuedRun& run) const {
  const std::string holders = queue_.WhoHoldsRoom();
  return fmt::format(
      "space for its checkpoint in {}: {}", run.config.staging.root.string(),
      holders.empty() ? "that of a run that has ended is being freed" : "held by " + holders);
}

void Service::WaitFor(QueuedRun* run, const std::string& what) {
  if (run->waits_for == what) return;
  run->waits_for = what;
  if (!what.empty()) log::Info("run {} waits for {}", run->id, what);
  Publish();
}

// ---- paused runs

// The paused run finishes the work under way and then ends, as in a service that drains. Its files
// say how far it has come.
void Service::Yield(QueuedRun* run, const std::string& to) {
  log::Info("run {}, which is paused, gives up its staged checkpoint: run {} needs the space",
            run->id, to);
  run->yields = true;
  run->evaluation->Drain();
}

// Whether the run started because there was space for its checkpoint, which another run took first.
// The run then waits like one for which no space was found.
bool Service::LostRoom(const QueuedRun& run) const {
  return run.evaluation->found_no_room() && queue_.OthersHoldRoom(run);
}

std::string Service::LaterState(const QueuedRun& run) { return run.paused ? "paused" : "queued"; }

// Takes the run up as a service does that starts anew. Actions on the run wait until then.
void Service::QueueAgain(const std::string& id) {
  deferred_[id];
  TakeUpAgain(id);
}

// Whether the run has ended to give up its space, and is not queued again yet. If so, `then` is
// called once it is, or once it is over.
bool Service::DeferWhileYielding(const std::string& id, const std::function<void()>& then) {
  const QueuedRun* run = queue_.Find(id);
  if (run == nullptr || !run->yields || !run->ending() || run->state == "cancelling") return false;
  deferred_[id].push_back(then);
  return true;
}

}  // namespace evald
