#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evald/generation.h"
#include "evald/score.h"
#include "evald/task.h"
#include "metrics/math_comparer.h"
#include "metrics/sandbox/sandbox.h"
#include "prepared/prepared_task.h"
#include "task_code/task_code.h"

namespace evald {

class JudgePanel;

/// Scores documents of one task: filters, then metrics, as in lm-evaluation-harness. `runner` may
/// be null if no metric runs code.
///
/// `code` runs the task's own functions; it may be null if no document will be scored. The
/// functions of a task that does not use them (UsesTaskCode) are refused.
///
/// `judge` asks other models that rate answers; it may be null if no document will be scored.
class Scorer {
 public:
  /// Throws Error(kInput) for an unknown filter, metric or function, with the nearest known name,
  /// and for a task beyond its limits (evald/task_limits.h).
  /// `runner`, `code`, `math` and `judge`, which may be null if no document will be scored, must
  /// outlive the scorer.
  Scorer(const TaskDefinition& task, CodeRunner* runner, TaskCode* code = nullptr,
         MathComparer* math = nullptr, JudgePanel* judge = nullptr);
  ~Scorer();

  /// `generations` holds all requests and repeats of this document, in order of (idx, repeat).
  /// Throws Error(kInput) if the filters leave more than kScoreBytesMax. While `judge` does not
  /// know all verdicts, the score counts nothing, and `judge` asks for them
  /// (JudgePanel::TakeMissing); then score the document again. Throws NotJudged if it cannot be
  /// judged.
  ScoredDocument Score(const PreparedDocument& document, std::vector<Generation> generations) const;

  /// (metric, filter) of the values in the task's results.
  std::vector<std::pair<std::string, std::string>> Metrics() const;

  /// Throws Error(kInput) with the fault if a document cannot be scored whatever its answers are.
  void Check(const PreparedDocument& document) const;

  /// The number of requests (without repeats) of a document of this task.
  int Requests(const PreparedDocument& document) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald
