// Actions that people ask of runs: cancel, pause, resume, change the priority.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "orchestrator/service/service.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

Error RefusedAct(const std::string& id, const char* why) {
  return Error(ErrorKind::kUsage, fmt::format("run {} {}", id, why),
               "see how it ends, then decide");
}

}  // namespace

void Service::Act(const std::string& id, RunAction action, Done<Json> done) {
  loop_.Post([this, id, action, done = std::move(done)]() mutable {
    ActNow(id, action, std::move(done));
  });
}

void Service::ActNow(const std::string& id, RunAction action, Done<Json> done) {
  const auto later = [this, id, action, done] { ActNow(id, action, done); };
  if (DeferWhileRegistering(id, later) || DeferWhileYielding(id, later)) return;
  switch (action) {
    case RunAction::kCancel:
      return Cancel(id, std::move(done));
    case RunAction::kPause:
      return Pause(id, std::move(done));
    case RunAction::kResume:
      return Resume(id, std::move(done));
  }
}

// The last action counts: callers who wait for the run to be resumed are refused.
void Service::Cancel(const std::string& id, Done<Json> done) {
  if (const auto resuming = resuming_.find(id); resuming != resuming_.end()) {
    *resuming->second.cancelled = true;
    if (resuming->second.judging) EndResume(id, ResumeCancelled(id));
    auto row = std::make_shared<std::optional<RunRow>>();
    return database_->Post(
        [id, row](RunStore& store) { *row = service_store::FindRun(store.database(), id); },
        [id, row, done = std::move(done)] {
          if (!*row) return done(Error(ErrorKind::kUsage, fmt::format("there is no run {}", id)));
          done(StoredResource(**row));
        });
  }
  QueuedRun* run = queue_.Find(id);
  if (run == nullptr) return AnswerOver(id, RunAction::kCancel, std::move(done));
  if (run->state != "cancelling" && IsJudged(*run)) {
    CancelJudging(run);
  } else if (run->state != "cancelling") {
    if (run->ending()) return done(RefusedAct(id, "is ending by itself"));
    if (!run->evaluation) return CancelWaiting(run, std::move(done));
    run->paused = false;
    SetState(run, "cancelling");
    run->evaluation->Cancel("cancelled");
  }
  for (const auto& resume : std::exchange(run->resumes, {})) resume(ResumeCancelled(id));
  Publish();
  AnswerOnceOnDisk(std::move(done), *Shown(*run));
}

// Cancels a run that has not begun. If run.json cannot be written, the database's row still says
// that it is cancelled.
void Service::CancelWaiting(QueuedRun* run, Done<Json> done) {
  run->paused = false;
  run->ended = WallSeconds();
  SetState(run, "cancelling");
  Publish();
  const auto directory = std::make_shared<RunDirectory>(std::move(*run->directory));
  run->directory.reset();
  files_->Post(
      [directory, ended = run->ended] {
        RunDirectory last = std::move(*directory);  // this also releases its lock
        last.Update({{"state", "cancelled"}, {"ended", ended}});
      },
      [this, number = run->number,
       done = std::move(done)](const std::optional<Error>& error) mutable {
        QueuedRun* run = queue_.Find(number);
        if (error)
          log::Warn("run {} is cancelled, but its folder does not say so: {}", run->id,
                    error->what());
        SetState(run, "cancelled");
        const Json resource = Resource(*run);
        const std::string id = run->id;
        const std::string user = run->user;
        auto resumes = std::move(run->resumes);
        queue_.Remove(number);
        shown_.erase(number);
        if (!resumes.empty()) BeginResume(id, std::move(resumes));
        ForgetUnused(user);
        StartRuns();
        Publish();
        AnswerOnceOnDisk(std::move(done), resource);
      });
}

void Service::Pause(const std::string& id, Done<Json> done) {
  QueuedRun* run = queue_.Find(id);
  if (resuming_.count(id) > 0) return done(RefusedAct(id, "is just being resumed"));
  if (run == nullptr) return AnswerOver(id, RunAction::kPause, std::move(done));
  if (run->state == "cancelling") return done(RefusedAct(id, "is being cancelled"));
  if (run->ending()) return done(RefusedAct(id, "is ending by itself"));
  if (const std::optional<OverQuota> over = TooManyPaused(*run)) return done(*over);
  run->paused = true;
  if (run->evaluation) run->evaluation->Pause(true);
  SetState(run, "paused");
  StartRuns();
  Publish();
  AnswerOnceOnDisk(std::move(done), *Shown(*run));
}

// A run that is paused at work keeps its tasks in memory and its checkpoint staged, until another
// run needs the space.
std::optional<OverQuota> Service::TooManyPaused(const QueuedRun& run) const {
  if (run.user.empty() || run.paused || !run.evaluation) return std::nullopt;
  const auto count =
      std::count_if(queue_.runs().begin(), queue_.runs().end(), [&](const auto& entry) {
        return entry.second.user == run.user && entry.second.paused && entry.second.evaluation;
      });
  if (count < options_.paused_per_user_max) return std::nullopt;
  return OverQuota{"paused",
                   fmt::format("the user '{}' has {} paused runs that have begun, and may have {}",
                               run.user, count, options_.paused_per_user_max),
                   "resume or cancel one, or cancel this run and resume it later"};
}

// The answer about a run that is over. A cancel that is repeated changes nothing; other actions are
// refused.
void Service::AnswerOver(const std::string& id, RunAction action, Done<Json> done) {
  auto row = std::make_shared<std::optional<RunRow>>();
  database_->Post(
      [id, row](RunStore& store) { *row = service_store::FindRun(store.database(), id); },
      [id, row, action, done = std::move(done)] {
        if (*row && action == RunAction::kCancel && (*row)->state == "cancelled")
          return done(StoredResource(**row));
        done(Error(ErrorKind::kUsage, *row ? fmt::format("run {} is over ({})", id, (*row)->state)
                                           : fmt::format("there is no run {}", id)));
      });
}

void Service::SetPriority(const std::string& id, int priority, Done<Json> done) {
  loop_.Post([this, id, priority, done = std::move(done)] { SetPriorityNow(id, priority, done); });
}

void Service::SetPriorityNow(const std::string& id, int priority, const Done<Json>& done) {
  if (DeferWhileRegistering(id, [this, id, priority, done] { SetPriorityNow(id, priority, done); }))
    return;
  QueuedRun* run = queue_.Find(id);
  if (run == nullptr)
    return done(Error(ErrorKind::kUsage, fmt::format("there is no run {} that is not over", id)));
  if (priority < -100 || priority > 100) {
    return done(Error(ErrorKind::kUsage,
                      fmt::format("priority: found {}, expected -100 to 100", priority)));
  }
  run->priority = priority;
  fleet_->SetPriority(run->number, priority);
  Save(*run);
  Emit(run->id, "run.state", {{"state", run->state}, {"priority", priority}});
  StartRuns();
  Publish();
  AnswerOnceOnDisk(done, *Shown(*run));
}

void Service::Timeline(const std::string& id, Done<Json> done) {
  loop_.Post([this, id, done = std::move(done)] {
    const QueuedRun* run = queue_.Find(id);
    if (run == nullptr || !run->evaluation || run->ending())
      return done(Error(ErrorKind::kUsage, fmt::format("run {} is not at work", id)));
    done(run->evaluation->LiveTimeline());
  });
}

void Service::Samples(const std::string& id, const std::string& task, bool renew,
                      Done<std::shared_ptr<const SamplesSoFar>> done) {
  loop_.Post([this, id, task, renew, done = std::move(done)] {
    const QueuedRun* run = queue_.Find(id);
    if (run == nullptr || !run->evaluation || run->ending())
      return done(std::shared_ptr<const SamplesSoFar>());
    run->evaluation->MakeSamplesSoFar(task, renew,
                                      [done](const std::shared_ptr<const SamplesSoFar>& samples,
                                             const std::optional<Error>& error) {
                                        if (error) return done(*error);
                                        done(samples);
                                      });
  });
}

void Service::SetLabels(const std::string& id, LabelChange change, Done<Json> done) {
  loop_.Post([this, id, change = std::move(change), done = std::move(done)] {
    SetLabelsNow(id, change, done);
  });
}

void Service::SetLabelsNow(const std::string& id, const LabelChange& change,
                           const Done<Json>& done) {
  if (DeferWhileRegistering(id, [this, id, change, done] { SetLabelsNow(id, change, done); }))
    return;
  if (resuming_.contains(id)) {
    return done(Error(ErrorKind::kUsage, fmt::format("run {} is being resumed", id),
                      "try again once it is queued"));
  }
  QueuedRun* run = queue_.Find(id);
  if (run == nullptr) return SetLabelsOfOver(id, change, done);
  Apply(change, &run->labels);
  Save(*run);
  Emit(run->id, "run.labels", {{"title", run->labels.title}, {"tags", run->labels.tags}});
  Publish();
  AnswerOnceOnDisk(done, *Shown(*run));
}

// The labels of a run that is over lie in its last resource.
void Service::SetLabelsOfOver(const std::string& id, const LabelChange& change, Done<Json> done) {
  auto answer = std::make_shared<Json>();
  database_->Post(
      [id, change, answer](RunStore& store) {
        const std::optional<RunRow> row = service_store::ShowRun(store.database(), id);
        if (!row) return;
        *answer = StoredResource(*row);
        RunLabels labels = LabelsOf(*answer);
        Apply(change, &labels);
        AddLabels(labels, &*answer);
        service_store::UpdateRun(store.database(), id, row->state, row->priority,
                                 answer->dump(-1, ' ', false, Json::error_handler_t::replace));
      },
      [this, id, answer, done = std::move(done)] {
        if (answer->is_null())
          return done(Error(ErrorKind::kUsage, fmt::format("there is no run {}", id)));
        Emit(id, "run.labels", {{"title", answer->at("title")}, {"tags", answer->at("tags")}});
        done(*answer);
      });
}

// An answer must hold in the next life, too: all that was posted before it is on disk by then.
void Service::AnswerOnceOnDisk(Done<Json> done, Json answer) {
  database_->Post([](RunStore&) {},
                  [done = std::move(done), answer = std::move(answer)] { done(answer); });
}

// First compares the folder by name, with the watches' own names. Finding out what another name
// stands for may take long on a slow file system, so that comes second.
void Service::Announce(const fs::path& checkpoint, const std::string& user, Done<Json> done) {
  if (on_announce && on_announce(checkpoint, false)) return done(Announced(checkpoint));
  auto answer = std::make_shared<Json>();
  const auto look = [this, checkpoint, answer] {
    if (!on_announce || !on_announce(checkpoint, true)) {
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: no watch covers this folder", checkpoint.string()),
                  "add a watch of it ('evald watch --checkpoints'), or submit a run");
    }
    *answer = Announced(checkpoint);
  };
  const auto then = [answer, done = std::move(done)](const std::optional<Refusal>& refusal) {
    if (!refusal) return done(*answer);
    std::visit([&done](const auto& why) { done(why); }, *refusal);
  };
  loop_.Post([this, user, look, then] { HaveJudged(user, {}, look, then); });
}

// The announcement, with the runs that this checkpoint already has.
Json Service::Announced(const fs::path& checkpoint) const {
  Json runs = Json::array();
  RunFilter filter;
  filter.checkpoint = checkpoint.string();
  for (const Json& run : Runs(filter).runs) runs.push_back(run["id"]);
  return {{"checkpoint", checkpoint.string()}, {"known", !runs.empty()}, {"runs", std::move(runs)}};
}

}  // namespace evald
