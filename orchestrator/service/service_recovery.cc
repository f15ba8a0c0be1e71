// What an earlier life of the service left: runs in the database, and runs that only their folders know.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Folders below `output` of runs that were submitted to the service of this state folder and that no row
// names, with their records, oldest first.
std::vector<std::pair<fs::path, Json>> FoldersWithoutRow(Database& database, const fs::path& output,
                                                         const fs::path& state_dir) {
  const std::set<std::string> known = service_store::Outputs(database);
  std::vector<std::pair<fs::path, Json>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(output, error)) {
    if (known.count(entry.path().string()) > 0) continue;
    try {
      auto record = RunDirectory::ReadRecord(entry.path());
      const bool ours = record && record->contains("submission") && record->value("service", Json()) == state_dir.string();
      if (ours) found.emplace_back(entry.path(), std::move(*record));
    } catch (const Error& e) {
      log::Warn("passed over: {}", e.message());
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.second["created"].template get<double>() < b.second["created"].template get<double>();
  });
  return found;
}

// The results of a run that an earlier life finished.
RunOutcome OutcomeOf(const fs::path& folder) {
  RunOutcome outcome;
  outcome.directory = folder;
  const fs::path file = folder / "results.json";
  outcome.results = ParseJson(ReadFile(file), file.string());
  return outcome;
}

}  // namespace

// A run counts as submitted once its row is there. Its folder then says so too, so that a database that
// was lost, or lost its last rows, forgets no run: a client that repeats its key finds it again.
void Service::RecordSubmission(RunDirectory* directory, const Submission& submission, const fs::path& state_dir) {
  try {
    directory->Update({{"submission", ToJson(submission)}, {"service", state_dir.string()}});
  } catch (const Error& e) {
    log::Warn("{}", e.what());
  }
}

void Service::AdoptRuns() {
  Database& database = store_->database();
  for (auto& [folder, record] : FoldersWithoutRow(database, options_.output_dir, options_.state_dir)) {
    try {
      const Submission submission = SubmissionFromJson(record["submission"], (folder / "run.json").string());
      QueuedRun run;
      run.id = record["id"];
      run.path = folder;
      run.user = submission.user;
      run.priority = submission.priority;
      run.created = record["created"];
      run.ended = FieldOr<double>(record, "ended", 0, folder.string());
      const Json config = record.value("config", Json::object());
      run.config.name = config.value("name", "");
      run.config.checkpoint = config.value("checkpoint", "");
      // A drained run's record says incomplete too: what is not known to be over goes on.
      run.state = record["state"] == "cancelled" ? "cancelled" : "queued";
      database.Transaction([&] {
        service_store::AddRun(database, {0, run.id, folder.string(), run.created, run.state, run.config.name, run.user,
                                         run.priority, run.config.checkpoint.string(), ToJson(submission).dump(),
                                         submission.idempotency_key, Resource(run).dump()});
      });
      log::Warn("run {}: was not in the database, taken up from {}", run.id, folder.string());
    } catch (const std::exception& e) {
      log::Error("{}: cannot be taken up: {}", folder.string(), e.what());
    }
  }
}

// A run of an earlier life, from its row.
void Service::TakeUp(const RunRow& row) {
  QueuedRun run = QueuedRunOf(row);
  run.paused = row.state == "paused";
  run.state = run.paused ? "paused" : "queued";
  run.config.name = row.name;
  run.config.checkpoint = row.checkpoint;
  try {
    if (row.state == "cancelling") throw Error(ErrorKind::kUsage, "cancelled");
    const auto record = RunDirectory::ReadRecord(row.output);
    if (record && (*record)["state"] == "done") return CloseEarlier(&run, row);
    run.config = Configure(SubmissionOf(row));
    run.directory = RunDirectory::Resume(run.config, row.output);
    if (!record->contains("submission")) RecordSubmission(&*run.directory, SubmissionOf(row), options_.state_dir);
    queue_.Add(std::move(run));
  } catch (const Error& e) {
    log::Error("run {} cannot be taken up again: {}", row.run, e.what());
    run.outcome.emplace();
    run.outcome->status = ExitStatus::kUsage;
    run.outcome->problems.push_back(e.what());
    run.ended = WallSeconds();
    SetState(&run, row.state == "cancelling" ? "cancelled" : "failed");
  }
}

// The life before was killed between a run's results and its row.
void Service::CloseEarlier(QueuedRun* run, const RunRow& row) {
  run->outcome = OutcomeOf(row.output);
  run->ended = WallSeconds();
  GatePolicy gates;
  try {
    gates = Configure(SubmissionOf(row)).gates;
  } catch (const Error& e) {  // the checkpoint may be gone meanwhile: the results stand all the same
    log::Error("run {}: its gates are not judged: {}", row.run, e.what());
  }
  const auto verdict = JudgeRun(gates, options_.roots, *run->outcome);
  if (verdict && !verdict->gates.empty()) {
    run->outcome->status = verdict->status;
    run->verdict = StatusWord(verdict->status);
    Emit(run->id, "run.verdict", {{"verdict", run->verdict}, {"summary", Summary(*verdict)}});
  }
  log::Info("run {}: was finished by an earlier life", row.run);
  SetState(run, "done");
}

}  // namespace evald
