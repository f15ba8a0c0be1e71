#include "metrics/math_metric.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/filter_support.h"

namespace evald {
namespace {

constexpr const char* kMathWhere = "math_verify";

// The arguments of math-verify's verify that a task may set, with the package's own defaults.
Json SettingsOf(const MetricSpec& spec) {
  static const std::vector<std::string> kArguments = {"float_rounding", "numeric_precision",
                                                      "strict", "allow_set_relation_comp"};
  for (const auto& [key, value] : spec.kwargs.items()) {
    if (std::find(kArguments.begin(), kArguments.end(), key) == kArguments.end()) {
      throw Error(ErrorKind::kInput, fmt::format("math_verify has no argument '{}'{}", key,
                                                 Suggestion(key, kArguments)));
    }
  }
  constexpr int64_t kDigitsMax = 100;
  Json settings = {
      {"float_rounding", FieldOr<int64_t>(spec.kwargs, "float_rounding", 6, kMathWhere)},
      {"numeric_precision", FieldOr<int64_t>(spec.kwargs, "numeric_precision", 15, kMathWhere)},
      {"strict", FieldOr<bool>(spec.kwargs, "strict", true, kMathWhere)},
      {"allow_set_relation_comp",
       FieldOr<bool>(spec.kwargs, "allow_set_relation_comp", false, kMathWhere)}};
  for (const char* key : {"float_rounding", "numeric_precision"}) {
    const auto digits = settings[key].get<int64_t>();
    if (digits < 0 || digits > kDigitsMax)
      ThrowField(spec.kwargs, key, "a number of digits from 0 to 100", kMathWhere);
  }
  return settings;
}

std::vector<std::string> GoldsOf(const Json& gold) {
  if (gold.is_string()) return {gold.get<std::string>()};
  std::vector<std::string> golds;
  for (const Json& one : gold.is_array() ? gold : Json::array({gold})) {
    if (!one.is_string()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("math_verify: the target is {}, expected text or a list of texts",
                              Shortened(ToLine(gold), 200)));
    }
    golds.push_back(one.get<std::string>());
  }
  return golds;
}

// Whether any of the gold answers equals the answer. Why a pair was not compared counts once.
bool EqualsAny(const std::vector<std::string>& golds, const std::string& answer,
               const Json& settings, MathComparer* comparer, Fallbacks* fallbacks) {
  using Verdict = MathComparer::Verdict;
  bool over = false, too_long = false;
  for (const std::string& gold : golds) {
    const Verdict verdict = comparer->Compare(gold, answer, settings);
    if (verdict == Verdict::kEqual) return true;
    over = over || verdict == Verdict::kOverLimit;
    too_long = too_long || verdict == Verdict::kTooLong;
  }
  if (over) ++(*fallbacks)["math_verify: time limit"];
  if (too_long) ++(*fallbacks)["math_verify: too long"];
  return false;
}

}  // namespace

MathScorer MakeMathMetric(const MetricSpec& spec, MathComparer* comparer) {
  return [settings = SettingsOf(spec), comparer](const TextAnswer& answer, Json* metrics,
                                                 Fallbacks* fallbacks) {
    if (comparer == nullptr)
      throw Error(ErrorKind::kInternal, "no process compares answers of mathematics");
    const std::vector<std::string> golds = GoldsOf(answer.gold);
    if (!answer.result.is_string()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("math_verify takes one text, but the filters leave {}",
                              Shortened(ToLine(answer.result), 200)),
                  "end the filter pipeline with take_first");
    }
    const auto& text = answer.result.get_ref<const std::string&>();
    (*metrics)["math_verify"] = EqualsAny(golds, text, settings, comparer, fallbacks) ? 1.0 : 0.0;
  };
}

}  // namespace evald
