#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/run/evaluation.h"
#include "orchestrator/service/run_service.h"

namespace evald {

/// A submitted run that is not over.
struct QueuedRun {
  int64_t number = 0;
  std::string id;
  EvalConfig config;
  std::optional<RunDirectory> directory;   ///< until the run starts; then the evaluation has it
  std::filesystem::path path;              ///< the run's folder
  std::shared_ptr<Evaluation> evaluation;  ///< while the run is at work
  std::string user;
  std::string workload;  ///< WorkloadOf(config); "" until it is asked for
  int priority = 0;
  RunLabels labels;
  /// Queued, preparing, running, paused, cancelling, or its final state
  std::string state = "queued";
  bool paused = false;                         ///< the run is not started, or leases nothing
  double created = 0, started = 0, ended = 0;  ///< seconds since 1970; 0: not yet
  std::optional<RunOutcome> outcome;
  Json verdict;  ///< null if it has no gates
  /// Its last files are being written; without `evaluation`, those of a service before this one
  bool concluding = false;
  bool unjudged = false;  ///< its gates will not be judged: it ends as cancelled
  bool no_space = false;  ///< no space was found for its checkpoint, or looking takes long
  int64_t looked_us = 0;  ///< when space was looked for last (monotonic); 0: not yet
  int passed = 0;         ///< runs that took space before it since then
  /// For people: what a run without space waits for; "" if it waits for none
  std::string waits_for;
  /// The run gives its space up to another: its evaluation ends, and the run is then queued again,
  /// paused or to go on. A run that was paused at work gives up its space if another run needs it,
  /// and a run whose checkpoint no longer found space has none to keep.
  bool yields = false;
  /// It is at work, but no device that could compute for it has been there for a while, for example
  /// because a host is away. It then takes no place from others.
  bool stranded = false;
  /// Since when its documents are scored, and only aggregations are left (monotonic); 0: not so
  int64_t aggregates_us = 0;
  /// It has been so for a while. It then takes no place from others.
  bool aggregating = false;
  std::vector<RunService::Done<Json>> resumes;  ///< callers who wait for its end to resume it

  /// Whether the run waits for its turn.
  bool waiting() const { return !evaluation && !paused && state == "queued"; }
  /// Whether the run is ending, whatever is asked of it now.
  bool ending() const { return concluding || (evaluation && evaluation->ending()); }
};

/// The runs of a service that are not over, and their order. A plain value.
class RunQueue {
 public:
  QueuedRun* Add(QueuedRun run);
  QueuedRun* Find(int64_t number);
  QueuedRun* Find(const std::string& id);
  void Remove(int64_t number) { runs_.erase(number); }

  /// The run to start next: the highest priority first, then users take turns, each with the oldest
  /// run first. A run has a place if fewer than `active_max` runs of at least its priority are at
  /// work, or, for a user without a run at work, if these are runs of fewer than `active_max`
  /// users. Stranded runs and those that have only aggregated for a while take no place. A user has
  /// at most twice `active_max` runs at work. A run for whose checkpoint there is no space is
  /// passed over, but only by kPassesMax runs that take space. After these, no run of its priority
  /// or lower takes space before it, as long as another user's run at work may release some.
  QueuedRun* Next(int active_max);
  static constexpr int kPassesMax = 16;
  /// Notes that the run starts: it has passed over the runs without space.
  void CountPass(const QueuedRun& started);
  /// Whether a run releases space in time: one at work, or a paused one that gives its space up.
  bool SpaceMayCome() const;
  /// Whether another run holds space, which it may release.
  bool OthersHoldSpace(const QueuedRun& run) const;
  /// Whether a paused run is giving its space up already.
  bool AnyYields() const;
  /// The paused run that is to give its space up for `waiting`: the user's own first, then the one
  /// of the lowest priority, then the oldest. Passes over runs whose staged checkpoint a run at
  /// work needs too. Null if there is none.
  QueuedRun* NextToYield(const QueuedRun& waiting);
  /// For people: the runs that hold space, those that give it up first. "" if there are none.
  std::string WhoHoldsSpace() const;
  /// The run without space for which to look for space next. Users take turns.
  QueuedRun* LookedAtLongestAgo();
  /// Ids of the waiting runs, in the order in which they would start.
  std::vector<std::string> Waiting() const;
  std::map<int64_t, QueuedRun>& runs() { return runs_; }
  const std::map<int64_t, QueuedRun>& runs() const { return runs_; }

 private:
  std::vector<const QueuedRun*> InOrder() const;
  bool HasPlace(const QueuedRun& run, const std::vector<const QueuedRun*>& at_work,
                int active_max) const;
  bool LeavesSpaceTo(const QueuedRun& first, const QueuedRun& run) const;

  std::map<int64_t, QueuedRun> runs_;
};

}  // namespace evald
