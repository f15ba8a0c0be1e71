// What an earlier life of the service left: runs in the database, and runs that only their folders
// know.
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

// Folders below `output` of runs that were submitted to the service of this state folder and that
// no row names, with their records, oldest first.
std::vector<std::pair<fs::path, Json>> FoldersWithoutRow(Database& database, const fs::path& output,
                                                         const fs::path& state_dir) {
  const std::set<std::string> known = service_store::Outputs(database);
  std::vector<std::pair<fs::path, Json>> found;
  std::error_code error;
  for (fs::directory_iterator entry(output, error), end; !error && entry != end;
       entry.increment(error)) {
    if (known.count(entry->path().string()) > 0) continue;
    try {
      auto record = RunDirectory::ReadRecord(entry->path());
      const bool ours = record && record->contains("submission") &&
                        record->value("service", Json()) == state_dir.string();
      if (ours) found.emplace_back(entry->path(), std::move(*record));
    } catch (const std::exception& e) {
      log::Warn("passed over: {}", e.what());
    }
  }
  if (error)
    log::Error("{}: cannot be looked through for runs: {}", output.string(), error.message());
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return a.second["created"].template get<double>() < b.second["created"].template get<double>();
  });
  return found;
}

constexpr std::chrono::milliseconds kTakeUpAgain{30'000};

bool IsOver(const std::string& state) {
  return state == "done" || state == "incomplete" || state == "failed" || state == "cancelled";
}

// Whether another try may end otherwise: the disk's or the host's fault, not the run's.
bool MayPass(const Error& error) {
  return error.kind() != ErrorKind::kUsage && error.kind() != ErrorKind::kInput;
}

}  // namespace

// A run counts as submitted once its row is there. Its folder then says so too, so that a database
// that was lost, or lost its last rows, forgets no run: a client that repeats its key finds it
// again.
void Service::RecordSubmission(RunDirectory* directory, const Submission& submission,
                               const fs::path& state_dir) {
  try {
    directory->Update({{"submission", ToJson(submission)}, {"service", state_dir.string()}});
  } catch (const Error& e) {
    log::Warn("{}", e.what());
  }
}

void Service::AdoptRuns() {
  Database& database = store_->database();
  for (auto& [folder, record] :
       FoldersWithoutRow(database, options_.output_dir, options_.state_dir)) {
    try {
      const Submission submission =
          SubmissionFromJson(record["submission"], (folder / "run.json").string());
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
        service_store::AddRun(database, {0, run.id, folder.string(), run.created, run.state,
                                         run.config.name, run.user, run.priority,
                                         run.config.checkpoint.string(), ToJson(submission).dump(),
                                         submission.idempotency_key, Resource(run).dump()});
      });
      log::Warn("run {}: was not in the database, taken up from {}", run.id, folder.string());
    } catch (const std::exception& e) {
      log::Error("{}: cannot be taken up: {}", folder.string(), e.what());
    }
  }
}

// A run of an earlier life, from its row and its folder. Nothing that its submission names is
// looked at: that was judged when it was submitted, and the run's own preparation says what is
// wrong with it by now. Uses nothing of the loop's.
QueuedRun Service::Reopen(const RunRow& row) const {
  QueuedRun run = QueuedRunOf(row);
  run.paused = row.state == "paused";
  run.state = run.paused ? "paused" : "queued";
  run.config.name = row.name;
  run.config.checkpoint = row.checkpoint;
  const Submission submission = SubmissionOf(row);
  const auto record = RunDirectory::ReadRecord(row.output);
  if (record && (*record)["state"] == "done") {
    ReopenEnded(submission, *record, &run);
    return run;
  }
  run.config = Resolve(submission, EvalOverrides::Folders::kJudged);
  run.directory = RunDirectory::Resume(run.config, row.output);
  if (!run.directory->record().contains("submission"))
    RecordSubmission(&*run.directory, submission, options_.state_dir);
  return run;
}

// The life before was killed between a run's results and its row: what is left is to judge its
// gates.
void Service::ReopenEnded(const Submission& submission, const Json& record, QueuedRun* run) const {
  run->state = "running";
  run->paused = false;
  run->concluding = true;
  run->ended = FieldOr<double>(record, "ended", WallSeconds(), run->path.string());
  try {
    run->config = Resolve(submission, EvalOverrides::Folders::kJudged);
  } catch (const Error& e) {  // another service's rules by now: the results stand, and run.json has
                              // the gates
    log::Warn("run {}: {}", run->id, e.what());
    const Json gates = FieldOr<Json>(FieldOr<Json>(record, "config", Json::object(), run->id),
                                     "gates", Json(), run->id);
    if (!gates.is_null())
      run->config.gates = GatePolicyFromJson(gates, (run->path / "run.json").string());
    run->config.limits = options_.limits;
  }
}

// The life before was killed while the run's gates were judged and the run was cancelled: a resume
// judges them.
void Service::SayCancelled(const fs::path& folder) {
  files_->Post([folder] {
    const auto record = RunDirectory::ReadRecord(folder);
    if (record && (*record)["state"] == "done")
      RunDirectory::Amend(folder, {{"state", "cancelled"}});
  });
}

void Service::TakeUp(const RunRow& row) {
  try {
    if (row.state == "cancelling") {
      SayCancelled(row.output);
      throw Error(ErrorKind::kUsage, "cancelled");
    }
    OnReopened(Reopen(row));
  } catch (...) {
    OnNotReopened(row, CurrentError());
  }
}

void Service::OnReopened(QueuedRun reopened) {
  QueuedRun* run = queue_.Add(std::move(reopened));
  if (!run->concluding) return;
  log::Info("run {}: was finished by an earlier life", run->id);
  auto outcome = std::make_shared<RunOutcome>();
  outcome->directory = run->path;
  loop_.Post([this, number = run->number, outcome] { JudgeSoon(number, outcome); });
}

// One run's trouble ends no other, and no service. What may pass, as a disk that is not there yet,
// is waited for.
void Service::OnNotReopened(const RunRow& row, const Error& why) {
  if (MayPass(why)) return TakeUpLater(row, why);
  log::Error("run {} cannot be taken up again: {}", row.run, why.what());
  QueuedRun run = QueuedRunOf(row);
  run.config.name = row.name;
  run.config.checkpoint = row.checkpoint;
  run.outcome.emplace();
  run.outcome->status = ExitStatus::kUsage;
  run.outcome->problems.emplace_back(why.what());
  run.ended = WallSeconds();
  SetState(&run, row.state == "cancelling" ? "cancelled" : "failed");
}

// The row stays unfinished, so that the next life takes the run up, too, and says what the run
// waits for.
void Service::TakeUpLater(const RunRow& row, const Error& why) {
  log::Error("run {} cannot be taken up yet, and is tried again: {}", row.run, why.what());
  database_->Post([row, problem = std::string(why.what())](RunStore& store) {
    Json resource = StoredResource(row);
    resource["state"] = row.state == "paused" ? "paused" : "queued";
    resource["problems"] = {"it cannot be taken up yet, and is tried again: " + problem};
    service_store::UpdateRun(store.database(), row.run, resource["state"], row.priority,
                             ToLine(resource));
  });
  loop_.After(kTakeUpAgain, [this, id = row.run] { TakeUpAgain(id); });
}

// Unless somebody has resumed it meanwhile.
void Service::TakeUpAgain(const std::string& id) {
  auto row = std::make_shared<std::optional<RunRow>>();
  database_->Post(
      [id, row](RunStore& store) { *row = service_store::FindRun(store.database(), id); },
      [this, id, row] {
        if (draining_ || stopping_ || !*row || IsOver((*row)->state) || queue_.Find(id) ||
            resuming_.count(id) > 0)
          return;
        auto run = std::make_shared<QueuedRun>();
        files_->Post([this, run, row] { *run = Reopen(**row); },
                     [this, run, row](const std::optional<Error>& error) {
                       if (error) return OnNotReopened(**row, *error);
                       OnReopened(std::move(*run));
                       StartRuns();
                       Publish();
                     });
      });
}

}  // namespace evald
