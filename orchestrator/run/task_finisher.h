#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "orchestrator/fleet/fair_threads.h"
#include "orchestrator/run/reported_file.h"
#include "orchestrator/run/samples_so_far.h"
#include "task_code/task_code.h"

namespace evald {

/// A committed file and its XXH3-128, by which a reader checks that it is unchanged.
struct FileAndHash {
  std::filesystem::path path;
  std::string hash;
};

/// A task all of whose documents are scored; for WriteSamplesSoFar, a task some of whose are.
struct FinishedTask {
  static constexpr size_t kNoFile = SIZE_MAX;

  TaskDefinition definition;
  std::filesystem::path prepared;
  std::vector<FileAndHash> generation_files;  ///< the files that its documents lie in, and no other
  std::vector<FileAndHash> score_files;       ///< the same for its scores
  /// Document -> index into generation_files; kNoFile: not scored yet
  std::vector<size_t> generation_of;
  std::vector<size_t> score_of;   ///< the same for score_files
  std::filesystem::path samples;  ///< the samples_<task>.jsonl to write
  int bootstrap_iters = 100000;
  TaskCodeOptions code = {};  ///< for functions of the task's own
  std::string user;           ///< the user whose run it is
  /// Set when the result is no longer wanted; may be null
  std::shared_ptr<const std::atomic<bool>> cancel;
};

/// The results of a finished task.
struct TaskResult {
  Json entry;        ///< in `results`
  std::string hash;  ///< the harness's task hash
  /// filter -> reason -> answers that were scored as the filter's fallback; {} for none
  Json fallbacks = Json::object();
  /// Documents with a NaN log-likelihood, or with a text chosen among such logits
  int64_t undefined = 0;
  int64_t texts = 0;              ///< generated answers; 0 for a task that scores log-likelihoods
  int64_t truncated_answers = 0;  ///< of these, those that ran into max_gen_toks
  JudgeUsage judge;               ///< of a task with a judge: what its answers took
};

/// Reads the scores of a finished task, aggregates them and writes its samples file. Throws
/// Error(kInput) for scores that the task's aggregations do not take, and Error(kInfrastructure)
/// for a file that has changed since it was committed. Throws Error(kInfrastructure) soon after
/// `stopped` has become true. `stopped` may be null, and is called from several threads.
TaskResult AggregateFinished(const FinishedTask& task,
                             const std::function<bool()>& stopped = nullptr);

/// Writes the samples of the task's scored documents into a file that loses its name, `samples`, at
/// once. Throws Error like AggregateFinished.
std::shared_ptr<const SamplesSoFar> WriteSamplesSoFar(
    const FinishedTask& task, const std::function<bool()>& stopped = nullptr);

/// Threads that look at reported files, and threads that call AggregateFinished, so that a task has
/// its score as soon as its last document is scored, and the loop never waits. Bootstrapping a
/// standard error may take minutes, so users take turns, each with one task at a time. Tasks
/// whose own functions run at the end, which may take longer, have threads of their own.
class TaskFinisher {
 public:
  static constexpr int kThreads = 8;       ///< tasks of so many users are finished at once
  static constexpr int kOwnThreads = 4;    ///< the same for tasks whose own functions run
  static constexpr int kSoFarThreads = 1;  ///< samples of so many users are written at once
  /// Files of so many users are looked at at once
  static constexpr int kCheckThreads = 2;

  explicit TaskFinisher(Loop* loop)
      : threads_("finisher", loop, {.threads = kThreads}),
        own_("aggregator", loop, {.threads = kOwnThreads}),
        so_far_("samples so far", loop, {.threads = kSoFarThreads}),
        checks_("file check", loop, {.threads = kCheckThreads}) {}
  /// Stops the work under way and drops work that has not begun. No callback is called.
  ~TaskFinisher() { stopping_ = true; }

  /// Calls `done(result)` or `failed(error)` on the loop. A task that was cancelled has failed.
  void Submit(FinishedTask task, std::function<void(TaskResult)> done,
              std::function<void(const Error&)> failed);
  /// Calls WriteSamplesSoFar, and `done` on the loop.
  void WriteSoFar(FinishedTask task, SamplesSoFarDone done);
  /// `settled` waits until nothing renames a reported file any more; called on the threads that
  /// look at files. Set it before the first Check.
  void SetSettled(std::function<void(const std::filesystem::path& file)> settled) {
    settled_ = std::move(settled);
  }
  /// Calls `done` on the loop with the reason why the file cannot count, or "". A file that cannot
  /// count is set aside, so that no later attempt and no resumed run takes it.
  void Check(ReportedFile file, const std::string& user,
             std::function<void(const std::string& why)> done);

 private:
  std::atomic<bool> stopping_{false};
  std::function<void(const std::filesystem::path&)> settled_;
  FairThreads threads_;
  FairThreads own_;
  FairThreads so_far_;
  FairThreads checks_;
};

}  // namespace evald
