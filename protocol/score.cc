#include "evald/score.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"

namespace evald {

Json ToJson(const ScoredDocument& score) {
  Json filters = Json::array();
  for (const FilterScore& filter : score.filters) {
    filters.push_back(
        {{"filter", filter.filter}, {"filtered", filter.filtered}, {"metrics", filter.metrics}});
    if (!filter.fallbacks.empty()) filters.back()["fallbacks"] = filter.fallbacks;
    if (!filter.python.is_null()) filters.back()["python"] = filter.python;
    if (!filter.own_steps.is_null()) filters.back()["own_steps"] = filter.own_steps;
  }
  Json json = Json::object();
  json["doc_id"] = score.doc_id;
  json["filters"] = std::move(filters);
  if (!score.detail.is_null()) json["detail"] = score.detail;
  return json;
}

ScoredDocument ScoreFromJson(const Json& json, const std::string& where) {
  ScoredDocument score;
  score.doc_id = Field<int64_t>(json, "doc_id", where);
  for (const Json& item : Field<std::vector<Json>>(json, "filters", where)) {
    const std::string place = fmt::format("{}: filters[{}]", where, score.filters.size());
    FilterScore filter;
    filter.filter = Field<std::string>(item, "filter", place);
    filter.filtered = Field<Json>(item, "filtered", place);
    filter.metrics = Field<Json>(item, "metrics", place);
    if (!filter.metrics.is_object()) ThrowField(item, "metrics", "an object", place);
    const Json fallbacks = FieldOr<Json>(item, "fallbacks", Json::object(), place);
    if (!fallbacks.is_object()) ThrowField(item, "fallbacks", "an object", place);
    for (const auto& [why, count] : fallbacks.items()) {
      filter.fallbacks[why] = Field<int64_t>(fallbacks, why.c_str(), place + ".fallbacks");
    }
    filter.python = FieldOr<Json>(item, "python", Json(), place);
    const bool texts =
        filter.python.is_null() || (filter.python.is_object() &&
                                    std::all_of(filter.python.begin(), filter.python.end(),
                                                [](const Json& text) { return text.is_string(); }));
    if (!texts) ThrowField(item, "python", "texts by metric", place);
    filter.own_steps = FieldOr<Json>(item, "own_steps", Json(), place);
    if (!filter.own_steps.is_null() && !filter.own_steps.is_array())
      ThrowField(item, "own_steps", "a list", place);
    score.filters.push_back(std::move(filter));
  }
  score.detail = FieldOr<Json>(json, "detail", Json(), where);
  return score;
}

}  // namespace evald
