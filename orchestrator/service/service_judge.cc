// The gates of runs that have ended. A baseline is a file that whoever submits names, so
// evald-prepare reads it: what it takes in memory and time is not this process's, and what it
// breaks is one verdict.
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

// A service that ends while it judges tries again in its next life; what ended it twice is left
// alone.
constexpr int kJudgingsMax = 2;
constexpr const char* kJudgings = "judgings";

// Adds to the number in run.json that says how often judging the run was begun, and gives it.
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

// Judges a run's results and writes its reports. Throws Error where a file cannot be written.
Judgement JudgeFolder(const Preparer& preparer, const PreparationInput& input,
                      const Cancelled& cancelled) {
  const fs::path& folder = input.judge.candidate;
  const bool tried_twice = CountJudging(folder, 1) > kJudgingsMax;
  FailPoint("service.judging");
  Judgement judgement =
      tried_twice ? NotJudged(input.judge, TriedTwice()) : preparer.JudgeOrSayWhy(input, cancelled);
  if (cancelled()) {  // a stop of the service, say, is no fault of the results: the next life
                      // judges them
    CountJudging(folder, -1);
    throw Error(ErrorKind::kInfrastructure, "the judging of its gates was stopped");
  }
  WriteReports({}, judgement, folder);
  return judgement;
}

}  // namespace

// `outcome` is of a run that came to its end; results that it lacks lie in its folder.
void Service::JudgeSoon(int64_t number, OutcomePtr outcome) {
  const QueuedRun* run = queue_.Find(number);
  if (run == nullptr) return;
  unjudged_.Add(number, run->user, std::move(outcome));
  JudgeNext();
}

// As many at a time as runs may be at work. Each has a thread of its own: one that takes long holds
// up no other run.
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

void Service::JudgeRun(const QueuedRun& run, OutcomePtr outcome) {
  auto judgement = std::make_shared<Judgement>();
  JudgeRequest request;
  request.policy = run.config.gates;
  request.candidate = outcome->directory;
  JudgedNow& now = judging_[run.number];
  const Cancelled cancelled = [this, flag = now.cancelled] { return stopping_ || *flag; };
  const auto work = [this, request, outcome, judgement, cancelled,
                     limits = run.config.limits]() mutable {
    if (outcome->results.is_null()) outcome->results = ResultsIn(outcome->directory);
    request.results = outcome->results;
    *judgement = JudgeFolder(Preparer(options_.binaries),
                             InputOf(std::move(request), options_.roots, limits), cancelled);
  };
  now.thread = std::make_unique<WorkThread>("gates", &loop_, WorkThread::AtEnd::kDrop);
  now.thread->Post(work, [this, number = run.number, user = run.user, request, outcome,
                          judgement](const std::optional<Error>& error) {
    judging_.erase(number);
    unjudged_.Done(user);
    OnJudged(number, outcome, error ? NotJudged(request, *error) : std::move(*judgement), error);
    JudgeNext();
  });
}

void Service::OnJudged(int64_t number, const OutcomePtr& outcome, Judgement judgement,
                       const std::optional<Error>& error) {
  const QueuedRun* run = queue_.Find(number);
  if (error && run != nullptr && run->unjudged) return CloseUnjudged(number, outcome);
  if (error) log::Error("{}: {}", outcome->directory.string(), error->what());
  if (error && outcome->results.is_null()) {  // an earlier life's, and damaged since
    outcome->status = ExitStatusFor(error->kind());
    outcome->problems.emplace_back(error->what());
  }
  Close(number, std::move(*outcome), std::move(judgement));
}

// Whether its gates are judged, or wait for that. Of a run without gates and baseline only the
// reports are written.
bool Service::IsJudged(const QueuedRun& run) const {
  const GatePolicy& policy = run.config.gates;
  const bool judges = !policy.gates.empty() || !policy.baseline.empty();
  return judges && (judging_.count(run.number) > 0 || unjudged_.Has(run.number));
}

void Service::CancelJudging(QueuedRun* run) {
  run->unjudged = true;
  SetState(run, "cancelling");
  if (const auto waiting = unjudged_.Take(run->number))
    return CloseUnjudged(run->number, waiting->outcome);
  *judging_.at(run->number).cancelled = true;
}

// The run ends as cancelled. Its folder says so, so that the run can be resumed, which judges what
// it has.
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
