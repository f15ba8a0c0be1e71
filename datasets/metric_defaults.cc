#include "datasets/metric_defaults.h"

namespace evald {
namespace {

constexpr MetricDefault kMetrics[] = {
    {"acc", "mean", true},
    {"acc_all", "mean", true},
    {"acc_bytes", "mean", true},
    {"acc_mutual_info", "mean", true},
    {"acc_norm", "mean", true},
    {"bits_per_byte", "bits_per_byte", false},
    {"bleu", "bleu", true},
    {"brier_score", "brier_score", false},
    {"bypass", "bypass", true},
    {"byte_perplexity", "weighted_perplexity", false},
    {"chrf", "chrf", true},
    {"chrf++", "chrf++", true},
    {"exact_match", "mean", true},
    {"f1", "f1", true},
    {"likelihood", "mean", true},
    {"mcc", "matthews_corrcoef", true},
    {"perplexity", "perplexity", false},
    {"ter", "ter", false},
    {"word_perplexity", "weighted_perplexity", false},
};

}  // namespace

const MetricDefault* FindMetricDefault(std::string_view metric) {
  for (const MetricDefault& known : kMetrics) {
    if (metric == known.metric) return &known;
  }
  return nullptr;
}

std::vector<MetricSpec> DefaultMetrics(std::string_view output_type) {
  std::vector<std::string> names = {"exact_match"};
  if (output_type == "loglikelihood") names = {"perplexity", "acc"};
  if (output_type == "multiple_choice") names = {"acc", "acc_norm"};
  if (output_type == "loglikelihood_rolling") {
    names = {"word_perplexity", "byte_perplexity", "bits_per_byte"};
  }
  std::vector<MetricSpec> specs;
  for (const std::string& name : names) {
    const MetricDefault* known = FindMetricDefault(name);
    MetricSpec spec;
    spec.metric = name;
    spec.aggregation = known->aggregation;
    spec.higher_is_better = known->higher_is_better;
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace evald
