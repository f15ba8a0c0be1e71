#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/task.h"
#include "orchestrator/fleet/work_thread.h"

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
  std::vector<size_t> generation_of;  ///< document -> index into generation_files
  std::vector<size_t> score_of;       ///< document -> index into score_files
  std::filesystem::path samples;      ///< the samples_<task>.jsonl to write
  int bootstrap_iters = 100000;
};

/// What a finished task comes to.
struct TaskResult {
  Json entry;        ///< in `results`
  std::string hash;  ///< the harness's task hash
  /// filter -> why -> answers that were scored as the filter's fallback; {} for none
  Json fallbacks = Json::object();
  int64_t undefined = 0;  ///< documents with a log-likelihood that is NaN, or a text chosen among such logits
};

/// Reads the scores of a finished task, aggregates them and writes its samples file. Throws Error, for a
/// file that is no longer what was committed too.
TaskResult AggregateFinished(const FinishedTask& task);

/// A thread that does this, so that a task's score stands as soon as its last document is scored and
/// the loop never waits for it. What has not begun when it is destroyed is dropped.
class TaskFinisher {
 public:
  explicit TaskFinisher(Loop* loop) : thread_("finisher", loop, WorkThread::AtEnd::kDrop) {}

  /// Calls `done(result)` or `failed(error)` on the loop.
  void Submit(FinishedTask task, std::function<void(TaskResult)> done, std::function<void(const Error&)> failed);

 private:
  WorkThread thread_;
};

}  // namespace evald
