#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/verdict/evidence.h"
#include "orchestrator/verdict/result_set.h"

namespace evald {

/// A value of the results.
struct MetricKey {
  std::string task;  ///< a task or group
  std::string metric;
  std::string filter;
  std::string Text() const;  ///< "math exact_match (strict-match)"
};

/// One side's values of a metric over the scored documents, and their aggregation.
struct MetricValuesOf {
  struct Leaf {
    std::string task;
    const std::map<int64_t, SampleScore>* samples = nullptr;  ///< owned by the ResultSet
    std::vector<Json> values;                                 ///< in the order of doc_id
  };
  std::vector<Leaf> leaves;
  std::string aggregation;  ///< metrics/scoring/aggregations.h
  /// For a group: all documents count alike; otherwise the mean of its tasks
  bool weigh_by_size = true;
  double value = 0;  ///< the value in results.json
};

/// The value in the results, which may be NaN or infinite. Throws Error(kInput) if there is none,
/// or if the value is no number.
double ReadValue(const ResultSet& set, const MetricKey& key);

/// Reads a metric's samples and finds the aggregation that gives the value in the results. Throws
/// Error(kInput) if none does, if samples are missing, or if the value is NaN or infinite.
MetricValuesOf ReadMetric(ResultSet* set, const MetricKey& key);

/// A metric of two sides, document by document.
struct Comparison {
  MetricKey key;
  double candidate = 0, baseline = 0;  ///< the values in their results
  bool higher_is_better = true;
  int64_t pairs = 0;                              ///< documents that both have
  int64_t only_candidate = 0, only_baseline = 0;  ///< documents that one has
  int64_t other_prompts = 0;                      ///< pairs whose prompts differ
  bool right_or_wrong = false;                    ///< `lost` and `gained` are meaningful
  /// Right for the baseline alone, and for the candidate alone
  int64_t lost = 0, gained = 0;
  bool unit_scale = false;                   ///< every value lies in 0..1
  std::shared_ptr<const Evidence> evidence;  ///< about the drop; null if there is none
  std::string why_none;                      ///< why there is no evidence
};

/// Pairs documents by task and doc_id. Throws Error(kInput) if two documents differ (by doc_hash),
/// if a side lacks the metric, or if its samples do not give its value.
Comparison Compare(ResultSet* candidate, ResultSet* baseline, const MetricKey& key,
                   bool higher_is_better);

/// The tasks of `task`, itself or a group's, whose versions differ between two sides that both name
/// one: "gsm8k (3.0 against 2.0)". Another version of a task has other prompts or other scoring.
std::vector<std::string> OtherVersions(const ResultSet& candidate, const ResultSet& baseline,
                                       const std::string& task);

/// Throws Error(kInput) if the versions of the metric's tasks differ.
void CheckVersions(const ResultSet& candidate, const ResultSet& baseline, const MetricKey& key);

/// One entry of the comparison table: difference (candidate minus baseline), two-sided 95 %
/// interval, p.
Json ToJson(const Comparison& comparison);

/// The two-sided p-value of no difference, from evidence that is not null: exact McNemar for
/// right-or-wrong metrics, otherwise the bootstrap's.
double TwoSidedP(const Comparison& comparison);

/// Evidence on how far one side's value falls short of `target`. Null with the reason in `why`.
std::shared_ptr<const Evidence> AgainstTarget(const MetricValuesOf& values, double target,
                                              bool lower_is_better, std::string* why);

/// A metric's direction, if the results give it.
std::optional<bool> HigherIsBetter(const ResultSet& set, const MetricKey& key);

/// With fewer documents a bootstrap decides nothing.
inline constexpr int64_t kBootstrapDocumentsMin = 30;

}  // namespace evald
