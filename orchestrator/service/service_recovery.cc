// Taking up the runs of an earlier life: those in the database, and those that only their folders
// know.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/own_folder.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Folders below `output` whose runs were submitted to the service with this state folder, and that
// no row names. With their records, oldest first.
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
      const std::string foreign = WhyNotOwn(entry->path());
      if (ours && !foreign.empty()) {  // it could be put there as a run of anyone's
        log::Warn("{}: {}; not taken up", entry->path().string(), foreign);
        continue;
      }
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

// Whether another try may succeed, since the fault is the disk's or the host's and not the run's.
bool MayPass(const Error& error) {
  return error.kind() != ErrorKind::kUsage && error.kind() != ErrorKind::kInput;
}

}  // namespace

bool Service::IsOver(const std::string& state) {
  return state == "done" || state == "incomplete" || state == "failed" || state == "cancelled";
}

// A run counts as submitted once its row is there. Its folder then says so too, so that no run is
// forgotten if the database is lost or loses its last rows: a client that repeats its key finds the
// run.
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
      // The record of a drained run says "incomplete", too. A run that is not known to be over goes
      // on.
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

// A run of an earlier life, from its row and its folder. The files that its submission names were
// judged when it was submitted and are not read here; the run's own preparation reports what is
// wrong with them now. Uses nothing that belongs to the loop.
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
  if (const std::string other = RunDirectory::AtWorkIn(row.output); !other.empty()) {
    throw Error(ErrorKind::kInfrastructure,
                fmt::format("{}: {} holds the run's .lock", row.output, other));
  }
  run.directory = RunDirectory::Resume(run.config, row.output);
  if (!run.directory->record().contains("submission"))
    RecordSubmission(&*run.directory, submission, options_.state_dir);
  return run;
}

// The earlier life was killed after the run's results and before its row. Only its gates are left
// to judge.
void Service::ReopenEnded(const Submission& submission, const Json& record, QueuedRun* run) const {
  run->state = "running";
  run->paused = false;
  run->concluding = true;
  run->ended = FieldOr<double>(record, "ended", WallSeconds(), run->path.string());
  try {
    run->config = Resolve(submission, EvalOverrides::Folders::kJudged);
    // today's rules refuse it: the results stand, and run.json has the gates
  } catch (const Error& e) {
    log::Warn("run {}: {}", run->id, e.what());
    const Json gates = FieldOr<Json>(FieldOr<Json>(record, "config", Json::object(), run->id),
                                     "gates", Json(), run->id);
    if (!gates.is_null())
      run->config.gates = GatePolicyFromJson(gates, (run->path / "run.json").string());
    run->config.limits = options_.limits;
  }
}

// The earlier life was killed while the run's gates were being judged and the run was cancelled. A
// resume judges them.
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

// Trouble with one run ends no other run and no service. If the trouble may pass, for example a
// disk that is not there yet, the run is tried again later.
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
  shown_.erase(run.number);
}

// The row stays unfinished, so that the next life takes the run up, too. It says what the run waits
// for.
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

// Takes the run up, unless somebody has resumed it meanwhile.
void Service::TakeUpAgain(const std::string& id) {
  auto row = std::make_shared<std::optional<RunRow>>();
  database_->Post(
      [id, row](RunStore& store) { *row = service_store::FindRun(store.database(), id); },
      [this, id, row] {
        if (draining_ || stopping_ || !*row || IsOver((*row)->state) || queue_.Find(id) ||
            resuming_.count(id) > 0)
          return DoDeferred(id);
        auto run = std::make_shared<QueuedRun>();
        files_->Post([this, run, row] { *run = Reopen(**row); },
                     [this, run, row](const std::optional<Error>& error) {
                       if (error) {
                         OnNotReopened(**row, *error);
                         return DoDeferred((*row)->run);
                       }
                       OnReopened(std::move(*run));
                       DoDeferred((*row)->run);
                       StartRuns();
                       Publish();
                     });
      });
}

}  // namespace evald
