#pragma once

#include "orchestrator/service/run_queue.h"
#include "orchestrator/service/run_service.h"
#include "orchestrator/state/service_store.h"

namespace evald {

/// A submission as the database's rows and a run's run.json keep it.
Json ToJson(const Submission& submission);
/// Throws Error(kInput) "<where>: ...".
Submission SubmissionFromJson(const Json& json, const std::string& where);
Submission SubmissionOf(const RunRow& row);
/// The run of a row, queued, without what decides how it goes on: its configuration and folder.
QueuedRun QueuedRunOf(const RunRow& row);

}  // namespace evald
