#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/config/gates.h"

namespace evald {

/// Results to judge, and the rules.
struct JudgeRequest {
  GatePolicy policy;                ///< its baseline may be empty
  std::filesystem::path candidate;  ///< a run's folder or a results file
  /// Results of the run with its samples in `candidate`; null: they are read from there
  Json results;
  ExitStatus run_status = ExitStatus::kDone;  ///< of the evaluation, without gates
  std::vector<std::string> problems;          ///< of the evaluation
  /// Whether to make the page, which reads the samples once more
  bool page = true;
  size_t columns = 0;   ///< of the terminal that shows the text; 0: as wide as it is
  bool folded = false;  ///< in the text, a group stands for its tasks
};

/// A verdict in all its forms (orchestrator/verdict/reports.h). Plain values: one process reads
/// other people's results and makes them, another shows and writes them.
struct Judgement {
  ExitStatus status = ExitStatus::kDone;  ///< of the command
  Json verdict;                           ///< the document of verdict.json
  std::string text, annotations, junit, markdown;
  std::string page;  ///< HTML; "" if it was not wanted
  /// Why nothing could be judged; "" if it could. Not part of the JSON
  std::string failure;

  bool has_gates() const { return !verdict.at("gates").empty(); }
};

/// Called with the step under way, for errors that do not name it.
using SayDoing = std::function<void(const std::string& what)>;

/// Judges results. The baseline is read below `roots`, the candidate anywhere. Reads other people's
/// files in this process: see Preparer. Throws Error like Judge, and if baseline or candidate
/// cannot be read.
Judgement JudgeResults(const JudgeRequest& request, const ReadRoots& roots, const SayDoing& doing);

/// The judgement of a run whose gates could not be judged: every gate is "not scored" with the
/// cause `why`. Reads no file.
Judgement NotJudged(const JudgeRequest& request, const Error& why);

/// Refuses, before a run, gates that could only fail after it: those that CheckPolicy
/// (orchestrator/verdict/verdict.h) refuses, and a baseline that cannot be read below `roots`.
/// `expected` has the shape of results.json and the results that the run will have, with any
/// values. Without `baseline_complete` the baseline may be a run without results; then only the
/// candidate's side of drops is checked. Throws Error.
void CheckGates(const GatePolicy& policy, const Json& expected, const ReadRoots& roots,
                bool baseline_complete);

Json ToJson(const Judgement& judgement);
/// Throws Error(kInput) "<where>: ...".
Judgement JudgementFromJson(const Json& json, const std::string& where);

}  // namespace evald
