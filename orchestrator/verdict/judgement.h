#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/verdict/gates.h"

namespace evald {

/// Results that are to be judged, and by which rules.
struct JudgeRequest {
  GatePolicy policy;                ///< its baseline may be empty
  std::filesystem::path candidate;  ///< a run's folder or a results file
  Json results;  ///< of the run whose samples lie in `candidate`; null: they are read from there
  ExitStatus run_status = ExitStatus::kDone;  ///< of the evaluation, without gates
  std::vector<std::string> problems;          ///< of the evaluation
  bool page = true;  ///< the page is wanted: it takes reading samples once more
};

/// A verdict in all its forms (orchestrator/verdict/reports.h). Plain values: one process reads
/// other people's results and makes them, another one shows and writes them.
struct Judgement {
  ExitStatus status = ExitStatus::kDone;  ///< of the command
  Json verdict;                           ///< the document of verdict.json
  std::string text, annotations, junit, markdown;
  std::string page;     ///< HTML; "" where it was not wanted
  std::string failure;  ///< why nothing could be judged; "" where it could. Not part of the JSON

  bool has_gates() const { return !verdict.at("gates").empty(); }
};

/// Says what is being done, for an error that knows nothing of it.
using SayDoing = std::function<void(const std::string& what)>;

/// Judges results; the baseline is read below `roots`, the candidate anywhere. Reads other people's
/// files in this process: see Preparer. Throws Error as Judge does, and for a baseline or candidate
/// that cannot be read.
Judgement JudgeResults(const JudgeRequest& request, const ReadRoots& roots, const SayDoing& doing);

/// The judgement of a run whose gates could not be judged: none is scored, each for the cause
/// `why`. Reads no file.
Judgement NotJudged(const JudgeRequest& request, const Error& why);

/// Refuses before a run what could only fail after it: what CheckPolicy
/// (orchestrator/verdict/verdict.h) refuses, and a baseline that cannot be read below `roots`.
/// `expected` is a document in the shape of results.json with the results that the run will have,
/// whatever their values. Without `baseline_complete` a baseline may be a run that has no results
/// yet; then of drops only the candidate's side is checked. Throws Error.
void CheckGates(const GatePolicy& policy, const Json& expected, const ReadRoots& roots,
                bool baseline_complete);

Json ToJson(const Judgement& judgement);
/// Throws Error(kInput) "<where>: ...".
Judgement JudgementFromJson(const Json& json, const std::string& where);

}  // namespace evald
