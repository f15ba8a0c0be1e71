#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "evald/generation.h"
#include "evald/score.h"
#include "evald/task.h"
#include "metrics/sandbox/sandbox.h"
#include "prepared/prepared_task.h"

namespace evald {

/// Scores documents of one task: filters, then metrics, as lm-evaluation-harness does. `runner` may
/// be null when no metric runs code.
class Scorer {
 public:
  /// Throws Error(kInput) for a filter, metric or function that is not known, with the nearest
  /// known name. `runner` must outlive the scorer.
  Scorer(const TaskDefinition& task, CodeRunner* runner);
  ~Scorer();

  /// `generations` holds all requests and repeats of this document, in order of (idx, repeat).
  ScoredDocument Score(const PreparedDocument& document,
                       const std::vector<Generation>& generations) const;

  /// (metric, filter) of the values that the task's results will have.
  std::vector<std::pair<std::string, std::string>> Metrics() const;

  /// Throws Error(kInput) "<what is wrong>" for a document that cannot be scored whatever the
  /// answers to it are.
  void Check(const PreparedDocument& document) const;

  /// How many requests (without repeats) a document of this task has.
  int Requests(const PreparedDocument& document) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald
