// Resuming runs: paused runs, and runs that ended without results and are taken up once more.
#include <fmt/format.h>

#include "base/log.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"

namespace evald {
namespace {

Error Stopping() {
  return Error(ErrorKind::kInfrastructure, "the service is stopping; resume it later");
}

}  // namespace

Error Service::ResumeCancelled(const std::string& id) {
  return Error(ErrorKind::kUsage,
               fmt::format("run {} was cancelled again before it was resumed", id),
               "resume it once more if it is to go on");
}

void Service::Resume(const std::string& id, Done<Json> done) {
  if (const auto resuming = resuming_.find(id);
      resuming != resuming_.end() && !*resuming->second.cancelled) {
    return resuming->second.asked.push_back(std::move(done));
  }
  QueuedRun* run = queue_.Find(id);
  if (run == nullptr) return BeginResume(id, {std::move(done)});
  // Answering now would promise something that a kill before the run's end would break.
  if (run->state == "cancelling" || run->ending()) {
    run->resumes.push_back(std::move(done));
    return Publish();
  }
  run->paused = false;
  if (run->evaluation) run->evaluation->Pause(false);
  SetState(run, !run->evaluation || run->yields ? "queued"
                : run->evaluation->planned()    ? "running"
                                                : "preparing");
  StartRuns();
  Publish();
  AnswerOnceOnDisk(std::move(done), *Shown(*run));
}

// The row is read after all that was posted for the run before, so it says how the run ended.
void Service::BeginResume(const std::string& id, std::vector<Done<Json>> asked) {
  // The earlier resume was cancelled
  if (const auto resuming = resuming_.find(id); resuming != resuming_.end()) {
    for (const auto& done : asked) done(ResumeCancelled(id));
    return;
  }
  if (forgetting_.count(id) > 0) {
    const Error gone(ErrorKind::kUsage, fmt::format("there is no run {}", id));
    for (const auto& done : asked) done(gone);
    return;
  }
  resuming_[id].asked = std::move(asked);
  auto row = std::make_shared<std::optional<RunRow>>();
  database_->Post(
      [id, row](RunStore& store) { *row = service_store::FindRun(store.database(), id); },
      [this, id, row] { OnResumeRow(id, *row); });
}

// The run goes on as it was submitted: its folder refuses another configuration.
void Service::OnResumeRow(const std::string& id, const std::optional<RunRow>& row) {
  Resuming& resuming = resuming_.at(id);
  if (*resuming.cancelled) return EndResume(id, ResumeCancelled(id));
  if (draining_) return EndResume(id, Stopping());
  if (!row) return EndResume(id, Error(ErrorKind::kUsage, fmt::format("there is no run {}", id)));
  if (row->state == "done") {
    return EndResume(
        id, Error(ErrorKind::kUsage, fmt::format("run {} is done: there is nothing to resume", id),
                  "submit it again for another run of the same"));
  }
  if (std::optional<OverQuota> over = OverLimit(row->user)) {
    over->remedy = "resume it when others are over, or cancel some";
    return EndResume(id, *over);
  }
  resuming.user = row->user;  // it counts against the user's quota from now on
  resuming.judging = true;
  const Cancelled cancelled = [flag = resuming.cancelled] { return flag->load(); };
  auto config = std::make_shared<EvalConfig>();
  HaveJudged(
      row->user, cancelled,
      [this, row = *row, config, cancelled] { *config = Configure(SubmissionOf(row), cancelled); },
      [this, row = *row, config, cancelled](const std::optional<Refusal>& refusal) {
        if (cancelled()) return;  // the cancel has ended it
        resuming_.at(row.run).judging = false;
        if (draining_) return EndResume(row.run, Stopping());
        if (refusal) return EndResume(row.run, *refusal);
        OpenAgain(row, config);
      });
}

void Service::OpenAgain(const RunRow& row, std::shared_ptr<EvalConfig> config) {
  auto run = std::make_shared<QueuedRun>(QueuedRunOf(row));
  run->config = std::move(*config);
  files_->Post(
      [run, output = row.output] { run->directory = RunDirectory::Resume(run->config, output); },
      [this, row, run](const std::optional<Error>& error) {
        if (error) return EndResume(row.run, *error);
        TakeUpEnded(row, run);
      });
}

void Service::TakeUpEnded(const RunRow& row, std::shared_ptr<QueuedRun> run) {
  if (draining_ || stopping_ || *resuming_.at(row.run).cancelled) {
    // The folder says again how the run ended, in case the database is lost.
    files_->Post([run, state = row.state] { run->directory->Update({{"state", state}}); },
                 [this, run](const std::optional<Error>& error) {
                   if (error) log::Warn("{}", error->what());
                   run->directory.reset();
                   EndResume(run->id, *resuming_.at(run->id).cancelled ? ResumeCancelled(run->id)
                                                                       : Stopping());
                 });
    return;
  }
  log::Info("run {}: was {}, and is resumed", row.run, row.state);
  const auto asked = std::move(resuming_.at(row.run).asked);
  resuming_.erase(row.run);
  QueuedRun* queued = queue_.Add(std::move(*run));
  SetState(queued, "queued");
  const Json resource = Resource(*queued);
  StartRuns();
  Publish();
  for (const auto& done : asked) AnswerOnceOnDisk(done, resource);
}

void Service::EndResume(const std::string& id, const Refusal& why) {
  const auto asked = std::move(resuming_.at(id).asked);
  resuming_.erase(id);
  for (const auto& done : asked) std::visit([&done](const auto& refusal) { done(refusal); }, why);
  CheckDrained();
}

}  // namespace evald
