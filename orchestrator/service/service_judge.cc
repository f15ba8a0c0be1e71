// The gates of runs that have ended. A baseline is a file that whoever submits names, so evald-prepare reads it: what it
// takes in memory and time is not this process's, and what it breaks is one verdict.
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

// A service that ends while it judges tries again in its next life; what ended it twice is left alone.
constexpr int kJudgingsMax = 2;
constexpr const char* kJudgings = "judgings";

// Adds to the number in run.json that says how often judging the run was begun, and gives it.
int CountJudging(const fs::path& folder, int more) {
  const auto record = RunDirectory::ReadRecord(folder);
  const int count = (record ? FieldOr<int>(*record, kJudgings, 0, (folder / "run.json").string()) : 0) + more;
  RunDirectory::Amend(folder, {{kJudgings, count}});
  return count;
}

Error TriedTwice() {
  return Error(ErrorKind::kInfrastructure, fmt::format("the gates were not judged: evald ended {} times while it judged them", kJudgingsMax),
               "see its log and whether the host has memory left; 'evald compare' judges the run's folder");
}

Json ResultsIn(const fs::path& folder) {
  const fs::path file = folder / "results.json";
  return ParseJson(ReadFile(file), file.string());
}

// Judges a run's results and writes its reports. Throws Error where a file cannot be written.
Judgement JudgeFolder(const Preparer& preparer, const PreparationInput& input, const Cancelled& cancelled) {
  const fs::path& folder = input.judge.candidate;
  const bool tried_twice = CountJudging(folder, 1) > kJudgingsMax;
  FailPoint("service.judging");
  Judgement judgement = tried_twice ? NotJudged(input.judge, TriedTwice()) : preparer.JudgeOrSayWhy(input, cancelled);
  if (cancelled()) {  // a stop of the service is no fault of the results: the next life judges them
    CountJudging(folder, -1);
    throw Error(ErrorKind::kInfrastructure, "the service is stopping");
  }
  WriteReports({}, judgement, folder);
  return judgement;
}

}  // namespace

// `outcome` is of a run that came to its end; results that it lacks lie in its folder.
void Service::JudgeSoon(int64_t number, std::shared_ptr<RunOutcome> outcome) {
  unjudged_.push_back({number, std::move(outcome)});
  JudgeNext();
}

// Whether a run of the same user is being judged.
bool Service::JudgesForUserOf(const Unjudged& one) {
  const QueuedRun* own = queue_.Find(one.number);
  return std::any_of(judging_.begin(), judging_.end(), [&](const auto& entry) {
    const QueuedRun* other = queue_.Find(entry.first);
    return own != nullptr && other != nullptr && own->user == other->user;
  });
}

// As many at a time as runs may be at work; those of a user who has none first. Each has a thread of its own: one that takes long holds up no other run.
void Service::JudgeNext() {
  while (!stopping_ && !unjudged_.empty() && judging_.size() < static_cast<size_t>(std::max(1, options_.active_max))) {
    const auto turn = std::find_if(unjudged_.begin(), unjudged_.end(), [this](const Unjudged& one) { return !JudgesForUserOf(one); });
    const auto chosen = turn != unjudged_.end() ? turn : unjudged_.begin();
    const Unjudged next = std::move(*chosen);
    unjudged_.erase(chosen);
    if (const QueuedRun* run = queue_.Find(next.number)) JudgeRun(*run, next.outcome);
  }
}

void Service::JudgeRun(const QueuedRun& run, std::shared_ptr<RunOutcome> outcome) {
  auto judgement = std::make_shared<Judgement>();
  JudgeRequest request;
  request.policy = run.config.gates;
  request.candidate = outcome->directory;
  const auto work = [this, request, outcome, judgement, limits = run.config.limits]() mutable {
    if (outcome->results.is_null()) outcome->results = ResultsIn(outcome->directory);
    request.results = outcome->results;
    *judgement = JudgeFolder(Preparer(options_.binaries), InputOf(std::move(request), options_.roots, limits),
                             [this] { return stopping_.load(); });
  };
  auto& thread = judging_[run.number] = std::make_unique<WorkThread>("gates", &loop_, WorkThread::AtEnd::kDrop);
  thread->Post(work, [this, number = run.number, request, outcome, judgement](const std::optional<Error>& error) {
    judging_.erase(number);
    if (error) log::Error("{}: {}", outcome->directory.string(), error->what());
    if (error && outcome->results.is_null()) {  // an earlier life's, and damaged since
      outcome->status = ExitStatusFor(error->kind());
      outcome->problems.emplace_back(error->what());
    }
    Close(number, std::move(*outcome), error ? NotJudged(request, *error) : std::move(*judgement));
    JudgeNext();
  });
}

}  // namespace evald
