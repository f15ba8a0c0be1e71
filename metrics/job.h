#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>

#include "metrics/math_comparer.h"
#include "metrics/sandbox/sandbox.h"
#include "prepared/prepared_task.h"
#include "protocol/messages.h"
#include "task_code/task_code.h"

namespace evald {

/// Makes the sandbox for the first job that runs code, and returns the same one for all jobs.
using CodeRunnerSource = std::function<CodeRunner*()>;

/// After so long a job ends with the document under way, so that the jobs of other users wait no
/// longer (docs/scheduling.md).
inline constexpr std::chrono::seconds kJobTime{10};

/// The process for the own functions of a prepared task; null if the task has none. The source
/// itself is null where no task has any.
using TaskCodeSource = std::function<TaskCode*(const PreparedTask& prepared)>;

/// Scores documents [job.first, job.end) of a prepared task from its generations file, and commits
/// the scores file: one line per document, in order. Ends early, with at least one document, when
/// `time` has passed (JobDone::end). Counts the scored documents in `done`. Once
/// `stop` is set, stops without committing and returns false. Throws Error: kInput if it would fail
/// again anywhere, kInfrastructure if another try may succeed (a missing generation, a full disk, a
/// broken sandbox). `math` compares answers of mathematics; null where no task needs that. Its
/// verdicts are kept in the cache that the prepared task lies in.
///
/// If a judge rates the task's answers, it is asked as `job.judge` says, and its answers are kept
/// in the folder `judge_cache` (metrics/judge/). A document that cannot be judged has no line
/// (JobDone::unscored).
bool RunJob(const protocol::Job& job, const CodeRunnerSource& code_runner,
            const TaskCodeSource& task_code, const std::atomic<bool>& stop,
            std::atomic<int64_t>* done, protocol::JobDone* result,
            std::chrono::microseconds time = kJobTime, MathComparer* math = nullptr,
            const std::filesystem::path& judge_cache = {});

}  // namespace evald
