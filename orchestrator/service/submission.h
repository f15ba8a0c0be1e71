#pragma once

#include <optional>

#include "orchestrator/config/eval_config.h"
#include "orchestrator/run/run_outcome.h"
#include "orchestrator/service/run_queue.h"
#include "orchestrator/service/run_service.h"
#include "orchestrator/state/service_store.h"
#include "orchestrator/verdict/run_verdict.h"

namespace evald {

/// A submission as the database's rows and a run's run.json keep it.
Json ToJson(const Submission& submission);
/// Throws Error(kInput) "<where>: ...".
Submission SubmissionFromJson(const Json& json, const std::string& where);
Submission SubmissionOf(const RunRow& row);
/// The run of a row, queued, without what decides how it goes on: its configuration and folder.
QueuedRun QueuedRunOf(const RunRow& row);

/// Judges a run's gates, their baseline below `roots`, and writes verdict.json and report.html. Nothing when
/// that is not possible: the results stand all the same.
std::optional<Verdict> JudgeRun(const GatePolicy& gates, const ReadRoots& roots, const RunOutcome& outcome);

}  // namespace evald
