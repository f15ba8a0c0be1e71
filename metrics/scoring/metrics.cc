#include "metrics/scoring/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "evald/error.h"

namespace evald {

// The table of metrics, in the order of Metrics(). NAME stands for a `kNAMEMetric` of a file of
// this room.
#define EVALD_METRICS(METRIC) \
  METRIC(Perplexity)          \
  METRIC(Acc)                 \
  METRIC(F1)                  \
  METRIC(Mcc)                 \
  METRIC(AccNorm)             \
  METRIC(AccBytes)            \
  METRIC(ExactMatch)          \
  METRIC(BrierScore)          \
  METRIC(Likelihood)          \
  METRIC(AccMutualInfo)       \
  METRIC(WordPerplexity)      \
  METRIC(BytePerplexity)      \
  METRIC(BitsPerByte)         \
  METRIC(Bypass)              \
  METRIC(PassAtK)             \
  METRIC(PassAt1)             \
  METRIC(Passes)              \
  METRIC(CommandScore)        \
  METRIC(Judge)               \
  METRIC(AccAll)              \
  METRIC(Bleu)                \
  METRIC(Chrf)                \
  METRIC(ChrfPlusPlus)        \
  METRIC(Ter)                 \
  METRIC(MathVerify)

#define EVALD_DECLARE(NAME) extern const Metric k##NAME##Metric;
EVALD_METRICS(EVALD_DECLARE)
#undef EVALD_DECLARE

namespace {

bool HasFunction(const Metric& metric) { return *metric.function != '\0'; }

bool IsJudge(const Metric& metric) { return metric.function == std::string_view(kJudgeFunction); }

// The names or functions of the metrics that the output type serves, as a task writes them.
std::vector<std::string> ServedNames(const OutputType& type, bool functions) {
  std::vector<std::string> names;
  for (const Metric* metric : Metrics()) {
    const bool by_function = HasFunction(*metric) && !IsJudge(*metric);
    if (!type.serves(*metric) || by_function != functions) continue;
    if (metric->function == std::string_view(kCommandMetric)) continue;  // no task file's
    names.emplace_back(functions ? metric->function : metric->name);
  }
  return names;
}

[[noreturn]] void Refuse(const std::string& metric, const OutputType& type) {
  const std::vector<std::string> served = ServedNames(type, false);
  throw Error(ErrorKind::kInput,
              fmt::format("the metric '{}' is not served for {}{}", metric, type.name,
                          Suggestion(metric, served)),
              "served are " + Join(served, ", "));
}

bool ServedAnywhere(const Metric& metric) {
  return std::any_of(OutputTypes().begin(), OutputTypes().end(),
                     [&](const OutputType& type) { return type.serves(metric); });
}

const Metric& ServedFunction(const std::string& function, const OutputType& type) {
  for (const Metric* metric : Metrics()) {
    if (HasFunction(*metric) && function == metric->function && type.serves(*metric))
      return *metric;
  }
  RefuseFunction("", function, "is not known as a metric", ServedNames(type, true),
                 "let evald run the Python code of task files in a sandbox with 'task_code: allow' "
                 "or --allow-task-code (docs/task-code.md), for generate_until; served are ");
}

}  // namespace

const std::vector<OutputType>& OutputTypes() {
  static const std::vector<OutputType> types = {
      {"loglikelihood",
       RequestKind::kLoglikelihood,
       {"perplexity", "acc"},
       [](const Metric& m) { return m.likelihood.has_value(); },
       [](const Metric& m) { return m.likelihood->gives; }},
      {"multiple_choice",
       RequestKind::kLoglikelihood,
       {"acc", "acc_norm"},
       [](const Metric& m) { return m.choice.has_value(); },
       [](const Metric& m) { return m.choice->gives; }},
      {"loglikelihood_rolling",
       RequestKind::kLoglikelihoodRolling,
       {"word_perplexity", "byte_perplexity", "bits_per_byte"},
       [](const Metric& m) { return m.rolling.has_value(); },
       [](const Metric& m) { return m.rolling->gives; }},
      {"generate_until",
       RequestKind::kGenerateUntil,
       {"exact_match"},
       [](const Metric& m) { return m.text.has_value(); },
       [](const Metric& m) { return m.text->gives; }},
  };
  return types;
}

std::vector<std::string> OutputTypeNames() {
  std::vector<std::string> names;
  for (const OutputType& type : OutputTypes()) names.emplace_back(type.name);
  return names;
}

const OutputType& OutputTypeOf(std::string_view name) {
  for (const OutputType& type : OutputTypes()) {
    if (name == type.name) return type;
  }
  throw Error(ErrorKind::kInput,
              fmt::format("the output_type '{}' is not known{}", name,
                          Suggestion(std::string(name), OutputTypeNames())),
              "known are " + Join(OutputTypeNames(), ", "));
}

const std::vector<const Metric*>& Metrics() {
#define EVALD_ENTRY(NAME) &k##NAME##Metric,
  static const std::vector<const Metric*> metrics = {EVALD_METRICS(EVALD_ENTRY)};
#undef EVALD_ENTRY
  return metrics;
}

std::vector<std::string> MetricNames() {
  std::vector<std::string> names;
  for (const Metric* metric : Metrics()) {
    if (!HasFunction(*metric) || IsJudge(*metric)) names.emplace_back(metric->name);
  }
  return names;
}

const Metric* FindMetric(std::string_view name) {
  const auto found = std::find_if(Metrics().begin(), Metrics().end(),
                                  [&](const Metric* metric) { return name == metric->name; });
  return found == Metrics().end() ? nullptr : *found;
}

const Metric& ServedMetric(const MetricSpec& spec, const OutputType& type) {
  // A command names its scores as it likes, and so does a task with a judge.
  if (spec.function == kCommandMetric || spec.function == kJudgeFunction)
    return ServedFunction(spec.function, type);
  const Metric* const metric = FindMetric(spec.metric);
  if (metric != nullptr && !ServedAnywhere(*metric)) {
    throw Error(ErrorKind::kInput, fmt::format("the metric '{}' is not served", spec.metric));
  }
  if (!spec.function.empty()) return ServedFunction(spec.function, type);
  if (metric == nullptr || HasFunction(*metric) || !type.serves(*metric)) Refuse(spec.metric, type);
  return *metric;
}

std::vector<MetricSpec> DefaultMetrics(std::string_view output_type) {
  std::vector<MetricSpec> specs;
  for (const char* name : OutputTypeOf(output_type).default_metrics) {
    const Metric& metric = *FindMetric(name);
    MetricSpec spec;
    spec.metric = name;
    spec.aggregation = metric.aggregation;
    spec.higher_is_better = metric.higher_is_better;
    specs.push_back(std::move(spec));
  }
  return specs;
}

bool NeedsUnconditional(const std::vector<MetricSpec>& metrics) {
  return std::any_of(metrics.begin(), metrics.end(), [](const MetricSpec& spec) {
    const Metric* const metric = FindMetric(spec.metric);
    return metric != nullptr && metric->choice && metric->choice->unconditional;
  });
}

bool ComparesMath(std::string_view output_type, const std::string& process_results,
                  const std::vector<MetricSpec>& metrics) {
  if (output_type != "generate_until" || !process_results.empty()) return false;
  return std::any_of(metrics.begin(), metrics.end(), [](const MetricSpec& spec) {
    const Metric* const metric = spec.function.empty() ? FindMetric(spec.metric) : nullptr;
    return metric != nullptr && metric->text && metric->text->compares_math;
  });
}

bool GivesValue(const MetricSpec& spec, std::string_view value) {
  if (value == spec.metric) return true;
  const Metric* const metric = FindMetric(spec.metric);
  return metric != nullptr && metric->text && metric->text->value_prefix != nullptr &&
         value.starts_with(metric->text->value_prefix);
}

}  // namespace evald
