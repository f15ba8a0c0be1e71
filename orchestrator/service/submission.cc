#include "orchestrator/service/submission.h"

#include "base/jsonl.h"

namespace evald {

Json ToJson(const Submission& submission) {
  Json json = {{"yaml", submission.yaml},         {"base", submission.base.string()},
               {"set", submission.set},           {"user", submission.user},
               {"priority", submission.priority}, {"idempotency_key", submission.idempotency_key}};
  if (!submission.file.empty()) json["file"] = submission.file;
  return json;
}

Submission SubmissionFromJson(const Json& json, const std::string& where) {
  Submission submission;
  submission.yaml = Field<std::string>(json, "yaml", where);
  submission.base = Field<std::string>(json, "base", where);
  submission.set = Field<std::vector<std::string>>(json, "set", where);
  submission.file = FieldOr<std::string>(json, "file", "", where);
  submission.user = FieldOr<std::string>(json, "user", "", where);
  submission.priority = FieldOr<int>(json, "priority", 0, where);
  submission.idempotency_key = FieldOr<std::string>(json, "idempotency_key", "", where);
  return submission;
}

Submission SubmissionOf(const RunRow& row) {
  const std::string where = "the submission of run " + row.run + " in the database";
  Submission submission = SubmissionFromJson(ParseJson(row.submission, where), where);
  submission.user = row.user;
  submission.priority = row.priority;
  submission.idempotency_key = row.idempotency_key;
  return submission;
}

std::vector<std::string> Differing(const Submission& one, const Submission& other) {
  std::vector<std::string> members;
  if (one.yaml != other.yaml) members.emplace_back("the eval.yaml");
  if (one.base != other.base) members.emplace_back("base");
  if (one.set != other.set) members.emplace_back("set");
  if (one.priority != other.priority) members.emplace_back("priority");
  return members;
}

QueuedRun QueuedRunOf(const RunRow& row) {
  QueuedRun run;
  run.number = row.number;
  run.id = row.run;
  run.path = row.output;
  run.user = row.user;
  run.priority = row.priority;
  run.created = row.created;
  run.labels = LabelsOf(Json::parse(row.resource, nullptr, false));
  return run;
}

}  // namespace evald
