#include "evald/score.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald {
namespace {

// So that sums over all documents of a task stay far from the end of 64 bits.
constexpr int64_t kUsageMax = int64_t{1} << 40;

struct UsageMember {
  const char* key;
  int64_t JudgeUsage::* value;
};
constexpr UsageMember kUsageMembers[] = {{"requests", &JudgeUsage::requests},
                                         {"tokens_in", &JudgeUsage::tokens_in},
                                         {"tokens_out", &JudgeUsage::tokens_out},
                                         {"cached", &JudgeUsage::cached},
                                         {"cached_tokens_in", &JudgeUsage::cached_tokens_in},
                                         {"cached_tokens_out", &JudgeUsage::cached_tokens_out},
                                         {"unparsed", &JudgeUsage::unparsed}};

}  // namespace

JudgeUsage& JudgeUsage::operator+=(const JudgeUsage& other) {
  for (const UsageMember& member : kUsageMembers) this->*member.value += other.*member.value;
  return *this;
}

Json ToJson(const JudgeUsage& usage) {
  Json json = Json::object();
  for (const UsageMember& member : kUsageMembers) json[member.key] = usage.*member.value;
  return json;
}

JudgeUsage JudgeUsageFromJson(const Json& json, const std::string& where) {
  JudgeUsage usage;
  if (!json.is_object())
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected an object", where, json.type_name()));
  for (const UsageMember& member : kUsageMembers) {
    const auto value = Field<int64_t>(json, member.key, where);
    if (value < 0 || value > kUsageMax)
      ThrowField(json, member.key, "a number from 0 to 2^40", where);
    usage.*member.value = value;
  }
  return usage;
}

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
  if (score.judge) json["judge"] = ToJson(*score.judge);
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
  const Json judge = FieldOr<Json>(json, "judge", Json(), where);
  if (!judge.is_null()) score.judge = JudgeUsageFromJson(judge, where + ": judge");
  return score;
}

}  // namespace evald
