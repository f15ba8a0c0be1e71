// The gates of runs that have ended. A baseline is a file that the submitter names, so
// evald-prepare reads it: its memory and time are not this process's, and a bad file spoils one
// verdict only.
#include <fmt/format.h>

#include <algorithm>

#include "base/fail_point.h"
#include "base/jsonl.h"
#include "base/log.h"
#include "orchestrator/prepare/preparer.h"
#include "orchestrator/service/service.h"
#include "orchestrator/verdict/report_files.h"

namespace evald {
namespace fs = std::filesystem;
namespace {

// A service that ended while it judged a run tries again in its next life, up to this many times.
constexpr int kJudgingsMax = 2;
constexpr const char* kJudgings = "judgings";

// Adds `more` to the number of begun judgings in run.json, and returns the sum.
int CountJudging(const fs::path& folder, int more) {
  const auto record = RunDirectory::ReadRecord(folder);
  const int count =
      (record ? FieldOr<int>(*record, kJudgings, 0, (folder / "run.json").string()) : 0) + more;
  RunDirectory::Amend(folder, {{kJudgings, count}});
  return count;
}

Error TriedTwice() {
  return Error(
      ErrorKind::kInfrastructure,
      fmt::format("the gates were not judged: evald ended {} times while it judged them",
                  kJudgingsMax),
      "see its log and whether the host has memory left; 'evald compare' judges the run's folder");
}

Json ResultsIn(const fs::path& folder) {
  const fs::path file = folder / "results.json";
  return ParseJson(ReadFile(file), file.string());
}

// Judges a run's results and writes its reports. Throws Error if a file cannot be written.
Judgement JudgeFolder(const Preparer& preparer, const PreparationInput& input,
                      const Cancelled& cancelled) {
  const fs::path& folder = input.judge.candidate;
  const bool tried_twice = CountJudging(folder, 1) > kJudgingsMax;
  FailPoint("service.judging");
  Judgement judgement =
      tried_twice ? NotJudged(input.judge, TriedTwice()) : preparer.JudgeOrSayWhy(input, cancelled);
  if (cancelled()) {  // a stop is no fault of the results: the next life judges them
    CountJudging(folder, -1);
    throw Error(ErrorKind::kInfrastructure, "the judging of its gates was stopped");
  }
  WriteReports({}, judgement, folder);
  return judgement;
}

}  // namespace

// `outcome` is of a run that came to its end. If it holds no results, they are in the run's folder.
void Service::JudgeSoon(int64_t number, OutcomePtr outcome) {
  const QueuedRun* run = queue_.Find(number);
  if (run == nullptr) return;
  if (!HasGates(*run)) return ReportOnly(*run, std::move(outcome));
  unjudged_.Add(number, run->user, std::move(outcome));
  JudgeNext();
}

// Judges as many runs at a time as may be at work, one of each user. Each has a thread of its own,
// so a slow judgement delays no other run.
void Service::JudgeNext() {
  while (!stopping_ && judging_.size() < static_cast<size_t>(std::max(1, options_.active_max))) {
    auto next = unjudged_.Next();
    if (!next) return;
    if (const QueuedRun* run = queue_.Find(next->run)) {
      JudgeRun(*run, std::move(next->outcome));
    } else {
      unjudged_.Done(next->user);
    }
  }
}

// The reports of a run without gates need no file of the submitter's: they take a turn, but no
// place of those that are judged.
void Service::ReportOnly(const QueuedRun& run, OutcomePtr outcome) {
  const auto [work, done] =
      JudgementOf(run, std::move(outcome), [this] { return stopping_.load(); });
  reports_->Post(run.user, work, done);
}

void Service::JudgeRun(const QueuedRun& run, OutcomePtr outcome) {
  JudgedNow& now = judging_[run.number];
  const auto [work, done] = JudgementOf(
      run, std::move(outcome), [this, flag = now.cancelled] { return stopping_ || *flag; });
  now.thread = std::make_unique<WorkThread>("gates", &loop_, WorkThread::AtEnd::kDrop);
  now.thread->Post(work, [this, number = run.number, user = run.user,
                          done = done](const std::optional<Error>& error) {
    judging_.erase(number);
    unjudged_.Done(user);
    done(error);
    JudgeNext();
  });
}

// The judging of a run, for another thread, and what follows on the loop.
std::pair<std::function<void()>, WorkThread::Done> Service::JudgementOf(const QueuedRun& run,
                                                                        OutcomePtr outcome,
                                                                        Cancelled cancelled) {
  auto judgement = std::make_shared<Judgement>();
  JudgeRequest request;
  request.policy = run.config.gates;
  request.candidate = outcome->directory;
  auto work = [this, request, outcome, judgement, cancelled, limits = run.config.limits]() mutable {
    if (outcome->results.is_null()) outcome->results = ResultsIn(outcome->directory);
    request.results = outcome->results;
    *judgement = JudgeFolder(Preparer(options_.binaries),
                             InputOf(std::move(request), options_.roots, limits), cancelled);
  };
  auto done = [this, number = run.number, request, outcome,
               judgement](const std::optional<Error>& error) {
    OnJudged(number, outcome, error ? NotJudged(request, *error) : std::move(*judgement), error);
  };
  return {std::move(work), std::move(done)};
}

void Service::OnJudged(int64_t number, const OutcomePtr& outcome, Judgement judgement,
                       const std::optional<Error>& error) {
  const QueuedRun* run = queue_.Find(number);
  if (error && run != nullptr && run->unjudged) return CloseUnjudged(number, outcome);
  if (error) log::Error("{}: {}", outcome->directory.string(), error->what());
  if (error && outcome->results.is_null()) {  // the results of an earlier life, damaged since
    outcome->status = ExitStatusFor(error->kind());
    outcome->problems.emplace_back(error->what());
  }
  Close(number, std::move(*outcome), std::move(judgement));
}

// A run without gates and baseline only has its reports written.
bool Service::HasGates(const QueuedRun& run) {
  return !run.config.gates.gates.empty() || !run.config.gates.baseline.empty();
}

// Whether the run's gates are judged or wait for it.
bool Service::IsJudged(const QueuedRun& run) const {
  return judging_.count(run.number) > 0 || unjudged_.Has(run.number);
}

void Service::CancelJudging(QueuedRun* run) {
  run->unjudged = true;
  SetState(run, "cancelling");
  if (const auto waiting = unjudged_.Take(run->number))
    return CloseUnjudged(run->number, waiting->outcome);
  *judging_.at(run->number).cancelled = true;
}

// Ends the run as cancelled. Its folder says so; resuming it judges its results.
void Service::CloseUnjudged(int64_t number, const OutcomePtr& outcome) {
  outcome->status = ExitStatus::kIncomplete;
  outcome->problems.emplace_back(
      "it was cancelled before its gates were judged; its scores stand in results.json, and a "
      "resume judges them");
  files_->Post(
      [folder = outcome->directory] { RunDirectory::Amend(folder, {{"state", "cancelled"}}); },
      [this, number, outcome](const std::optional<Error>& error) {
        if (error) log::Warn("{}", error->what());
        Close(number, std::move(*outcome), std::nullopt);
      });
}

}  // namespace evald
