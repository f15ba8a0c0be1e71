#include "metrics/scoring/aggregations.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "evald/error.h"
#include "evald/task.h"

namespace evald {

// The table of aggregations. NAME stands for a `kNAMEAggregation` of a file of this room.
#define EVALD_AGGREGATIONS(AGGREGATION) \
  AGGREGATION(Mean)                     \
  AGGREGATION(NanMean)                  \
  AGGREGATION(Median)                   \
  AGGREGATION(Perplexity)               \
  AGGREGATION(WeightedPerplexity)       \
  AGGREGATION(BitsPerByte)              \
  AGGREGATION(F1)                       \
  AGGREGATION(Matthews)                 \
  AGGREGATION(BrierScore)               \
  AGGREGATION(Bypass)                   \
  AGGREGATION(Bleu)                     \
  AGGREGATION(Chrf)                     \
  AGGREGATION(ChrfPlusPlus)             \
  AGGREGATION(Ter)

#define EVALD_DECLARE(NAME) extern const Aggregation k##NAME##Aggregation;
EVALD_AGGREGATIONS(EVALD_DECLARE)
#undef EVALD_DECLARE

namespace {

#define EVALD_ENTRY(NAME) &k##NAME##Aggregation,
constexpr const Aggregation* kAggregations[] = {EVALD_AGGREGATIONS(EVALD_ENTRY)};
#undef EVALD_ENTRY

// Null for an unknown aggregation.
const Aggregation* FindAggregation(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kAggregations), std::end(kAggregations),
                   [&](const Aggregation* aggregation) { return name == aggregation->name; });
  return found == std::end(kAggregations) ? nullptr : *found;
}

const char* TextOfForm(ValueForm form) {
  switch (form) {
    case ValueForm::kNumber:
      return "a number";
    case ValueForm::kPair:
      return "a pair of numbers";
    case ValueForm::kLabelAndNumbers:
      return "a label and a list of numbers";
    case ValueForm::kTexts:
      return "a pair of texts";
    case ValueForm::kNothing:
      return "nothing";
    case ValueForm::kAnything:
      return "anything";
  }
  throw Error(ErrorKind::kInternal, "a form of values without a text");
}

}  // namespace

const std::vector<std::string>& AggregationNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Aggregation* aggregation : kAggregations) {
      if (aggregation->aggregate != nullptr) list.emplace_back(aggregation->name);
    }
    return list;
  }();
  return names;
}

std::string OwnAggregation(std::string_view name) {
  constexpr std::string_view kTag = "!function ";
  return name.starts_with(kTag) ? std::string(name.substr(kTag.size())) : "";
}

void CheckAggregation(const std::string& name) {
  const Aggregation* const known = FindAggregation(name);
  if (known != nullptr && known->aggregate != nullptr) return;
  const std::string served = "served are " + Join(AggregationNames(), ", ");
  if (known != nullptr) {
    throw Error(ErrorKind::kInput, fmt::format("the aggregation '{}' is not served", name), served);
  }
  if (const std::string function = OwnAggregation(name); !function.empty()) {
    RefuseFunction("", function, "is not known as an aggregation", AggregationNames(),
                   "let evald run the Python code of task files in a sandbox with 'task_code: "
                   "allow' or --allow-task-code (docs/task-code.md); served are ");
  }
  throw Error(ErrorKind::kInput,
              fmt::format("the aggregation '{}' is not known{}", name,
                          Suggestion(name, AggregationNames())),
              served);
}

void CheckAggregates(const std::string& name, const std::string& metric, ValueForm given) {
  const ValueForm taken = FindAggregation(name)->takes;
  if (given == taken || given == ValueForm::kNothing || taken == ValueForm::kAnything) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("the metric '{}' gives {} for each document, and the aggregation '{}' takes {}",
                  metric, TextOfForm(given), name, TextOfForm(taken)),
      "name another aggregation, or leave out the metric");
}

Aggregated Aggregate(const std::string& name, const MetricValues& values, int bootstrap_iters,
                     const std::function<bool()>& stopped) {
  CheckAggregation(name);
  if (values.empty()) throw Error(ErrorKind::kInternal, "nothing to aggregate");
  return FindAggregation(name)->aggregate(values, {bootstrap_iters, stopped});
}

bool TakesTexts(const std::string& name) {
  const Aggregation* const known = FindAggregation(name);
  return known != nullptr && known->takes == ValueForm::kTexts;
}

bool TakesNumbers(const std::string& name) {
  const Aggregation* const known = FindAggregation(name);
  return known != nullptr && known->takes == ValueForm::kNumber;
}

bool IsBootstrapped(const std::string& name) {
  const Aggregation* const known = FindAggregation(name);
  return known != nullptr && known->bootstraps;
}

}  // namespace evald
