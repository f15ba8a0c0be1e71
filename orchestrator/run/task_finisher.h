#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/task.h"
#include "orchestrator/fleet/fair_threads.h"

namespace evald {

/// A committed file and its XXH3-128: what is read must be what was committed.
struct FileAndHash {
  std::filesystem::path path;
  std::string hash;
};

/// A task all of whose documents are scored.
struct FinishedTask {
  TaskDefinition definition;
  std::filesystem::path prepared;
  std::vector<FileAndHash> generation_files;  ///< those that its documents lie in, and no other
  std::vector<FileAndHash> score_files;       ///< likewise
  std::vector<size_t> generation_of;          ///< document -> index into generation_files
  std::vector<size_t> score_of;               ///< document -> index into score_files
  std::filesystem::path samples;              ///< the samples_<task>.jsonl to write
  int bootstrap_iters = 100000;
  std::string user;  ///< whose run it is of
  std::shared_ptr<const std::atomic<bool>>
      cancel;  ///< nobody waits for it any more once set; may be null
};

/// What a finished task comes to.
struct TaskResult {
  Json entry;        ///< in `results`
  std::string hash;  ///< the harness's task hash
  /// filter -> why -> answers that were scored as the filter's fallback; {} for none
  Json fallbacks = Json::object();
  int64_t undefined =
      0;  ///< documents with a log-likelihood that is NaN, or a text chosen among such logits
};

/// Reads the scores of a finished task, aggregates them and writes its samples file. Throws Error,
/// for a file that is no longer what was committed too, and Error(kInfrastructure) soon after
/// `stopped` has begun to be true; `stopped` may be null, and is asked from several threads.
TaskResult AggregateFinished(const FinishedTask& task,
                             const std::function<bool()>& stopped = nullptr);

/// Threads that do this, so that a task's score stands as soon as its last document is scored and
/// the loop never waits for it. A standard error that is bootstrapped may take minutes: so users
/// take turns, each with one task at a time.
class TaskFinisher {
 public:
  static constexpr int kThreads = 8;  ///< so many users' tasks are finished at once

  explicit TaskFinisher(Loop* loop) : threads_("finisher", loop, {.threads = kThreads}) {}
  /// What is under way is stopped, what has not begun is dropped; neither callback is called.
  ~TaskFinisher() { stopping_ = true; }

  /// Calls `done(result)` or `failed(error)` on the loop; a task that was cancelled has failed.
  void Submit(FinishedTask task, std::function<void(TaskResult)> done,
              std::function<void(const Error&)> failed);

 private:
  std::atomic<bool> stopping_{false};
  FairThreads threads_;
};

}  // namespace evald
