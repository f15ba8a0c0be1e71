#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/verdict/comparison.h"
#include "orchestrator/verdict/decide.h"
#include "orchestrator/verdict/gates.h"

namespace evald {

/// What became of one gate.
struct GateResult {
  Gate gate;
  MetricKey key;
  Outcome outcome = Outcome::kNotScored;
  ExitStatus status = ExitStatus::kDone;      ///< what it asks for if it is critical
  std::string cause;                          ///< one sentence for people
  std::optional<double> candidate, baseline;  ///< the values in the results
  std::optional<Comparison> comparison;       ///< drops only
  std::shared_ptr<const Evidence> evidence;   ///< null: the value alone decided, or nothing could
  double margin = 0, resolution = 0;          ///< of the drop, in the metric's units
  std::optional<Decision> decision;

  bool blocks() const { return gate.tier == Tier::kCritical && status != ExitStatus::kDone; }
};

/// A policy applied to a run. What every report shows and every program reads.
struct Verdict {
  ExitStatus status = ExitStatus::kDone;      ///< of the command
  ExitStatus run_status = ExitStatus::kDone;  ///< of the evaluation, without gates
  std::string candidate;                      ///< label
  std::string baseline;                       ///< label; "" without
  double alpha = 0.05;
  std::vector<GateResult> gates;
  std::vector<Comparison> comparisons;  ///< every task and metric that both sides have
  std::vector<std::string> problems;    ///< of the run

  int Count(Outcome outcome) const;
};

/// Of several exit statuses the one that is reported: in the order 2, 3, 1, 4, 0.
ExitStatus Foremost(ExitStatus a, ExitStatus b);

/// Applies a policy. `baseline` may be null when no gate needs one. Never throws for what is wrong
/// with one gate: it is then not scored, with its cause and status. Throws Error(kInput) when a
/// task outside the gates cannot be compared.
Verdict Judge(const GatePolicy& policy, ResultSet* candidate, ResultSet* baseline,
              ExitStatus run_status, const std::vector<std::string>& problems);

/// Refuses before a run what could only fail after it: Error(kUsage) for a gate on a task that is
/// not evaluated or on a metric or filter that its task does not have; for a drop without a
/// baseline, and where the baseline lacks the metric or its samples (kInput). `expected` has the
/// results that the run will have, with any values. `baseline` is null where there is none, or
/// where the one that the policy names has no results yet.
void CheckPolicy(const GatePolicy& policy, const ResultSet& expected, const ResultSet* baseline);

/// The (metric, filter) that a gate means among those of an entry. Throws Error(kUsage).
MetricKey ResolveMetric(const Gate& gate, const ResultSet& set);

/// verdict.json (docs/formats.md).
Json ToJson(const Verdict& verdict);

/// "pass", "fail", "inconclusive", "incomplete", "error": the status in a word.
std::string StatusWord(ExitStatus status);

/// "2 of 3 gates met, 1 failed".
std::string Summary(const Verdict& verdict);

}  // namespace evald
