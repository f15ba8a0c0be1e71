#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald {

/// Reasons for which a filter gave up answers, with the number of answers each: "step limit", "too
/// few matches", "no text". Such an answer is scored as the filter's fallback, although the filter
/// did not come to that result. Empty for nearly every document.
using Fallbacks = std::map<std::string, int64_t>;

/// The result of one filter pipeline for one document's generations.
struct FilterScore {
  std::string filter;  ///< "strict-match", "none"
  Json filtered;       ///< the harness's filtered_resps: one value per request of the document
  Json metrics;        ///< metric name -> a number, or a list if the aggregation takes tuples
  Fallbacks fallbacks;
  /// metric name -> text from which the task's own functions make the value, for values that JSON
  /// cannot hold and that go to an aggregation of the task's own; null for none
  Json python;
  /// For each of the task's own steps of the pipeline, in their order, {"step": its number from 0,
  /// "given": the responses that it got, "lazy": whether as an iterator, "left": what it left};
  /// null for none (docs/task-code.md, "Filters")
  Json own_steps;
};

/// The scores of one document. One line of a scores file (docs/formats.md).
struct ScoredDocument {
  int64_t doc_id = 0;
  std::vector<FilterScore> filters;
  Json detail;  ///< code tasks: how each program ended; else null
};

Json ToJson(const ScoredDocument& score);
/// Throws Error(kInput) "<where>: ...".
ScoredDocument ScoreFromJson(const Json& json, const std::string& where);

}  // namespace evald
