// verdict.json: docs/formats.md.
#include <fmt/format.h>

#include "base/text.h"
#include "metrics/scoring/score_number.h"
#include "orchestrator/verdict/verdict.h"

namespace evald {
namespace {

constexpr double kTableError = 0.05;  // the comparison table's intervals are two-sided 95 %

Json Optional(const std::optional<double>& value) { return value ? NumberToScore(*value) : Json(); }

void AddPairs(const Comparison& comparison, Json* json) {
  (*json)["pairs"] = comparison.pairs;
  if (comparison.right_or_wrong) {
    (*json)["lost"] = comparison.lost;
    (*json)["gained"] = comparison.gained;
  }
  (*json)["only_candidate"] = comparison.only_candidate;
  (*json)["only_baseline"] = comparison.only_baseline;
  (*json)["other_prompts"] = comparison.other_prompts;
}

Json KeyJson(const MetricKey& key) {
  return {{"task", key.task}, {"metric", key.metric}, {"filter", key.filter}};
}

Json GateJson(const GateResult& result) {
  Json json = {{"name", result.gate.name}};
  json.update(KeyJson(result.key));
  json["tier"] = ToString(result.gate.tier);
  json["rule"] = result.gate.Rule();
  json["outcome"] = ToString(result.outcome);
  json["exit_status"] = static_cast<int>(result.status);
  json["blocks"] = result.blocks();
  json["cause"] = result.cause;
  json["candidate"] = Optional(result.candidate);
  if (result.gate.NeedsBaseline()) json["baseline"] = Optional(result.baseline);
  if (result.comparison) AddPairs(*result.comparison, &json);
  if (!result.decision) return json;
  const Decision& decision = *result.decision;
  json["method"] = result.evidence->method();
  json["drop"] = result.evidence->estimate();
  json["margin"] = result.margin;
  json["resolution"] = result.resolution;
  json["lower"] = decision.lower;
  json["lower_confidence"] = 1 - decision.lower_error;
  json["upper"] = decision.upper;
  json["upper_confidence"] = 1 - decision.upper_error;
  json["p_fail"] = decision.p_fail;
  json["p_pass"] = decision.p_pass;
  json["adjusted_p_fail"] = decision.adjusted_p_fail;
  json["adjusted_p_pass"] = decision.adjusted_p_pass;
  return json;
}

}  // namespace

Json ToJson(const Comparison& comparison) {
  Json json = KeyJson(comparison.key);
  json["candidate"] = NumberToScore(comparison.candidate);
  json["baseline"] = NumberToScore(comparison.baseline);
  json["higher_is_better"] = comparison.higher_is_better;
  AddPairs(comparison, &json);
  if (!comparison.evidence) {
    json["why_none"] = comparison.why_none;
    return json;
  }
  // The table gives candidate minus baseline; evidence is about the drop.
  const Evidence& evidence = *comparison.evidence;
  const double sign = comparison.higher_is_better ? -1 : 1;
  const double a = sign * evidence.Lower(kTableError / 2),
               b = sign * evidence.Upper(kTableError / 2);
  json["difference"] = sign * evidence.estimate() + 0.0;
  json["interval"] = {std::min(a, b) + 0.0, std::max(a, b) + 0.0};
  json["p"] = TwoSidedP(comparison);
  json["method"] = evidence.method();
  return json;
}

double TwoSidedP(const Comparison& comparison) {
  const Evidence& evidence = *comparison.evidence;
  const double worse = evidence.PAbove(0);
  const double better =
      comparison.right_or_wrong && comparison.evidence->method().starts_with("exact")
          ? McNemarOneSided(comparison.gained, comparison.lost)
          : evidence.PBelow(0);
  return std::min(1.0, 2 * std::min(worse, better));
}

Json ToJson(const Verdict& verdict) {
  Json gates = Json::array(), comparisons = Json::array();
  for (const GateResult& result : verdict.gates) gates.push_back(GateJson(result));
  for (const Comparison& comparison : verdict.comparisons)
    comparisons.push_back(ToJson(comparison));
  Json json = {{"status", StatusWord(verdict.status)},
               {"exit_status", static_cast<int>(verdict.status)},
               {"summary", Summary(verdict)},
               {"candidate", verdict.candidate}};
  json["baseline"] = verdict.baseline.empty() ? Json() : Json(verdict.baseline);
  json["alpha"] = verdict.alpha;
  json["gates"] = std::move(gates);
  json["comparisons"] = std::move(comparisons);
  if (!verdict.undirected.empty()) json["not_compared"] = verdict.undirected;
  if (!verdict.other_versions.empty()) json["other_versions"] = verdict.other_versions;
  return json;
}

std::string StatusWord(ExitStatus status) {
  switch (status) {
    case ExitStatus::kDone:
      return "pass";
    case ExitStatus::kGateFailed:
      return "fail";
    case ExitStatus::kUsage:
      return "error";
    case ExitStatus::kIncomplete:
      return "incomplete";
    case ExitStatus::kInconclusive:
      break;
  }
  return "inconclusive";
}

std::string Summary(const Verdict& verdict) {
  if (verdict.gates.empty())
    return verdict.run_status == ExitStatus::kDone ? "no gates" : "no gates; the run is incomplete";
  std::vector<std::string> parts = {
      fmt::format("{} of {} gates met", verdict.Count(Outcome::kPass), verdict.gates.size())};
  const std::pair<Outcome, const char*> others[] = {{Outcome::kFail, "failed"},
                                                    {Outcome::kInconclusive, "inconclusive"},
                                                    {Outcome::kNotScored, "not scored"}};
  for (const auto& [outcome, word] : others) {
    if (const int count = verdict.Count(outcome); count > 0)
      parts.push_back(fmt::format("{} {}", count, word));
  }
  if (verdict.run_status != ExitStatus::kDone) parts.push_back("the run is incomplete");
  return Join(parts, ", ");
}

}  // namespace evald
