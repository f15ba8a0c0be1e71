#include "metrics/sample_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/jsonl.h"
#include "base/names.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/score_number.h"

namespace evald {
namespace {

// Filters of several responses would get one.
void RequireFiltersOfOne(const TaskDefinition& task) {
  for (const FilterPipeline& pipeline : task.filters) {
    for (const FilterStep& step : pipeline.steps) {
      const bool several = step.function == "majority_vote" ||
                           (step.function == "take_first_k" && step.kwargs.value("k", Json()) != 1);
      if (const std::string own = OwnFilterFunction(step); !own.empty()) {
        throw Error(ErrorKind::kInput,
                    fmt::format("sample_metrics: the filter pipeline '{}' has the function '{}' of "
                                "the task's own, which may look at several samples at once",
                                pipeline.name, own),
                    "leave out sample_metrics, or do in process_results what the filter does");
      }
      if (!several) continue;
      throw Error(ErrorKind::kInput,
                  fmt::format("sample_metrics: the filter pipeline '{}' has {}, which looks at "
                              "several samples at once",
                              pipeline.name, step.function),
                  "end the pipeline with take_first: maj@K takes the majority vote's place");
    }
  }
}

SampleValues ValuesOf(const std::vector<FilterScore>& samples, const std::string& metric) {
  SampleValues values;
  for (const FilterScore& sample : samples) {
    const auto found = sample.metrics.find(metric);
    if (found == sample.metrics.end() || !IsScoreNumber(*found)) {
      const std::string text = found == sample.metrics.end() ? "nothing" : ToLine(*found);
      constexpr size_t kBytesMax = 100;
      throw Error(ErrorKind::kInput,
                  fmt::format("sample_metrics: '{}' of a sample is {}, expected a number", metric,
                              Shortened(text, kBytesMax)),
                  "name the metrics that are numbers, such as exact_match:avg@8");
    }
    values.values.push_back(NumberFromScore(*found));
    values.answers.push_back(sample.filtered);
  }
  return values;
}

}  // namespace

SampleScores::SampleScores(const TaskDefinition& task, const std::vector<std::string>& given)
    : samples_(task.repeats) {
  if (task.sample_metrics.empty()) return;
  RequireFiltersOfOne(task);
  for (const std::string& entry : task.sample_metrics) {
    const auto metric = ParseSampleMetric(entry);
    if (!metric || metric->k > samples_) {
      throw Error(ErrorKind::kInput,
                  fmt::format("sample_metrics: found '{}' with {} samples", entry, samples_));
    }
    if (!metric->of.empty() && std::count(given.begin(), given.end(), metric->of) == 0) {
      throw Error(ErrorKind::kInput,
                  fmt::format("sample_metrics: '{}': the task has no metric '{}'{}", entry,
                              metric->of, Suggestion(metric->of, given)),
                  "it has " + Join(given, ", "));
    }
    for (const std::string& of : given) {
      if (!metric->of.empty() && metric->of != of) continue;
      const std::string name = NameOf(*metric, of);
      if (std::count(names_.begin(), names_.end(), name) > 0) continue;
      names_.push_back(name);
      metrics_.push_back({*metric, of, name});
    }
  }
}

FilterScore SampleScores::Merged(std::vector<FilterScore> samples) const {
  Json added = Json::object();
  std::string last;
  SampleValues values;
  for (const Wanted& wanted : metrics_) {
    if (wanted.of != last) values = ValuesOf(samples, wanted.of);
    last = wanted.of;
    added[wanted.name] = NumberToScore(ValueOf(wanted.metric, values));
  }
  FilterScore merged = std::move(samples[0]);
  for (size_t i = 1; i < samples.size(); ++i) {
    for (const auto& [why, count] : samples[i].fallbacks) merged.fallbacks[why] += count;
  }
  merged.metrics.update(added);
  return merged;
}

}  // namespace evald
