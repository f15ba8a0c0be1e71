#include "orchestrator/verdict/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "orchestrator/verdict/truncated.h"

namespace evald {
namespace {

constexpr double kDefaultResolution =
    0.02;  // 2 points; on other scales 2 % of the baseline's value
constexpr Tier kTiers[] = {Tier::kCritical, Tier::kSupporting, Tier::kAdvisory};

// The first few names: a suite may have hundreds of tasks.
std::string Some(const std::vector<std::string>& names) {
  constexpr size_t kShownMax = 12;
  const std::vector<std::string> shown(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kShownMax)));
  return Join(shown, ", ") + (names.size() > kShownMax ? ", ..." : "");
}

void Set(GateResult* result, Outcome outcome, ExitStatus status, std::string cause) {
  result->outcome = outcome;
  result->status = status;
  result->cause = std::move(cause);
}

double Resolution(const GatePolicy& policy, const Gate& gate, bool unit_scale, double reference) {
  if (gate.resolution) return *gate.resolution;
  if (policy.resolution) return *policy.resolution;
  return unit_scale ? kDefaultResolution : std::max(1e-9, kDefaultResolution * std::abs(reference));
}

bool Unit(const MetricValuesOf& values) {
  return values.aggregation == "mean" && values.value >= 0 && values.value <= 1;
}

void SetMet(GateResult* result, bool met, std::string cause) {
  Set(result, met ? Outcome::kPass : Outcome::kFail,
      met ? ExitStatus::kDone : ExitStatus::kGateFailed, std::move(cause));
}

void JudgeValue(const GatePolicy& policy, ResultSet* candidate, GateResult* result) {
  const Gate& gate = result->gate;
  const bool lower = gate.kind == GateKind::kMax;
  const char* const bound = lower ? "maximum" : "minimum";
  const double value = ReadValue(*candidate, result->key);
  result->candidate = value;
  if (std::isnan(value)) {
    return SetMet(result, false,
                  fmt::format("nan (not a number) does not meet the {} of {}", bound, gate.bound));
  }
  // No interval around an infinite value exists.
  if (!gate.confident || std::isinf(value)) {
    const bool met = lower ? value <= gate.bound : value >= gate.bound;
    const char* const side = met ? "within" : lower ? "above" : "below";
    return SetMet(result, met,
                  fmt::format("{:.4f} is {} the {} of {}", value, side, bound, gate.bound));
  }
  const MetricValuesOf values = ReadMetric(candidate, result->key);
  result->resolution = Resolution(policy, gate, Unit(values), gate.bound);
  std::string why;
  result->evidence = AgainstTarget(values, gate.bound, lower, &why);
  if (!result->evidence) Set(result, Outcome::kInconclusive, ExitStatus::kInconclusive, why);
}

// Judges a drop to, or from, a value that is NaN or infinite. Gives whether there was one.
bool JudgeDropOfNonFinite(const ResultSet& candidate, const ResultSet& baseline, bool higher,
                          GateResult* result) {
  const double mine = ReadValue(candidate, result->key), theirs = ReadValue(baseline, result->key);
  if (std::isfinite(mine) && std::isfinite(theirs)) return false;
  result->candidate = mine;
  result->baseline = theirs;
  if (!std::isfinite(theirs)) {
    throw Error(
        ErrorKind::kInput,
        fmt::format("the baseline's value is {}, from which no drop can be measured", theirs),
        "name another baseline");
  }
  SetMet(result, std::isinf(mine) && (mine > 0) == higher,
         fmt::format("{} against {:.4f}", mine, theirs));
  return true;
}

void JudgeDrop(const GatePolicy& policy, ResultSet* candidate, ResultSet* baseline,
               GateResult* result) {
  const Gate& gate = result->gate;
  if (baseline == nullptr)
    throw Error(ErrorKind::kUsage, "it needs a baseline",
                "name one with --baseline or gates.baseline");
  std::optional<bool> higher = gate.higher_is_better;
  if (!higher) higher = HigherIsBetter(*candidate, result->key);
  if (!higher) higher = HigherIsBetter(*baseline, result->key);
  if (!higher)
    throw Error(ErrorKind::kUsage, "the results do not say whether higher is better",
                "add direction: higher or lower");
  if (JudgeDropOfNonFinite(*candidate, *baseline, *higher, result)) return;
  if (!policy.other_versions) CheckVersions(*candidate, *baseline, result->key);
  result->comparison = Compare(candidate, baseline, result->key, *higher);
  const Comparison& comparison = *result->comparison;
  result->candidate = comparison.candidate;
  result->baseline = comparison.baseline;
  result->margin =
      gate.kind == GateKind::kMaxDrop ? gate.bound : gate.bound * std::abs(comparison.baseline);
  result->resolution = Resolution(policy, gate, comparison.unit_scale, comparison.baseline);
  result->evidence = comparison.evidence;
  if (!result->evidence)
    Set(result, Outcome::kInconclusive, ExitStatus::kInconclusive, comparison.why_none);
}

void JudgeTruncated(const GatePolicy& policy, const ResultSet& candidate, GateResult* result) {
  const Gate& gate = result->gate;
  const std::vector<TruncatedCount> counts = TruncatedCounts(gate, policy, candidate);
  std::vector<std::string> above;
  double most = 0;
  for (const TruncatedCount& count : counts) {
    most = std::max(most, count.Share());
    if (count.Share() > gate.bound) above.push_back(count.Text());
  }
  result->candidate = most;
  if (above.empty()) {
    return Set(result, Outcome::kPass, ExitStatus::kDone,
               fmt::format("{:.4f} is within the maximum of {}", most, gate.bound));
  }
  Set(result, Outcome::kFail, ExitStatus::kGateFailed,
      fmt::format("above the maximum of {}: {} ran into max_gen_toks", gate.bound, Some(above)));
}

// Fills in the parts of a gate's result that do not depend on other gates.
void Prepare(const GatePolicy& policy, ResultSet* candidate, ResultSet* baseline,
             const Verdict& verdict, GateResult* result) {
  const Gate& gate = result->gate;
  result->key = {gate.task, gate.metric, gate.filter};
  try {
    const bool unfinished = gate.task == kEveryTask || candidate->Entry(gate.task).is_null();
    if (unfinished && verdict.run_status != ExitStatus::kDone) {
      Set(result, Outcome::kNotScored, ExitStatus::kIncomplete,
          fmt::format("{} was not finished{}", gate.task == kEveryTask ? "the run" : gate.task,
                      verdict.problems.empty() ? "" : ": " + verdict.problems[0]));
      return;
    }
    if (gate.IsOfTruncated()) return JudgeTruncated(policy, *candidate, result);
    result->key = ResolveMetric(gate, *candidate);
    if (gate.NeedsBaseline()) {
      JudgeDrop(policy, candidate, baseline, result);
    } else {
      JudgeValue(policy, candidate, result);
    }
  } catch (const Error& e) {
    result->evidence = nullptr;
    Set(result, Outcome::kNotScored, ExitStatusFor(e.kind()), e.what());
  }
}

std::string Percent(double error) { return fmt::format("{:.4g} %", 100 * (1 - error)); }

// Words a drop, or a gain if it is negative.
std::string DecisionCause(const GateResult& result) {
  const Decision& decision = *result.decision;
  const std::string what =
      result.comparison
          ? fmt::format("{:.4f} against {:.4f}", *result.candidate, *result.baseline)
          : fmt::format("{:.4f} against the bound {}", *result.candidate, result.gate.bound);
  const std::string documents =
      result.comparison ? fmt::format(" ({} documents)", result.comparison->pairs) : "";
  const char* noun = result.comparison ? "drop" : "shortfall";
  const double limit = result.margin + result.resolution;
  switch (decision.outcome) {
    case Outcome::kFail:
      if (decision.lower <= result.margin) {  // the exact test
        return fmt::format("{}{}: a {} is shown, p = {:.2g} at level {:.3g}", what, documents, noun,
                           decision.p_fail, decision.lower_error);
      }
      return fmt::format("{}{}: the {} is above {:.4f} with {} confidence, more than {:.4f}", what,
                         documents, noun, decision.lower, Percent(decision.lower_error),
                         result.margin);
    case Outcome::kPass:
      return fmt::format("{}{}: the {} is below {:.4f} with {} confidence, less than {:.4f}", what,
                         documents, noun, decision.upper, Percent(decision.upper_error), limit);
    default:
      return fmt::format(
          "{}{}: too few to tell; the {} lies between {:.4f} and {:.4f}, to fail it must be shown "
          "above "
          "{:.4f}, to pass below {:.4f}",
          what, documents, noun, decision.lower, decision.upper, result.margin, limit);
  }
}

void DecideTier(Tier tier, Verdict* verdict) {
  std::vector<GateResult*> family;
  std::vector<Question> questions;
  for (GateResult& result : verdict->gates) {
    if (result.gate.tier != tier || !result.evidence) continue;
    family.push_back(&result);
    questions.push_back({result.evidence.get(), result.margin, result.resolution});
  }
  const std::vector<Decision> decisions = Decide(questions, verdict->alpha);
  for (size_t i = 0; i < family.size(); ++i) {
    GateResult& result = *family[i];
    result.decision = decisions[i];
    const ExitStatus status = decisions[i].outcome == Outcome::kFail   ? ExitStatus::kGateFailed
                              : decisions[i].outcome == Outcome::kPass ? ExitStatus::kDone
                                                                       : ExitStatus::kInconclusive;
    Set(&result, decisions[i].outcome, status, DecisionCause(result));
  }
}

// Compares every task and metric that both sides have and whose direction is known. Adds the others
// that both sides have to `undirected`.
std::vector<Comparison> CompareAll(const GatePolicy& policy, ResultSet* candidate,
                                   ResultSet* baseline, std::vector<std::string>* undirected) {
  std::vector<Comparison> comparisons;
  for (const auto& [task, entry] : candidate->results()["results"].items()) {
    for (const auto& [metric, filter] : candidate->Metrics(task)) {
      const MetricKey key{task, metric, filter};
      const std::optional<double> mine = candidate->Value(task, metric, filter);
      const std::optional<double> theirs = baseline->Value(task, metric, filter);
      if (!mine || !theirs) continue;
      auto higher = HigherIsBetter(*candidate, key);
      if (!higher) higher = HigherIsBetter(*baseline, key);
      if (!higher) {
        undirected->push_back(key.Text());
        continue;
      }
      try {
        if (!policy.other_versions) CheckVersions(*candidate, *baseline, key);
        comparisons.push_back(Compare(candidate, baseline, key, *higher));
      } catch (const Error& e) {
        Comparison failed;
        failed.key = key;
        failed.candidate = *mine;
        failed.baseline = *theirs;
        failed.higher_is_better = *higher;
        failed.why_none = e.what();
        comparisons.push_back(std::move(failed));
      }
    }
  }
  return comparisons;
}

std::vector<std::string> AllOtherVersions(const ResultSet& candidate, const ResultSet& baseline) {
  std::vector<std::string> others;
  for (const auto& [task, entry] : candidate.results()["results"].items()) {
    if (candidate.Leaves(task) != std::vector<std::string>{task}) continue;  // a group
    if (baseline.Entry(task).is_null()) continue;
    for (std::string& other : OtherVersions(candidate, baseline, task))
      others.push_back(std::move(other));
  }
  return others;
}

}  // namespace

int Verdict::Count(Outcome outcome) const {
  return static_cast<int>(std::count_if(gates.begin(), gates.end(),
                                        [&](const GateResult& g) { return g.outcome == outcome; }));
}

ExitStatus Foremost(ExitStatus a, ExitStatus b) {
  for (const ExitStatus status : {ExitStatus::kUsage, ExitStatus::kIncomplete,
                                  ExitStatus::kGateFailed, ExitStatus::kInconclusive}) {
    if (a == status || b == status) return status;
  }
  return ExitStatus::kDone;
}

MetricKey ResolveMetric(const Gate& gate, const ResultSet& set) {
  const std::string in = set.path().empty() ? "" : " in " + set.path().string();
  if (set.Entry(gate.task).is_null()) {
    std::vector<std::string> names;
    for (const auto& [name, entry] : set.results()["results"].items()) names.push_back(name);
    throw Error(ErrorKind::kUsage, fmt::format("{}: no results of '{}'{}{}", gate.Place("task"),
                                               gate.task, in, Suggestion(gate.task, names)));
  }
  std::vector<std::string> metrics, filters;
  for (const auto& [metric, filter] : set.Metrics(gate.task)) {
    if (std::find(metrics.begin(), metrics.end(), metric) == metrics.end())
      metrics.push_back(metric);
    if (metric == gate.metric) filters.push_back(filter);
  }
  if (metrics.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: '{}' has no metrics{}", gate.Place("task"), gate.task, in),
                fmt::format("it is a heading; name one of {}", Join(set.Leaves(gate.task), ", ")));
  }
  if (filters.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: '{}' has no metric '{}'{}{}", gate.Place("metric"), gate.task,
                            gate.metric, in, Suggestion(gate.metric, metrics)),
                "it has " + Join(metrics, ", "));
  }
  if (gate.filter.empty() && filters.size() == 1) return {gate.task, gate.metric, filters[0]};
  if (gate.filter.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("{}: '{}' has '{}' for several filters{}", gate.Place("metric"),
                            gate.task, gate.metric, in),
                "add one of them: filter: " + Join(filters, " or "));
  }
  if (std::find(filters.begin(), filters.end(), gate.filter) == filters.end()) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("{}: '{}' has no '{}' for a filter '{}'{}{}", gate.Place("filter"), gate.task,
                    gate.metric, gate.filter, in, Suggestion(gate.filter, filters)),
        fmt::format("it has {} for {}", gate.metric, Join(filters, ", ")));
  }
  return {gate.task, gate.metric, gate.filter};
}

namespace {

[[noreturn]] void ThrowNoDirection(const Gate& gate) {
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{}: neither the task nor the baseline says whether a higher '{}' is better",
                  gate.Place("metric"), gate.metric),
      "add direction: higher or direction: lower");
}

// Checks that the baseline has the metric and filter under which the candidate's documents will be
// compared.
void CheckDrop(const Gate& gate, const MetricKey& key, const ResultSet& expected,
               const ResultSet& baseline) {
  Gate same = gate;
  same.filter = key.filter;
  ResolveMetric(same, baseline);
  if (!gate.higher_is_better && !HigherIsBetter(expected, key) && !HigherIsBetter(baseline, key)) {
    ThrowNoDirection(gate);
  }
  for (const std::string& leaf : baseline.Leaves(gate.task)) baseline.CheckSamples(leaf);
}

}  // namespace

namespace {

// Whether a function of the task may give the gate's metric, which metric_list does not name.
bool MayBeGiven(const Gate& gate, const ResultSet& expected) {
  const Json& results = expected.results();
  const auto facts = results.find("evald");
  if (facts == results.end() || !facts->contains(kMetricsByFunction)) return false;
  const Json& tasks = (*facts)[kMetricsByFunction];
  if (std::find(tasks.begin(), tasks.end(), Json(gate.task)) == tasks.end()) return false;
  const auto listed = expected.Metrics(gate.task);
  return std::none_of(listed.begin(), listed.end(),
                      [&](const auto& metric) { return metric.first == gate.metric; });
}

void RequireBaseline(const Gate& gate, const GatePolicy& policy) {
  if (!gate.NeedsBaseline() || !policy.baseline.empty()) return;
  throw Error(ErrorKind::kUsage, fmt::format("{}: needs a baseline", gate.Place("bound")),
              "name one with --baseline or gates.baseline");
}

}  // namespace

void CheckPolicy(const GatePolicy& policy, const ResultSet& expected, const ResultSet* baseline) {
  std::vector<std::string> tasks;
  for (const auto& [name, entry] : expected.results()["results"].items()) tasks.push_back(name);
  for (const Gate& gate : policy.gates) {
    if (gate.task == kEveryTask) {
      TruncatedCounts(gate, policy, expected);
      continue;
    }
    if (std::find(tasks.begin(), tasks.end(), gate.task) == tasks.end()) {
      const std::string near = Suggestion(gate.task, tasks);
      throw Error(ErrorKind::kUsage,
                  fmt::format("{}: '{}' is not evaluated{}", gate.Place("task"), gate.task, near),
                  near.empty() ? "evaluated are " + Some(tasks) : "");
    }
    if (gate.IsOfTruncated()) {
      TruncatedCounts(gate, policy, expected);
      continue;
    }
    const bool later = MayBeGiven(gate, expected);
    const MetricKey key = later ? MetricKey() : ResolveMetric(gate, expected);
    RequireBaseline(gate, policy);
    if (later && gate.NeedsBaseline() && !gate.higher_is_better) ThrowNoDirection(gate);
    if (!later && gate.NeedsBaseline() && baseline != nullptr)
      CheckDrop(gate, key, expected, *baseline);
  }
}

Verdict Judge(const GatePolicy& policy, ResultSet* candidate, ResultSet* baseline,
              ExitStatus run_status, const std::vector<std::string>& problems) {
  Verdict verdict;
  verdict.run_status = run_status;
  verdict.candidate = candidate->label();
  verdict.baseline = baseline == nullptr ? "" : baseline->label();
  verdict.alpha = policy.alpha;
  verdict.problems = problems;
  for (const Gate& gate : policy.gates) {
    GateResult result;
    result.gate = gate;
    Prepare(policy, candidate, baseline, verdict, &result);
    verdict.gates.push_back(std::move(result));
  }
  for (const Tier tier : kTiers) DecideTier(tier, &verdict);
  if (baseline != nullptr) {
    verdict.comparisons = CompareAll(policy, candidate, baseline, &verdict.undirected);
    verdict.other_versions = AllOtherVersions(*candidate, *baseline);
  }
  verdict.status = run_status;
  for (const GateResult& result : verdict.gates) {
    if (result.gate.tier == Tier::kCritical)
      verdict.status = Foremost(verdict.status, result.status);
  }
  return verdict;
}

}  // namespace evald
