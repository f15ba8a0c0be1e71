#pragma once

#include <string>
#include <vector>

#include "orchestrator/service/run_queue.h"
#include "orchestrator/service/run_service.h"
#include "orchestrator/state/service_store.h"

namespace evald {

/// The form in which the database's rows and run.json keep a submission.
Json ToJson(const Submission& submission);
/// Throws Error(kInput) "<where>: ...".
Submission SubmissionFromJson(const Json& json, const std::string& where);
Submission SubmissionOf(const RunRow& row);
/// The members that differ, by the names that clients use. The user and the key are taken to be
/// equal.
std::vector<std::string> Differing(const Submission& one, const Submission& other);
/// The run of a row, queued, but without its configuration and folder.
QueuedRun QueuedRunOf(const RunRow& row);

}  // namespace evald
