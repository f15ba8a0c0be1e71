// Space for staged checkpoints: looking for it before a run starts, waiting for it, and taking it
// from paused runs.
#include <fmt/format.h>

#include "base/clock.h"
#include "base/log.h"
#include "orchestrator/service/service.h"
#include "orchestrator/staging/stager.h"

namespace evald {

// Whether there is space to stage the run's checkpoint. A run without space waits until checkpoints
// of runs at work are dropped, until idle workers release their last checkpoint, and until paused
// runs have given up their space. Others pass it. If waiting cannot help, staging starts and says
// what is missing; also if the checkpoint or the staging root cannot be read. Looking takes time,
// so the answer comes in a later call.
bool Service::SpaceFor(QueuedRun* run) {
  if (!NeedsStaging(run->config) || space_for_ == run->number) return true;
  if (!looking_for_space_) LookForSpace(run);
  return false;
}

void Service::LookForSpace(QueuedRun* run) {
  looking_for_space_ = true;
  looking_since_us_ = run->looked_us = MonotonicMicros();
  auto space = std::make_shared<bool>(true);
  looks_->Post(
      [space, config = run->config, state = options_.state_dir] {
        *space = Stager({.root = config.staging.root, .state = state, .roots = config.roots})
                     .HasSpace(config.checkpoint);
      },
      [this, space, number = run->number, id = run->id,
       releases = releases_](const std::optional<Error>& error) {
        if (error) log::Warn("run {}: {}", id, error->what());
        OnSpace(number, *space, releases);
      });
}

void Service::LookForSpaceAgain() {
  if (looking_for_space_) return;
  QueuedRun* run = queue_.LookedAtLongestAgo();
  if (run != nullptr && MonotonicMicros() - run->looked_us >= kSpaceEveryMicros) LookForSpace(run);
}

// `releases`: the releases that had begun when space was looked for. Later ones may not be in the
// answer.
void Service::OnSpace(int64_t number, bool space, int64_t releases) {
  looking_for_space_ = false;
  if (QueuedRun* run = queue_.Find(number)) {
    run->no_space = !space && SpaceComes(*run, releases);
    WaitFor(run, run->no_space ? SpaceWaitedFor(*run) : "");
    if (!run->no_space) space_for_ = number;
  }
  StartRuns();
  space_for_ = 0;
}

// Whether waiting may give the run space. Asks idle workers and paused runs for theirs.
bool Service::SpaceComes(const QueuedRun& run, int64_t releases) {
  if (fleet_->FreeStaged() || releases_ != releases || queue_.AnyYields()) return true;
  if (QueuedRun* paused = queue_.NextToYield(run)) {
    Yield(paused, run.id);
    return true;
  }
  return queue_.SpaceMayCome();
}

std::string Service::SpaceWaitedFor(const QueuedRun& run) const {
  const std::string holders = queue_.WhoHoldsSpace();
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
bool Service::LostSpace(const QueuedRun& run) const {
  return run.evaluation->found_no_space() && queue_.OthersHoldSpace(run);
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
