#pragma once

#include <cstdint>
#include <map>
#include <optional>
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

/// What the answers of judges to one document, or to all documents of a task, took. Tokens are
/// those that the judge's server counted.
struct JudgeUsage {
  int64_t requests = 0;  ///< answers that the run asked for
  int64_t tokens_in = 0, tokens_out = 0;
  int64_t cached = 0;  ///< answers that were kept from another run, task or document
  int64_t cached_tokens_in = 0, cached_tokens_out = 0;
  int64_t unparsed = 0;  ///< verdicts that are only the task's `unparsed`

  bool operator==(const JudgeUsage&) const = default;
  JudgeUsage& operator+=(const JudgeUsage& other);
};

Json ToJson(const JudgeUsage& usage);
/// Throws Error(kInput) "<where>: ...".
JudgeUsage JudgeUsageFromJson(const Json& json, const std::string& where);

/// The scores of one document. One line of a scores file (docs/formats.md).
struct ScoredDocument {
  int64_t doc_id = 0;
  std::vector<FilterScore> filters;
  /// By filter: code tasks: how each program ended; judges: their answers; else null
  Json detail;
  std::optional<JudgeUsage> judge;  ///< of a task with a judge
};

Json ToJson(const ScoredDocument& score);
/// Throws Error(kInput) "<where>: ...".
ScoredDocument ScoreFromJson(const Json& json, const std::string& where);

}  // namespace evald
