#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/verdict/evidence.h"
#include "orchestrator/verdict/result_set.h"

namespace evald {

/// Which value of the results.
struct MetricKey {
  std::string task;  ///< or group
  std::string metric;
  std::string filter;
  std::string Text() const;  ///< "math exact_match (strict-match)"
};

/// One side's values of a metric over the documents it was scored on, and how they are aggregated.
struct MetricValuesOf {
  struct Leaf {
    std::string task;
    const std::map<int64_t, SampleScore>* samples = nullptr;  ///< owned by the ResultSet
    std::vector<Json> values;                                 ///< in the order of doc_id
  };
  std::vector<Leaf> leaves;
  std::string aggregation;    ///< metrics/aggregations.h
  bool weigh_by_size = true;  ///< a group: all documents alike, else the mean of its tasks
  double value = 0;           ///< as results.json has it
};

/// Reads a metric's samples and finds the aggregation that gives the value in the results. Throws
/// Error(kInput) when none does, or samples are missing.
MetricValuesOf ReadMetric(ResultSet* set, const MetricKey& key);

/// A metric of two sides, document by document.
struct Comparison {
  MetricKey key;
  double candidate = 0, baseline = 0;  ///< the values in their results
  bool higher_is_better = true;
  int64_t pairs = 0;                              ///< documents that both have
  int64_t only_candidate = 0, only_baseline = 0;  ///< documents that one has
  int64_t other_prompts = 0;                      ///< pairs whose prompts differ
  bool right_or_wrong = false;                    ///< `lost` and `gained` have a meaning
  int64_t lost = 0, gained = 0;                   ///< right for the baseline, the candidate, alone
  bool unit_scale = false;                        ///< every value lies in 0..1
  std::shared_ptr<const Evidence> evidence;       ///< of the drop; null without
  std::string why_none;                           ///< why there is no evidence
};

/// Pairs documents by task and doc_id. Throws Error(kInput) when a document is another one (its
/// doc_hash differs), a side lacks the metric, or its samples do not give its value.
Comparison Compare(ResultSet* candidate, ResultSet* baseline, const MetricKey& key,
                   bool higher_is_better);

/// One entry of the comparison table: difference (candidate minus baseline), two-sided 95 %
/// interval, p.
Json ToJson(const Comparison& comparison);

/// The two-sided p-value of no difference, from evidence that is not null: exact McNemar for right
/// or wrong, else the bootstrap's.
double TwoSidedP(const Comparison& comparison);

/// Evidence on how far one side's value falls short of `target`; null with `why` set to the reason.
std::shared_ptr<const Evidence> AgainstTarget(const MetricValuesOf& values, double target,
                                              bool lower_is_better, std::string* why);

/// What the results say of a metric's direction, if they do.
std::optional<bool> HigherIsBetter(const ResultSet& set, const MetricKey& key);

/// Documents below which a bootstrap decides nothing.
inline constexpr int64_t kBootstrapDocumentsMin = 30;

}  // namespace evald
