#include "orchestrator/verdict/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/sample_metrics.h"
#include "metrics/scoring/score_number.h"

namespace evald {
namespace {

// The values of one stratum on both sides, in the order of doc_id. `other` is empty if there is
// only one side.
struct Stratum {
  std::vector<Json> mine, other;
};

constexpr size_t kValueBytesMax = 100;  // of a value in an error

double Numeric(const Json& value) {
  return value.is_array() || value.is_null() ? std::numeric_limits<double>::quiet_NaN()
                                             : NumberFromScore(value);
}

// The aggregate over the drawn positions; NaN if it is not defined on them.
class Aggregator {
 public:
  Aggregator(std::vector<Json> values, std::string aggregation)
      : values_(std::move(values)), aggregation_(std::move(aggregation)) {
    if (aggregation_ != "mean") return;
    for (const Json& value : values_) numbers_.push_back(Numeric(value));
  }

  double operator()(const std::vector<uint32_t>& positions) const {
    if (aggregation_ == "mean") {
      double sum = 0;
      for (const uint32_t i : positions) sum += numbers_[i];
      return sum / static_cast<double>(positions.size());
    }
    MetricValues drawn;
    drawn.reserve(positions.size());
    for (const uint32_t i : positions) drawn.push_back(&values_[i]);
    try {
      const Json value = Aggregate(aggregation_, drawn, 0).value;
      return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    } catch (const Error&) {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }

 private:
  std::vector<Json> values_;
  std::string aggregation_;
  std::vector<double> numbers_;
};

double AggregateOf(const std::vector<Json>& values, const std::string& aggregation) {
  std::vector<uint32_t> all(values.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint32_t>(i);
  return values.empty() ? std::numeric_limits<double>::quiet_NaN()
                        : Aggregator(values, aggregation)(all);
}

bool Near(double a, double b) {
  return std::abs(a - b) <= 1e-9 * std::max({1.0, std::abs(a), std::abs(b)});
}

// The aggregations that the task's configuration names for the metric.
std::vector<std::string> NamedAggregations(const ResultSet& set, const std::string& task,
                                           const std::string& metric) {
  std::vector<std::string> named;
  const Json& config = set.Member("configs", task);
  if (!config.is_object()) return named;
  for (const Json& entry : config.value("metric_list", Json::array())) {
    if (!entry.is_object() || entry.value("metric", Json()) != Json(metric)) continue;
    const Json aggregation = entry.value("aggregation", Json());
    if (aggregation.is_string()) named.push_back(aggregation.get<std::string>());
  }
  return named;
}

bool IsOwn(const std::string& aggregation) { return !OwnAggregation(aggregation).empty(); }

constexpr const char* kOwnWhyNone =
    "the metric's aggregation is a function of the task's own, which is not drawn anew";

// Aggregations that may have made the metric: the one that its task names, otherwise those that its
// name implies.
std::vector<std::string> PossibleAggregations(const ResultSet& set, const std::string& task,
                                              const std::string& metric) {
  std::vector<std::string> possible;
  const std::vector<std::string>& known = AggregationNames();
  const auto add = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) != known.end()) possible.push_back(name);
  };
  for (const std::string& name : NamedAggregations(set, task, metric)) add(name);
  const Metric* const served = FindMetric(metric);
  add(served == nullptr ? metric : served->aggregation);
  add("mean");
  return possible;
}

const Json& ValueOf(const SampleScore& score, const MetricKey& key, const std::string& task,
                    int64_t doc_id) {
  const auto value = score.metrics.find(key.metric);
  if (value == score.metrics.end()) {
    throw Error(ErrorKind::kInput, fmt::format("samples of {}: document {} lacks the metric '{}'",
                                               task, doc_id, key.metric));
  }
  return *value;
}

std::vector<Json> AllValues(const MetricValuesOf::Leaf& leaf, const MetricKey& key) {
  std::vector<Json> values;
  for (const auto& [doc_id, score] : *leaf.samples)
    values.push_back(ValueOf(score, key, leaf.task, doc_id));
  return values;
}

bool InUnit(const std::vector<Json>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const Json& v) { return Numeric(v) >= 0 && Numeric(v) <= 1; });
}

bool ZeroOrOne(const std::vector<Json>& values) {
  return std::all_of(values.begin(), values.end(),
                     [](const Json& v) { return Numeric(v) == 0 || Numeric(v) == 1; });
}

// Bootstraps one side's value, minus the other's if there is one, and draws in each stratum apart.
// `sign` turns the difference into a drop. `offset` is the value that a single side is compared
// with.
std::shared_ptr<const Evidence> BootstrapOf(const std::vector<Stratum>& strata,
                                            const std::string& aggregation, double sign,
                                            double offset, std::string* why) {
  BootstrapInput input;
  size_t documents = 0;
  std::vector<std::pair<Aggregator, std::optional<Aggregator>>> sides;
  for (const Stratum& stratum : strata) {
    input.sizes.push_back(stratum.mine.size());
    documents += stratum.mine.size();
    std::optional<Aggregator> other;
    if (!stratum.other.empty()) other.emplace(stratum.other, aggregation);
    sides.emplace_back(Aggregator(stratum.mine, aggregation), std::move(other));
  }
  if (documents < static_cast<size_t>(kBootstrapDocumentsMin)) {
    *why = fmt::format("a bootstrap needs at least {} documents, there are {}",
                       kBootstrapDocumentsMin, documents);
    return nullptr;
  }
  input.drop = [&](const Resample& resample) {
    double total = 0;
    for (size_t s = 0; s < sides.size(); ++s) {
      const double other = sides[s].second ? (*sides[s].second)(resample[s]) : offset;
      total += sign * (other - sides[s].first(resample[s]));
    }
    return total / static_cast<double>(sides.size());
  };
  std::shared_ptr<const Evidence> evidence = Bootstrap(input);
  if (!evidence) *why = "the metric is not defined on samples of these documents";
  return evidence;
}

// Puts the documents of all leaves into one stratum, unless the group's value is the mean of its
// tasks.
std::vector<Stratum> Merged(std::vector<Stratum> strata, bool weigh_by_size) {
  if (!weigh_by_size || strata.size() < 2) return strata;
  Stratum all;
  for (const Stratum& stratum : strata) {
    all.mine.insert(all.mine.end(), stratum.mine.begin(), stratum.mine.end());
    all.other.insert(all.other.end(), stratum.other.begin(), stratum.other.end());
  }
  return {all};
}

class Pairing {
 public:
  Pairing(const ResultSet& candidate, const ResultSet& baseline, Comparison* result)
      : candidate_(candidate), baseline_(baseline), result_(result) {}

  Stratum Pair(const MetricValuesOf::Leaf& mine, const MetricValuesOf::Leaf& other) {
    Stratum stratum;
    for (const auto& [doc_id, score] : *mine.samples) {
      const auto match = other.samples->find(doc_id);
      if (match == other.samples->end()) {
        ++result_->only_candidate;
        continue;
      }
      CheckSame(mine.task, doc_id, score, match->second);
      stratum.mine.push_back(ValueOf(score, result_->key, mine.task, doc_id));
      stratum.other.push_back(ValueOf(match->second, result_->key, mine.task, doc_id));
      result_->other_prompts += score.prompt_hash != match->second.prompt_hash;
    }
    const int64_t shared = static_cast<int64_t>(stratum.mine.size());
    result_->pairs += shared;
    result_->only_baseline += static_cast<int64_t>(other.samples->size()) - shared;
    return stratum;
  }

 private:
  void CheckSame(const std::string& task, int64_t doc_id, const SampleScore& mine,
                 const SampleScore& other) const {
    const bool known = !mine.doc_hash.empty() && !other.doc_hash.empty();
    if (known && mine.doc_hash == other.doc_hash) return;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: document {} {} in {} and {}", task, doc_id,
                            known ? "is not the same" : "cannot be compared (no doc_hash)",
                            candidate_.path().string(), baseline_.path().string()),
                known ? "evaluate both on the same data"
                      : "evaluate again with a version that writes doc_hash");
  }

  const ResultSet& candidate_;
  const ResultSet& baseline_;
  Comparison* result_;
};

std::shared_ptr<const Evidence> EvidenceOf(const std::vector<Stratum>& strata,
                                           const std::string& aggregation, Comparison* result) {
  const Stratum& only = strata[0];
  result->unit_scale = aggregation == "mean";
  result->right_or_wrong = aggregation == "mean";
  for (const Stratum& stratum : strata) {
    result->unit_scale = result->unit_scale && InUnit(stratum.mine) && InUnit(stratum.other);
    result->right_or_wrong =
        result->right_or_wrong && ZeroOrOne(stratum.mine) && ZeroOrOne(stratum.other);
    for (size_t i = 0; result->right_or_wrong && i < stratum.mine.size(); ++i) {
      const bool mine = (Numeric(stratum.mine[i]) == 1) == result->higher_is_better;
      const bool other = (Numeric(stratum.other[i]) == 1) == result->higher_is_better;
      result->lost += other && !mine;
      result->gained += mine && !other;
    }
  }
  if (!result->right_or_wrong) result->lost = result->gained = 0;
  if (result->right_or_wrong && strata.size() == 1) {
    return PairedProportions(
        {static_cast<int64_t>(only.mine.size()), result->lost, result->gained});
  }
  return BootstrapOf(strata, aggregation, result->higher_is_better ? 1 : -1, 0, &result->why_none);
}

// 3.0, Yaml
std::string TextOfVersion(const Json& version) {
  return Shortened(version.is_string() ? version.get<std::string>() : version.dump(),
                   kValueBytesMax);
}

}  // namespace

std::string MetricKey::Text() const {
  return fmt::format("{} {}{}", task, metric,
                     filter.empty() || filter == "none" ? "" : " (" + filter + ")");
}

double ReadValue(const ResultSet& set, const MetricKey& key) {
  const std::optional<double> value = set.Value(key.task, key.metric, key.filter);
  if (value) return *value;
  const Json& entry = set.Entry(key.task);
  const auto found = entry.find(key.metric + "," + key.filter);
  const std::string text = entry.is_null() || found == entry.end()
                               ? ""
                               : ", but " + Shortened(found->dump(), kValueBytesMax);
  throw Error(ErrorKind::kInput, fmt::format("{}: the value of {} is no number{}",
                                             set.path().string(), key.Text(), text));
}

MetricValuesOf ReadMetric(ResultSet* set, const MetricKey& key) {
  MetricValuesOf found;
  found.value = ReadValue(*set, key);
  if (!std::isfinite(found.value)) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {} is {}, of which no samples can be drawn",
                                               set->path().string(), key.Text(), found.value));
  }
  std::vector<Json> pooled;
  for (const std::string& task : set->Leaves(key.task)) {
    const TaskSamples& samples = set->Samples(task);
    const auto filter = samples.find(key.filter);
    if (filter == samples.end()) continue;  // a task of the group without the metric
    found.leaves.push_back({task, &filter->second, {}});
    std::vector<Json>& values = found.leaves.back().values;
    values = AllValues(found.leaves.back(), key);
    pooled.insert(pooled.end(), values.begin(), values.end());
  }
  if (pooled.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: no samples of {}", set->path().string(), key.Text()));
  for (const std::string& named : NamedAggregations(*set, found.leaves[0].task, key.metric)) {
    found.aggregation = named;
    if (IsOwn(named)) return found;
  }
  for (const std::string& aggregation :
       PossibleAggregations(*set, found.leaves[0].task, key.metric)) {
    found.aggregation = aggregation;
    if (Near(AggregateOf(pooled, aggregation), found.value)) return found;
    double mean = 0;
    for (const auto& leaf : found.leaves) {
      mean += AggregateOf(leaf.values, aggregation) / static_cast<double>(found.leaves.size());
    }
    found.weigh_by_size = false;
    if (Near(mean, found.value)) return found;
    found.weigh_by_size = true;
  }
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: {} is {} in the results, but its samples give {}", set->path().string(),
                  key.Text(), found.value, AggregateOf(pooled, "mean")),
      "results and samples must be of one run, and the metric one that evald aggregates");
}

namespace {

// The model that gave a task's metric as its judge; "" if none did, or if the results do not say.
std::string JudgeBehind(const ResultSet& set, const std::string& task, const std::string& metric) {
  const Json& config = set.Member("configs", task);
  const Json metrics = config.is_object() ? config.value("metric_list", Json()) : Json();
  if (!metrics.is_array()) return "";
  const bool judged = std::any_of(metrics.begin(), metrics.end(), [&](const Json& entry) {
    if (!entry.is_object() || entry.value("metric", Json()) != kJudgeName) return false;
    const Json name = entry.value("name", Json(kJudgeName));
    if (!name.is_string()) return false;
    const auto& called = name.get_ref<const std::string&>();
    return metric == called || MetricOfSamples(metric) == called;
  });
  if (!judged) return "";
  const Json facts = set.results().value("evald", Json());
  const Json judges = facts.is_object() ? facts.value("judge", Json()) : Json();
  const Json judge = judges.is_object() ? judges.value(task, Json()) : Json();
  const Json model = judge.is_object() ? judge.value("model", Json()) : Json();
  return model.is_string() ? model.get<std::string>() : "";
}

}  // namespace

std::vector<std::string> OtherVersions(const ResultSet& candidate, const ResultSet& baseline,
                                       const std::string& task) {
  std::vector<std::string> others;
  for (const std::string& leaf : candidate.Leaves(task)) {
    const Json& mine = candidate.Member("versions", leaf);
    const Json& theirs = baseline.Member("versions", leaf);
    if (mine.is_null() || theirs.is_null() || mine == theirs) continue;
    others.push_back(
        fmt::format("{} ({} against {})", leaf, TextOfVersion(mine), TextOfVersion(theirs)));
  }
  return others;
}

void CheckVersions(const ResultSet& candidate, const ResultSet& baseline, const MetricKey& key) {
  const std::vector<std::string> others = OtherVersions(candidate, baseline, key.task);
  if (others.empty()) return;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: the versions of {} differ between the two sides: {}{}", key.Text(),
                          others.size() == 1 ? "a task" : fmt::format("{} tasks", others.size()),
                          others.front(), others.size() > 1 ? ", ..." : ""),
              "evaluate both with the same task files, or compare them all the same with "
              "--other-versions or gates.other_versions: true");
}

Comparison Compare(ResultSet* candidate, ResultSet* baseline, const MetricKey& key,
                   bool higher_is_better) {
  const MetricValuesOf mine = ReadMetric(candidate, key);
  const MetricValuesOf other = ReadMetric(baseline, key);
  Comparison result;
  result.key = key;
  result.candidate = mine.value;
  result.baseline = other.value;
  result.higher_is_better = higher_is_better;
  Pairing pairing(*candidate, *baseline, &result);
  std::vector<Stratum> strata;
  for (const auto& leaf : mine.leaves) {
    const auto match =
        std::find_if(other.leaves.begin(), other.leaves.end(),
                     [&](const auto& candidate_leaf) { return candidate_leaf.task == leaf.task; });
    if (match == other.leaves.end()) {
      result.only_candidate += static_cast<int64_t>(leaf.samples->size());
      continue;
    }
    const std::string judge = JudgeBehind(*candidate, leaf.task, key.metric),
                      before = JudgeBehind(*baseline, leaf.task, key.metric);
    if (judge != before)
      result.why_none = fmt::format("the judges differ: '{}' and '{}'", judge, before);
    Stratum stratum = pairing.Pair(leaf, *match);
    if (!stratum.mine.empty()) strata.push_back(std::move(stratum));
  }
  for (const auto& leaf : other.leaves) {
    const bool known =
        std::any_of(mine.leaves.begin(), mine.leaves.end(),
                    [&](const auto& candidate_leaf) { return candidate_leaf.task == leaf.task; });
    if (!known) result.only_baseline += static_cast<int64_t>(leaf.samples->size());
  }
  if (strata.empty()) {
    result.why_none = "they have no document in common";
    return result;
  }
  if (!result.why_none.empty()) return result;
  if (IsOwn(mine.aggregation)) {
    result.why_none = kOwnWhyNone;
    return result;
  }
  result.evidence =
      EvidenceOf(Merged(std::move(strata), mine.weigh_by_size), mine.aggregation, &result);
  return result;
}

std::shared_ptr<const Evidence> AgainstTarget(const MetricValuesOf& values, double target,
                                              bool lower_is_better, std::string* why) {
  if (IsOwn(values.aggregation)) {
    *why = kOwnWhyNone;
    return nullptr;
  }
  std::vector<Stratum> strata;
  bool right_or_wrong = values.aggregation == "mean";
  for (const auto& leaf : values.leaves) {
    right_or_wrong = right_or_wrong && ZeroOrOne(leaf.values);
    strata.push_back({leaf.values, {}});
  }
  strata = Merged(std::move(strata), values.weigh_by_size);
  if (!right_or_wrong || strata.size() > 1) {
    return BootstrapOf(strata, values.aggregation, lower_is_better ? -1 : 1, target, why);
  }
  int64_t right = 0;
  for (const Json& value : strata[0].mine) right += Numeric(value) == 1;
  return ShortOfTarget(right, static_cast<int64_t>(strata[0].mine.size()), target, lower_is_better);
}

std::optional<bool> HigherIsBetter(const ResultSet& set, const MetricKey& key) {
  const Json& directions = set.Member("higher_is_better", key.task);
  if (!directions.is_object()) return std::nullopt;
  const auto direction = directions.find(key.metric);
  if (direction == directions.end() || !direction->is_boolean()) return std::nullopt;
  return direction->get<bool>();
}

}  // namespace evald
