#pragma once

#include <string>
#include <vector>

#include "orchestrator/verdict/evidence.h"

namespace evald {

enum class Outcome { kPass, kFail, kInconclusive, kNotScored };
std::string ToString(Outcome outcome);  ///< "pass", "fail", "inconclusive", "not scored"

/// The result of Holm's procedure for one hypothesis.
struct HolmStep {
  bool rejected = false;
  double error = 0;     ///< the level at which it was tested
  double adjusted = 0;  ///< p-value to compare with the family's alpha
};

/// Holm's step-down procedure: the chance of any wrong rejection is at most `alpha`, under any
/// dependence. The result is in the order of `p`.
std::vector<HolmStep> Holm(const std::vector<double>& p, double alpha);

/// One gate's question: is the drop above `margin`, or below `margin` + `resolution`?
struct Question {
  const Evidence* evidence = nullptr;
  double margin = 0;
  double resolution = 0;  ///< > 0
};

/// The answer. Each bound lies on the side of its threshold that its test says, at the level of
/// that test in Holm's procedure. Only the exact McNemar test may be stricter than its bound.
struct Decision {
  Outcome outcome = Outcome::kInconclusive;
  double p_fail = 1, p_pass = 1;                    ///< unadjusted, one-sided
  double adjusted_p_fail = 1, adjusted_p_pass = 1;  ///< Holm's
  double lower = 0, upper = 0;                      ///< one-sided bounds of the drop
  double lower_error = 0, upper_error = 0;          ///< their levels
};

/// Decides a family of gates. There are two families of tests, each at `alpha`: a gate fails if "at
/// most margin" is rejected; otherwise it passes if "at least margin + resolution" is rejected. So
/// with chance 1 - alpha no gate that is met fails, and with chance 1 - alpha no gate with a drop
/// of margin + resolution or more passes. The reasoning is in docs/metrics.md.
std::vector<Decision> Decide(const std::vector<Question>& family, double alpha);

}  // namespace evald
