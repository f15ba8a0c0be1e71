#include "orchestrator/run/run_ending.h"

#include <cstring>

#include "base/clock.h"
#include "base/fail_point.h"
#include "base/file.h"
#include "base/log.h"
#include "orchestrator/report/results.h"
#include "orchestrator/run/run_costs.h"
#include "orchestrator/run/samples_so_far.h"
#include "orchestrator/state/prior_store.h"

namespace evald {
namespace {

// Writes the timeline, a picture for people. The results stand without it.
void WriteTimeline(const RunEnding& ending) {
  try {
    ending.timeline.Write(ending.directory.path() / "timeline.json", ending.end_us);
  } catch (const Error& e) {
    log::Warn("the timeline cannot be written: {}", e.what());
  }
}

// Records the measured costs, from which later runs are planned. A run that was cut short has
// measured some, too.
void RecordCosts(const RunEnding& ending) {
  ending.database->Post([costs = ending.costs->Measured(*ending.suite, *ending.place,
                                                        WallSeconds())](RunStore& store) {
    for (const TaskCost& cost : costs) prior_store::Add(store.database(), cost);
  });
}

// A run that is not complete has the results of its finished tasks under another name. Gives
// whether those were written.
bool WriteResults(const RunEnding& ending, const Json& results) {
  const std::filesystem::path& folder = ending.directory.path();
  if (!ending.complete && ending.finished.empty()) return false;
  if (!ending.complete) {
    WriteFileAtomic(folder / kIncompleteResults, ResultsText(results) + "\n");
    return true;
  }
  WriteFileAtomic(folder / "results.json", ResultsText(results) + "\n");
  std::error_code not_there;
  std::filesystem::remove(folder / kIncompleteResults, not_there);
  return false;
}

constexpr const char* kPart = ".part";  // PendingFile's

// A process that was killed may have left samples of an unfinished task (WriteSamplesSoFar).
void RemoveSamplesSoFar(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    if (name.ends_with(kPart)) name.resize(name.size() - std::strlen(kPart));
    if (name.ends_with(std::string(".jsonl") + kSoFar))
      std::filesystem::remove(entry.path(), error);
  }
}

}  // namespace

RunOutcome EndRun(RunEnding ending) {
  RemoveSamplesSoFar(ending.directory.path());
  WriteTimeline(ending);
  const auto shares = ending.timeline.Share("generate", ending.end_us);
  RunOutcome outcome;
  outcome.directory = ending.directory.path();
  outcome.seconds = static_cast<double>(ending.end_us - ending.begin_us) / 1e6;
  for (const auto& [row, share] : shares)
    outcome.device_share += share / static_cast<double>(shares.size());
  outcome.problems = ending.problems;
  if (!ending.complete && outcome.problems.empty())
    outcome.problems.emplace_back("interrupted before the end");
  if (ending.planned) {
    outcome.results = BuildRunResults(
        {ending.config, ending.directory, *ending.suite, ending.record, ending.finished,
         ending.engine, ending.isolation, ending.fingerprint, shares, outcome.seconds,
         outcome.problems, ending.earlier, ending.generation});
    FailPoint("run.before_results");
    outcome.has_incomplete_results = WriteResults(ending, outcome.results);
  }
  FailPoint("run.after_results");
  if (ending.planned) {
    RecordCosts(ending);
    ending.directory.Change({{"costs", ending.costs->Report(*ending.suite)}});
  }
  const char* state = ending.complete ? "done" : ending.cancelled ? "cancelled" : "incomplete";
  ending.directory.Update(
      {{"state", state}, {"ended", WallSeconds()}, {"problems", outcome.problems}});
  FailPoint("run.ended");
  outcome.status = ending.complete  ? ExitStatus::kDone
                   : ending.failure ? ExitStatusFor(*ending.failure)
                   : ending.refused ? ExitStatus::kUsage
                                    : ExitStatus::kIncomplete;
  return outcome;
}

}  // namespace evald
