#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/generation.h"
#include "evald/task.h"
#include "prepared/prepared_task.h"

namespace evald::test {

/// A generate_until task like gsm8k: two filters, exact_match.
inline TaskDefinition AnswerTask() {
  TaskDefinition task;
  task.name = "sums";
  task.alias = "sums";
  task.version = 1.0;
  task.output_type = "generate_until";
  task.metrics = {{"exact_match",
                   "",
                   "mean",
                   true,
                   {{"ignore_case", true}, {"regexes_to_ignore", {",", "(?s).*#### "}}}}};
  task.filters = {
      {"strict",
       {{"regex", {{"regex_pattern", "#### (\\-?[0-9\\.\\,]+)"}}}, {"take_first", Json::object()}}},
      {"flexible",
       {{"regex", {{"group_select", -1}, {"regex_pattern", "(-?[$0-9.,]{2,})|(-?[0-9]+)"}}},
        {"take_first", Json::object()}}}};
  task.config = {{"task", "sums"}, {"generation_kwargs", {{"until", {"\n"}}}}};
  task.sources = Json::object();
  return task;
}

/// A code task like HumanEval.
inline TaskDefinition CodeTask() {
  TaskDefinition task = AnswerTask();
  task.name = task.alias = "code";
  task.unsafe_code = true;
  task.metrics = {{"pass_at_k", "humaneval/utils.pass_at_k", "mean", true, {{"k", {1, 2}}}}};
  task.filters = {{"create_test",
                   {{"custom", {{"filter_fn", "!function humaneval/utils.build_predictions"}}}}}};
  return task;
}

/// Documents "#### 0", "#### 1", ... with one request each. `code` is the content of code.json.
inline void PrepareAnswers(const TaskDefinition& task, int count,
                           const std::filesystem::path& folder, const Json& code = nullptr) {
  PreparedTaskWriter writer(folder, ToJson(task));
  if (!code.is_null()) writer.SetCode(code);
  for (int i = 0; i < count; ++i) {
    PreparedDocument document;
    document.doc_id = i;
    document.doc = {{"task_id", "Sums/" + std::to_string(i)}, {"prompt", "p"}, {"n", i}};
    document.target = "#### " + std::to_string(i);
    Request request;
    request.doc_id = i;
    request.context = "What is " + std::to_string(i) + "?";
    writer.Add(document, {request});
  }
  writer.Finish();
}

inline Generation Answer(int64_t doc_id, std::string text, int repeat = 0) {
  Generation generation;
  generation.doc_id = doc_id;
  generation.repeat = repeat;
  generation.text = std::move(text);
  return generation;
}

inline void WriteText(const std::filesystem::path& path, const std::string& text) {
  WriteFileAtomic(path, text);
}

inline std::string Line(const Generation& generation) { return ToLine(ToJson(generation)) + "\n"; }

}  // namespace evald::test
