#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"

// Metrics of several samples of one document (docs/metrics.md, "Several samples").
namespace evald {

/// One entry of a task's sample_metrics: `avg@8`, `pass@4`, `pass^4` or `maj@8`, or the same of one
/// metric of the task, `exact_match:pass@4`.
struct SampleMetric {
  enum class Kind {
    kAverage,   ///< avg@k: the mean of the first k samples
    kPassAny,   ///< pass@k: the chance that one of k samples is right
    kPassAll,   ///< pass^k: the chance that all of k samples are right
    kMajority,  ///< maj@k: the value of the most frequent answer among the first k samples
  };
  Kind kind = Kind::kAverage;
  int64_t k = 1;
  std::string of;  ///< the metric of which it is; "": of each metric of the task
};

/// Reads an entry; nothing for any other text.
std::optional<SampleMetric> ParseSampleMetric(std::string_view text);

/// How many samples the entries need; 1 for none. Texts that are no entries need none.
int64_t SamplesNeeded(const std::vector<std::string>& entries);

/// Its name in results, for a metric of the task: "exact_match_pass@4".
std::string NameOf(const SampleMetric& metric, std::string_view of);

/// The metric of the task that a result of this name was made from: "exact_match" for
/// "exact_match_pass@4"; "" for the name of any other result.
std::string_view MetricOfSamples(std::string_view name);

/// One document's samples under one filter, in order of their repeat.
struct SampleValues {
  std::vector<double> values;  ///< of a metric
  std::vector<Json> answers;   ///< what the filter leaves of each sample
};

/// The value for one document of at least `k` samples. pass@k and pass^k are means over all sets of
/// k samples (PassAtK; Yao et al. 2024, "τ-bench", section 4). The most frequent answer is the one
/// of lm_eval's majority_vote: of several, the first. Throws Error(kInput) if pass@k or pass^k is
/// asked of values other than 0 and 1.
double ValueOf(const SampleMetric& metric, const SampleValues& samples);

}  // namespace evald
