#pragma once

#include <atomic>
#include <functional>

#include "metrics/sandbox/sandbox.h"
#include "protocol/messages.h"

namespace evald {

/// Makes the sandbox when the first job that runs code comes; the same one for all jobs.
using CodeRunnerSource = std::function<CodeRunner*()>;

/// Scores documents [job.first, job.end) of a prepared task from its generations file and commits
/// the scores file: one line a document, in order. Counts the documents scored in `done`; stops
/// with nothing committed, and returns false, once `stop` is set. Throws Error: kInput for what
/// would fail again anywhere, kInfrastructure for what may work another time (a generation that is
/// missing, a full disk, a sandbox that broke).
bool RunJob(const protocol::Job& job, const CodeRunnerSource& code_runner,
            const std::atomic<bool>& stop, std::atomic<int64_t>* done, protocol::JobDone* result);

}  // namespace evald
