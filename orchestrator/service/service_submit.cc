// Submissions: they are judged within quotas, registered and queued.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "base/text.h"
#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// Why the run that a key was first used for does not answer this submission; nothing if it does.
std::optional<Error> AnotherUnderItsKey(const RunRow& known, const Submission& submission) {
  if (submission.key_decides) return std::nullopt;
  try {
    const std::string where = "the submission of run " + known.run + " in the database";
    const auto differing =
        Differing(SubmissionFromJson(ParseJson(known.submission, where), where), submission);
    if (differing.empty()) return std::nullopt;
    return Error(ErrorKind::kUsage,
                 fmt::format("the Idempotency-Key '{}' was used for run {}, which was submitted "
                             "with something else as {}",
                             submission.idempotency_key, known.run, Join(differing, ", ")),
                 "use another key for another run; only a repetition of the same submission may "
                 "use it again");
  } catch (const Error& e) {  // the row is damaged: the first submission is not known
    log::Warn("{}", e.what());
    return std::nullopt;
  }
}

Error StoppingNow() {
  return Error(ErrorKind::kInfrastructure, "the service is stopping; submit again later");
}

}  // namespace

void Service::Submit(Submission submission, Done<Submitted> done, Cancelled cancelled) {
  auto asked = std::make_shared<const Asked>(
      Asked{std::move(submission), std::move(done), std::move(cancelled)});
  loop_.Post(
      [this, asked = std::move(asked)] { AnswerIfKnown(asked, [this, asked] { Judge(asked); }); });
}

// A known key costs no judgement and no quota: its first run is the answer.
void Service::AnswerIfKnown(const AskedPtr& asked, std::function<void()> otherwise) {
  if (asked->submission.idempotency_key.empty()) return otherwise();
  auto known = std::make_shared<std::optional<RunRow>>();
  database_->Post(
      [asked, known](RunStore& store) {
        *known = service_store::FindByKey(store.database(), asked->submission.user,
                                          asked->submission.idempotency_key);
      },
      [this, asked, known, otherwise = std::move(otherwise)] {
        if (!*known) return otherwise();
        AnswerKnown(**known, asked->submission, asked->done);
      });
}

// Answers once the run's folder says what was submitted.
void Service::AnswerKnown(const RunRow& known, const Submission& submission,
                          const Registered& done) {
  if (const std::optional<Error> another = AnotherUnderItsKey(known, submission))
    return done(*another);
  const auto answer = [this, known, done] {
    QueuedRun* active = queue_.Find(known.run);
    done(Submitted{active ? Resource(*active) : StoredResource(known), false});
  };
  if (!DeferWhileRegistering(known.run, answer)) answer();
}

// Calls `then` on the loop with the outcome of `work`, or with the reason why it was refused. A
// service that stops judges nothing.
void Service::HaveJudged(const std::string& user, Cancelled cancelled, std::function<void()> work,
                         std::function<void(const std::optional<Refusal>&)> then) {
  if (draining_) return then(StoppingNow());
  auto judge = [this, cancelled = std::move(cancelled), work = std::move(work)] {
    if (draining_ || stopping_) throw StoppingNow();
    if (cancelled && cancelled())
      throw Error(ErrorKind::kInfrastructure, "it was cancelled before it was judged");
    try {
      work();
    } catch (const Json::exception& e) {  // the type of a value was not checked
      throw Error(
          ErrorKind::kUsage,
          fmt::format("eval.yaml: a value is of another type than it should be ({})", e.what()),
          "docs/eval-yaml.md says what each key takes");
    }
  };
  const Taken taken =
      judges_->Post(user, std::move(judge), [this, then](const std::optional<Error>& error) {
        then(draining_ ? StoppingNow() : error ? std::optional<Refusal>(*error) : std::nullopt);
        --judgements_;
        CheckDrained();
      });
  if (taken == Taken::kYes) ++judgements_;
  if (taken == Taken::kUserIsFull) {
    return then(
        OverQuota{"judging",
                  fmt::format("{} submissions of the user '{}' wait to be judged, and no more may",
                              Judging::kWaitingPerUserMax, user),
                  "try again when they are judged"});
  }
  if (taken == Taken::kFull) {
    then(Error(ErrorKind::kInfrastructure, "too many submissions wait to be judged",
               "try again in a minute"));
  }
}

// Why no further run of this user is taken now; nothing if one may be. Runs that are being
// submitted or resumed count.
std::optional<OverQuota> Service::OverLimit(const std::string& user) const {
  if (user.empty()) return std::nullopt;
  const auto own = [&](const auto& entry) { return entry.second.user == user; };
  const auto queued = std::count_if(queue_.runs().begin(), queue_.runs().end(), own);
  const auto resuming = std::count_if(resuming_.begin(), resuming_.end(), own);
  const auto registering = registering_.find(user);
  const auto count =
      queued + resuming + (registering == registering_.end() ? 0 : registering->second);
  if (count < options_.runs_per_user_max) return std::nullopt;
  return OverQuota{"runs",
                   fmt::format("the user '{}' has {} runs that are not over, and may have {}", user,
                               count, options_.runs_per_user_max),
                   "submit again when some are over, or cancel some"};
}

// Judges a submission within its user's quota.
void Service::Judge(const AskedPtr& asked) {
  if (const std::optional<OverQuota> over = OverLimit(asked->submission.user))
    return asked->done(*over);
  auto config = std::make_shared<EvalConfig>();
  HaveJudged(
      asked->submission.user, asked->cancelled,
      [this, asked, config] { *config = Configure(asked->submission, asked->cancelled); },
      [this, asked, config](const std::optional<Refusal>& refusal) {
        if (refusal) return std::visit([&](const auto& why) { asked->done(why); }, *refusal);
        Register(config, asked);
      });
}

// The folder is made first, then the row in the database, then the folder records the submission.
// The answer waits for all three. The quota may have been used up while the submission was judged,
// also by a submission under the same key.
void Service::Register(std::shared_ptr<EvalConfig> config, const AskedPtr& asked) {
  const std::string& user = asked->submission.user;
  if (const std::optional<OverQuota> over = OverLimit(user)) {
    return AnswerIfKnown(asked, [asked, over] { asked->done(*over); });
  }
  auto run = std::make_shared<QueuedRun>();
  run->config = std::move(*config);
  run->user = user;
  run->priority = asked->submission.priority;
  ++registering_[user];
  const Registered registered = [this, asked](const Answer<Submitted>& answer) {
    const auto own = registering_.find(asked->submission.user);
    if (--own->second == 0) registering_.erase(own);
    asked->done(answer);
    CheckDrained();
  };
  files_->Post(
      [run] {
        run->directory = RunDirectory::Create(run->config);
        FailPoint("service.folder_made");
      },
      [this, run, asked, registered](const std::optional<Error>& error) {
        if (error) return registered(*error);
        AddRow(run, asked->submission, registered);
      });
}

void Service::AddRow(std::shared_ptr<QueuedRun> run, const Submission& submission,
                     const Registered& done) {
  run->id = run->directory->id();
  run->path = run->directory->path();
  run->created = run->directory->record().value("created", WallSeconds());
  deferred_[run->id];  // others can see the row before this thread knows of it
  auto row = std::make_shared<RunRow>();
  *row = {0,
          run->id,
          run->path.string(),
          run->created,
          "queued",
          run->config.name,
          run->user,
          run->priority,
          run->config.checkpoint.string(),
          ToJson(submission).dump(),
          submission.idempotency_key,
          Resource(*run).dump()};
  auto known = std::make_shared<std::optional<RunRow>>();
  database_->Post(
      [row, known](RunStore& store) {
        *known = service_store::FindByKey(store.database(), row->user, row->idempotency_key);
        if (!*known) row->number = service_store::AddRun(store.database(), *row);
      },
      [this, run, row, known, submission, done] {
        if (!*known) return OnRegistered(run, *row, done);
        ForgetFolder(run, **known, submission, done);
      });
}

void Service::OnRegistered(std::shared_ptr<QueuedRun> run, const RunRow& row,
                           const Registered& done) {
  FailPoint("service.run_registered");
  run->number = row.number;
  files_->Post(
      [run, row, state_dir = options_.state_dir] {
        RecordSubmission(&*run->directory, SubmissionOf(row), state_dir);
      },
      [this, run, done](const std::optional<Error>&) { Join(std::move(*run), done); });
}

// Puts the run into the queue. A run that was cancelled meanwhile does not start.
void Service::Join(QueuedRun run, const Registered& done) {
  const std::string id = run.id;
  QueuedRun* queued = queue_.Add(std::move(run));
  counters_["runs_submitted_total"] += 1;
  Emit(id, "run.state", {{"state", "queued"}, {"name", queued->config.name}});
  const Json resource = Resource(*queued);
  DoDeferred(id);
  StartRuns();
  Publish();
  loop_.Post([done, resource] { done(Submitted{resource, true}); });
}

// The key was submitted by another request while this one was judged: that request's run is the
// answer.
void Service::ForgetFolder(std::shared_ptr<QueuedRun> run, const RunRow& known,
                           const Submission& submission, const Registered& done) {
  files_->Post(
      [run] {
        std::error_code ignored;
        run->directory.reset();
        fs::remove_all(run->path, ignored);
      },
      [this, id = run->id, known, submission, done](const std::optional<Error>&) {
        DoDeferred(id);
        AnswerKnown(known, submission, done);
      });
}

bool Service::DeferWhileRegistering(const std::string& run, std::function<void()> then) {
  const auto found = deferred_.find(run);
  if (found == deferred_.end()) return false;
  found->second.push_back(std::move(then));
  return true;
}

void Service::DoDeferred(const std::string& run) {
  const auto found = deferred_.find(run);
  if (found == deferred_.end()) return;
  const std::vector<std::function<void()>> asked = std::move(found->second);
  deferred_.erase(found);
  for (const auto& then : asked) then();
}

}  // namespace evald
