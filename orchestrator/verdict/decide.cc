#include "orchestrator/verdict/decide.h"

#include <algorithm>
#include <numeric>

namespace evald {

std::string ToString(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPass:
      return "pass";
    case Outcome::kFail:
      return "fail";
    case Outcome::kInconclusive:
      return "inconclusive";
    case Outcome::kNotScored:
      break;
  }
  return "not scored";
}

std::vector<HolmStep> Holm(const std::vector<double>& p, double alpha) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return p[a] < p[b]; });
  std::vector<HolmStep> steps(p.size());
  bool stopped = false;
  double error = 0, adjusted = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    const double left = static_cast<double>(order.size() - i);
    // After the first hypothesis that stands, all others stand too, tested at its level.
    if (!stopped) error = alpha / left;
    adjusted = std::max(adjusted, std::min(1.0, left * p[order[i]]));
    stopped = stopped || p[order[i]] > error;
    steps[order[i]] = {!stopped, error, adjusted};
  }
  return steps;
}

std::vector<Decision> Decide(const std::vector<Question>& family, double alpha) {
  std::vector<double> p_fail, p_pass;
  for (const Question& question : family) {
    p_fail.push_back(question.evidence->PAbove(question.margin));
    p_pass.push_back(question.evidence->PBelow(question.margin + question.resolution));
  }
  const std::vector<HolmStep> fail = Holm(p_fail, alpha);
  const std::vector<HolmStep> pass = Holm(p_pass, alpha);
  std::vector<Decision> decisions;
  for (size_t i = 0; i < family.size(); ++i) {
    Decision decision;
    decision.outcome = fail[i].rejected   ? Outcome::kFail
                       : pass[i].rejected ? Outcome::kPass
                                          : Outcome::kInconclusive;
    decision.p_fail = p_fail[i];
    decision.p_pass = p_pass[i];
    decision.adjusted_p_fail = fail[i].adjusted;
    decision.adjusted_p_pass = pass[i].adjusted;
    decision.lower_error = fail[i].error;
    decision.upper_error = pass[i].error;
    decision.lower = family[i].evidence->Lower(fail[i].error);
    decision.upper = family[i].evidence->Upper(pass[i].error);
    decisions.push_back(decision);
  }
  return decisions;
}

}  // namespace evald
