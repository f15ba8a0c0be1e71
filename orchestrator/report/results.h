#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "evald/generation.h"
#include "evald/json.h"
#include "evald/score.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"

namespace evald {

/// The input of results.json.
struct ResultsInput {
  std::vector<TaskDefinition> tasks;    ///< in the harness's order; only those with results
  std::vector<GroupDefinition> groups;  ///< parents before children
  std::map<std::string, Json> entries;  ///< task -> AggregateTask's entry
  std::map<std::string, std::string> task_hashes;  ///< task -> return value of WriteSamples
  Json config = Json::object();  ///< the harness's "config": model, model_args, limit, seeds, ...
  std::string model_source;      ///< the engine's name
  std::string model_name;        ///< the checkpoint's name in eval.yaml
  std::string git_hash;          ///< of evald; "" for none
  double date = 0;               ///< seconds since 1970 when the run began
  double seconds = 0;            ///< duration of the run
  /// The harness's "system_instruction", "fewshot_as_multiturn" and "chat_template". Absent ones
  /// become null, and the hashes of the two texts are added.
  Json prompts = Json::object();
  Json evald = Json::object();  ///< evald's own facts: fingerprint, isolation, engine, ...
};

/// results.json in the shape of lm_eval 0.4.13 (EvalAcc._to_eval_results, simple_evaluate,
/// EvaluationTracker): results, groups, group_subtasks, configs, versions, n-shot,
/// higher_is_better, n-samples, config, git_hash, date, task_hashes, model_source, model_name, ...,
/// and "evald". Equal input gives an equal document: only "date" and
/// "total_evaluation_time_seconds" depend on the clock, unless `evald` holds more.
Json BuildResults(const ResultsInput& input);

/// The text of results.json, as Python's json.dumps(indent=2, ensure_ascii=False) writes it.
std::string ResultsText(const Json& results);

/// The source of a document's answers and scores for WriteSamples. Each function is called from
/// several threads. All calls for one filter end before those for the next begin.
struct SampleSource {
  /// Gives the document's answers one after another, in order of (idx, repeat).
  std::function<void(int64_t doc_id, const std::function<void(Generation&&)>& visit)> generations;
  /// Without `filtered` and `detail`. Nothing for a document to leave out (an incomplete run).
  std::function<std::optional<ScoredDocument>(int64_t doc_id)> score;
  /// `filtered` under a filter, as JSON text that lives as long as this.
  std::function<std::string_view(int64_t doc_id, const std::string& filter)> filtered;
  /// How the document's programs ended, or what its judges answered (`detail` of its scores), as
  /// JSON text that lives as long as this; "" if there is nothing. May be null.
  std::function<std::string_view(int64_t doc_id)> detail = nullptr;
  /// About how many bytes a document's answers and scores have.
  std::function<uint64_t(int64_t doc_id)> bytes;
};

/// Writes samples_<task>.jsonl as the harness does: one line per (filter, document), with all
/// documents of the first filter first. Renders with `threads` threads, and holds some documents
/// for each at a time, of at most kSamplesHeldMax bytes. The line of a longer document is written
/// answer by answer. Returns the task's hash (task_hashes). One thing differs from the harness:
/// the probabilities of brier_score are a list, and not numpy's text.
inline constexpr uint64_t kSamplesHeldMax = 8 << 20;
std::string WriteSamples(const std::filesystem::path& path, const TaskDefinition& task,
                         const PreparedTask& prepared, const SampleSource& source, int threads);

/// The results as a table for people: Tasks, Version, Filter, n-shot, Metric, direction, Value,
/// Stderr, and Truncated (answers that ran into max_gen_toks) if there are any; groups above their
/// members, members indented. Columns are aligned by display width.
std::string ResultsTable(const Json& results);

}  // namespace evald
