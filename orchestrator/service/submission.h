#pragma once

#include <string>
#include <vector>

#include "orchestrator/service/run_queue.h"
#include "orchestrator/service/run_service.h"
#include "orchestrator/state/service_store.h"

namespace evald {

/// A submission as the database's rows and a run's run.json keep it.
Json ToJson(const Submission& submission);
/// Throws Error(kInput) "<where>: ...".
Submission SubmissionFromJson(const Json& json, const std::string& where);
Submission SubmissionOf(const RunRow& row);
/// Which of their members, as a client names them, are not the same; the user and the key are.
std::vector<std::string> Differing(const Submission& one, const Submission& other);
/// The run of a row, queued, without what decides how it goes on: its configuration and folder.
QueuedRun QueuedRunOf(const RunRow& row);

}  // namespace evald
