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
  std::optional<RunDirectory> directory;   ///< until it starts; then the evaluation has it
  std::filesystem::path path;              ///< the folder
  std::shared_ptr<Evaluation> evaluation;  ///< while it is at work
  std::string user;
  int priority = 0;
  std::string state =
      "queued";         ///< queued, preparing, running, paused, cancelling, or how it ended
  bool paused = false;  ///< is not started, or leases nothing
  double created = 0, started = 0, ended = 0;  ///< seconds since 1970; 0: not yet
  std::optional<RunOutcome> outcome;
  Json verdict;             ///< null without gates
  bool concluding = false;  ///< its last files are being written, or are; without `evaluation`: by
                            ///< an earlier life
  bool unjudged = false;    ///< its gates are not judged any more: it ends as cancelled
  std::vector<RunService::Done<Json>> resumes;  ///< who wait for its end, to resume it then

  /// Whether it comes to its end by itself, whatever is asked of it.
  bool ending() const { return concluding || (evaluation && evaluation->ending()); }
};

/// The runs of a service that are not over, and which of them starts next. A plain value.
class RunQueue {
 public:
  QueuedRun* Add(QueuedRun run);
  QueuedRun* Find(int64_t number);
  QueuedRun* Find(const std::string& id);
  void Remove(int64_t number) { runs_.erase(number); }

  /// The run to start next of those that wait: the highest priority; then users take turns, each
  /// with the oldest first; nothing when `active_max` runs of at least its priority are at work.
  QueuedRun* Next(int active_max);
  /// Those that wait, in the order in which they would start.
  std::vector<std::string> Waiting() const;
  std::map<int64_t, QueuedRun>& runs() { return runs_; }
  const std::map<int64_t, QueuedRun>& runs() const { return runs_; }

 private:
  std::vector<const QueuedRun*> InOrder() const;

  std::map<int64_t, QueuedRun> runs_;
};

}  // namespace evald
