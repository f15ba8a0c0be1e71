#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "evald/error.h"
#include "evald/json.h"
#include "orchestrator/config/gates.h"
#include "orchestrator/verdict/comparison.h"
#include "orchestrator/verdict/decide.h"

namespace evald {

/// The result of one gate.
struct GateResult {
  Gate gate;
  MetricKey key;
  Outcome outcome = Outcome::kNotScored;
  /// The exit status that it asks for if it is critical
  ExitStatus status = ExitStatus::kDone;
  std::string cause;                          ///< one sentence for people
  std::optional<double> candidate, baseline;  ///< the values in the results
  std::optional<Comparison> comparison;       ///< drops only
  std::shared_ptr<const Evidence> evidence;   ///< null: the value alone decided, or nothing could
  double margin = 0, resolution = 0;          ///< of the drop, in the metric's units
  std::optional<Decision> decision;

  bool blocks() const { return gate.tier == Tier::kCritical && status != ExitStatus::kDone; }
};

/// A policy applied to a run. All reports are made from it.
struct Verdict {
  ExitStatus status = ExitStatus::kDone;      ///< of the command
  ExitStatus run_status = ExitStatus::kDone;  ///< of the evaluation, without gates
  std::string candidate;                      ///< label
  std::string baseline;                       ///< label; "" without
  double alpha = 0.05;
  std::vector<GateResult> gates;
  std::vector<Comparison> comparisons;  ///< every task and metric that both sides have
  /// The tasks and metrics that both sides have, but neither says which value is better
  std::vector<std::string> undirected;
  /// The tasks whose versions differ between the two sides: "gsm8k (3.0 against 2.0)"
  std::vector<std::string> other_versions;
  std::vector<std::string> problems;  ///< of the run

  int Count(Outcome outcome) const;
};

/// Which of two exit statuses is reported: the earlier one in the order 2, 3, 1, 4, 0.
ExitStatus Foremost(ExitStatus a, ExitStatus b);

/// Applies a policy. `baseline` may be null if no gate needs one. Does not throw for a fault of one
/// gate: that gate is not scored, with its cause and status. Throws Error(kInput) if a task outside
/// the gates cannot be compared.
Verdict Judge(const GatePolicy& policy, ResultSet* candidate, ResultSet* baseline,
              ExitStatus run_status, const std::vector<std::string>& problems);

/// In the results that are expected of a run: the tasks whose Python function names the metrics.
inline constexpr const char* kMetricsByFunction = "metrics_by_function";

/// Refuses, before a run, gates that could only fail after it. Throws Error(kUsage) for a gate on a
/// task that is not evaluated, or on a metric or filter that its task does not have, and for a drop
/// without a baseline. Throws Error(kInput) if the baseline lacks the metric or its samples.
/// `expected` has the results that the run will have, with any values. The metrics of tasks that
/// `expected` lists under evald.<kMetricsByFunction> are known only after the run. `baseline` is
/// null if there is none, or if the policy's baseline has no results yet.
void CheckPolicy(const GatePolicy& policy, const ResultSet& expected, const ResultSet* baseline);

/// The (metric, filter) of an entry that a gate means. Throws Error(kUsage).
MetricKey ResolveMetric(const Gate& gate, const ResultSet& set);

/// verdict.json (docs/formats.md).
Json ToJson(const Verdict& verdict);

/// "pass", "fail", "inconclusive", "incomplete", "error": the status in a word.
std::string StatusWord(ExitStatus status);

/// "2 of 3 gates met, 1 failed".
std::string Summary(const Verdict& verdict);

}  // namespace evald
