#include "metrics/aggregate.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "base/log.h"
#include "evald/error.h"
#include "metrics/filter_support.h"
#include "metrics/own_aggregations.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/metrics.h"
#include "metrics/scoring/sample_metrics.h"
#include "metrics/scoring/score_number.h"
#include "metrics/scoring/statistics.h"

namespace evald {
namespace {

// The values of one metric under one filter, over the documents that have it.
struct Column {
  std::string metric;
  std::string filter;
  MetricValues values;
};

// Columns in the harness's order: by filter, then by first document.
std::vector<Column> Columns(const TaskDefinition& task, const std::vector<ScoredDocument>& scores) {
  std::vector<Column> columns;
  std::map<std::pair<std::string, std::string>, size_t> index;
  for (const FilterPipeline& pipeline : task.filters) {
    for (const ScoredDocument& document : scores) {
      for (const FilterScore& score : document.filters) {
        if (score.filter != pipeline.name) continue;
        for (const auto& [metric, value] : score.metrics.items()) {
          const auto [found, is_new] = index.try_emplace({metric, score.filter}, columns.size());
          if (is_new) columns.push_back({metric, score.filter, {}});
          columns[found->second].values.push_back(&value);
        }
      }
    }
  }
  return columns;
}

class GroupAggregator {
 public:
  GroupAggregator(const std::vector<GroupDefinition>& groups, const Json& results)
      : results_(results) {
    for (const GroupDefinition& group : groups) groups_[group.name] = &group;
  }

  Json Run(const std::vector<GroupDefinition>& groups) {
    std::set<std::string> children;
    for (const GroupDefinition& group : groups) {
      for (const std::string& child : group.children) {
        if (groups_.count(child) > 0) children.insert(child);
      }
    }
    for (const GroupDefinition& group : groups) {
      if (children.count(group.name) == 0) Visit(group, 0);
    }
    return std::move(out_);
  }

 private:
  static constexpr int kDepthMax = 64;

  void Visit(const GroupDefinition& group, int depth) {
    if (depth > kDepthMax) {
      throw Error(ErrorKind::kInput,
                  fmt::format("group '{}' is nested too deep, or in itself", group.name));
    }
    if (!visited_.insert(group.name).second) return;
    for (const std::string& child : group.children) {
      const auto found = groups_.find(child);
      if (found != groups_.end()) Visit(*found->second, depth + 1);
    }
    out_[group.name] = Entry(group);
  }

  void Leaves(const GroupDefinition& group, int depth, std::vector<std::string>* leaves) const {
    if (depth > kDepthMax) return;  // Visit reports the fault
    for (const std::string& child : group.children) {
      const auto found = groups_.find(child);
      if (found == groups_.end()) {
        leaves->push_back(child);
      } else {
        Leaves(*found->second, depth + 1, leaves);
      }
    }
  }

  // The filters of `metric` over the leaves, sorted: those of a group without filter_list.
  std::set<std::string> DiscoverFilters(const std::string& metric,
                                        const std::vector<std::string>& leaves) const {
    std::set<std::string> filters;
    const std::string prefix = metric + ",";
    for (const std::string& leaf : leaves) {
      if (!results_.contains(leaf)) continue;
      for (const auto& [key, value] : results_[leaf].items()) {
        if (key.starts_with(prefix) && key.find("_stderr") == std::string::npos) {
          filters.insert(key.substr(prefix.size()));
        }
      }
    }
    return filters;
  }

  Json Entry(const GroupDefinition& group) const {
    Json entry = {{"alias", group.alias.empty() ? group.name : group.alias}, {"name", group.name}};
    if (group.metrics.empty()) return entry;
    std::vector<std::string> leaves;
    Leaves(group, 0, &leaves);
    int64_t documents = 0;
    for (const std::string& leaf : leaves) {
      if (results_.contains(leaf)) documents += results_[leaf].value("sample_len", int64_t{0});
    }
    entry["sample_len"] = documents;
    Json counts = Json::object();
    for (const GroupMetric& metric : group.metrics) {
      if (metric.aggregation != "mean") {
        throw Error(
            ErrorKind::kInput,
            fmt::format("group '{}', metric '{}': the aggregation '{}' is not known; a group "
                        "aggregates by 'mean'",
                        group.name, metric.metric, metric.aggregation));
      }
      std::set<std::string> filters(metric.filters.begin(), metric.filters.end());
      std::vector<std::string> ordered = metric.filters;
      if (ordered.empty()) {
        filters = DiscoverFilters(metric.metric, leaves);
        ordered.assign(filters.begin(), filters.end());
      }
      for (const std::string& filter : ordered) AddMetric(metric, filter, leaves, &entry, &counts);
    }
    if (!counts.empty()) entry["sample_count"] = std::move(counts);
    return entry;
  }

  void AddMetric(const GroupMetric& metric, const std::string& filter,
                 const std::vector<std::string>& leaves, Json* entry, Json* counts) const {
    const std::string key = metric.metric + "," + filter;
    const std::string stderr_key = metric.metric + "_stderr," + filter;
    std::vector<double> values, stderrs, sizes;
    bool all_stderrs = true;
    for (const std::string& leaf : leaves) {
      if (!results_.contains(leaf) || !results_[leaf].contains(key)) continue;
      const Json& result = results_[leaf];
      if (!IsScoreNumber(result[key])) {
        log::Warn("'{}' of task '{}' is no number, so its groups have none", key, leaf);
        return;
      }
      values.push_back(NumberFromScore(result[key]));
      sizes.push_back(static_cast<double>(result.value("sample_len", int64_t{0})));
      const auto error = result.find(stderr_key);
      if (error == result.end() || *error == kNoStderr) {
        all_stderrs = false;
      } else {
        stderrs.push_back(NumberFromScore(*error));
      }
    }
    if (values.empty()) return;
    double weighted = 0, weights = 0, documents = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double weight = metric.weight_by_size ? sizes[i] : 1.0;
      weighted += values[i] * weight;
      weights += weight;
      documents += sizes[i];
    }
    (*entry)[key] = NumberToScore(weighted / weights);
    (*counts)[key] = static_cast<int64_t>(documents);
    if (!all_stderrs) {
      (*entry)[stderr_key] = kNoStderr;
    } else {
      (*entry)[stderr_key] = NumberToScore(metric.weight_by_size ? PooledStderr(stderrs, sizes)
                                                                 : UnweightedStderr(stderrs));
    }
  }

  const Json& results_;
  std::map<std::string, const GroupDefinition*> groups_;
  std::set<std::string> visited_;
  Json out_ = Json::object();
};

}  // namespace

int BootstrapIterations(std::string_view metric, int bootstrap_iters) {
  static const std::set<std::string_view> kFewer = {"bleu", "chrf", "chrf++", "ter"};
  return kFewer.contains(metric) ? std::min(bootstrap_iters, 100) : bootstrap_iters;
}

std::string AggregationFor(const TaskDefinition& task, const std::string& metric) {
  if (!task.sample_metrics.empty() && !MetricOfSamples(metric).empty()) return "mean";
  for (const MetricSpec& spec : task.metrics) {
    if (spec.metric == metric) return spec.aggregation;
  }
  for (const MetricSpec& spec : task.metrics) {
    if (GivesValue(spec, metric)) return spec.aggregation;
  }
  return "mean";
}

Json AggregateTask(const TaskDefinition& task, const std::vector<ScoredDocument>& scores,
                   int bootstrap_iters, const std::function<bool()>& stopped,
                   OwnAggregations* own) {
  const std::vector<Column> columns = Columns(task, scores);
  size_t documents = 0;
  Json metrics = Json::object();
  for (const Column& column : columns) {
    documents = std::max(documents, column.values.size());
    try {
      const std::string aggregation = AggregationFor(task, column.metric);
      // The harness has standard errors for its own aggregations alone.
      const Aggregated result =
          own != nullptr && !OwnAggregation(aggregation).empty()
              ? Aggregated{own->Aggregate(column.metric, column.filter), kNoStderr}
              : Aggregate(aggregation, column.values,
                          BootstrapIterations(column.metric, bootstrap_iters), stopped);
      metrics[column.metric + "," + column.filter] = result.value;
      metrics[column.metric + "_stderr," + column.filter] = result.stderr_;
    } catch (Error& e) {
      e.AddContext(fmt::format("task '{}', metric '{}', filter '{}'", task.name, column.metric,
                               column.filter));
      throw;
    }
  }
  Json entry = {{"name", task.name},
                {"alias", task.alias.empty() ? task.name : task.alias},
                {"sample_len", documents}};
  entry.update(metrics);
  return entry;
}

uint64_t DropTexts(const TaskDefinition& task, ScoredDocument* score) {
  uint64_t bytes = 0;
  for (FilterScore& filter : score->filters) {
    for (auto& [metric, value] : filter.metrics.items()) {
      if (!TakesTexts(AggregationFor(task, metric))) continue;
      bytes += BytesOf(value);
      value = nullptr;
    }
  }
  return bytes;
}

double BootstrapDraws(const TaskDefinition& task, int64_t documents, int bootstrap_iters) {
  double iterations = 0;
  for (const MetricSpec& spec : task.metrics) {
    if (IsBootstrapped(spec.aggregation))
      iterations += BootstrapIterations(spec.metric, bootstrap_iters);
  }
  return iterations * static_cast<double>(task.filters.size()) * static_cast<double>(documents);
}

Json AggregateGroups(const std::vector<GroupDefinition>& groups, const Json& results) {
  return GroupAggregator(groups, results).Run(groups);
}

}  // namespace evald
