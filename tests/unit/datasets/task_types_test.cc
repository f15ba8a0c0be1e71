// Every key of a task file with values of every wrong type. Each value is accepted, or refused by
// one error that names the file and the key, before anything is computed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "datasets/task_config.h"
#include "datasets/task_set.h"
#include "metrics/scorer.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTypedRows =
    "{\"q\":\"x\",\"a\":\"1\"}\n{\"q\":\"y\",\"a\":\"2\"}\n{\"q\":\"z\",\"a\":\"3\"}\n";

/// Prepares a task and scores some answer to it. Throws the errors of both.
void PrepareAndScore(const TaskRegistry& registry, const std::string& name,
                     const std::filesystem::path& cache) {
  TaskRequest request;
  request.name = name;
  request.where = "eval.yaml:1";
  PrepareOptions options;
  options.cache_dir = cache;
  options.checker = [](const TaskDefinition& task) -> DocumentCheck {
    return [scorer = std::make_shared<const Scorer>(task, nullptr)](
               const PreparedDocument& document) { scorer->Check(document); };
  };
  for (const LeafTask& leaf : registry.Resolve({request}).leaves) {
    try {
      Scorer(DefineTask(leaf), nullptr).Metrics();
    } catch (Error& e) {
      throw e.AddContext(leaf.where);
    }
    const PreparedTask prepared(PrepareTask(leaf, options));
    const TaskDefinition task = TaskFromJson(prepared.task(), "task.json");
    const Scorer scorer(task, nullptr);
    for (int64_t i = 0; i < prepared.document_count(); ++i) {
      std::vector<Generation> generations;
      for (const Request& asked : prepared.Requests(i, i + 1)) {
        for (int repeat = 0; repeat < std::min(task.repeats, 3); ++repeat) {
          Generation answer;
          answer.doc_id = i;
          answer.idx = asked.idx;
          answer.repeat = repeat;
          answer.kind = asked.kind;
          answer.text = " 1";
          answer.loglikelihood = -1.5 - asked.idx;
          generations.push_back(answer);
        }
      }
      scorer.Score(prepared.Document(i), generations);
    }
  }
}

/// A task file in which the key `key` (with dots) has the value `value`, in YAML's flow style.
std::string TaskWith(std::map<std::string, std::string> keys, const std::string& key,
                     const std::string& value) {
  keys[key] = value;
  std::string text;
  for (const auto& [name, given] : keys) text += name + ": " + given + "\n";
  return text;
}

const std::vector<std::string>& WrongValues() {
  static const std::vector<std::string> kValues = {"null",
                                                   "true",
                                                   "3",
                                                   "-1",
                                                   "0",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "-9223372036854775808",
                                                   "100000000000000000000000",
                                                   "1.5",
                                                   ".inf",
                                                   ".nan",
                                                   "text",
                                                   "\"\"",
                                                   "\"{{ q\"",
                                                   "[]",
                                                   "[null]",
                                                   "[1.5]",
                                                   "[text, 3]",
                                                   "[[]]",
                                                   "{}",
                                                   "{a: 1}",
                                                   "{a: null}",
                                                   "{a: [null]}",
                                                   "!function utils.f",
                                                   "2026-01-31",
                                                   "1:30",
                                                   "!!binary aGk=",
                                                   "\"a\\0b\"",
                                                   "[{}]",
                                                   "[{a: 1}]"};
  return kValues;
}

/// The names in a form such as "{metric: acc, filter_list: VALUE}" and the names around it. An
/// error must contain one of them.
std::vector<std::string> WordsOf(const std::string& key, const std::string& form) {
  std::vector<std::string> words = {key,     "task '", "group '",
                                    "group", "member", "few-shot example"};
  std::string word;
  for (const char c : form) {
    if (std::islower(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
    } else {
      if (word.size() > 2) words.push_back(word);
      word.clear();
    }
  }
  return words;
}

class TaskTypes : public ::testing::Test {
 protected:
  using Keys = std::map<std::string, std::string>;

  // Adds a file for `keys` in which `key` has the value `value`. Errors must contain one of the
  // words `named`.
  void Add(const Keys& keys, const std::string& key, const std::string& value,
           const std::vector<std::string>& named) {
    Keys own = keys;
    const std::string name = fmt::format("t{}", cases_.size());
    own[own.count("group") > 0 ? "group" : "task"] = name;
    scratch_.Write("t/" + name + ".yaml", TaskWith(own, key, value));
    cases_.push_back({key, value, name, named});
  }

  // One line for each case that is neither accepted nor refused as it should be.
  std::string Problems() {
    scratch_.Write("t/d.jsonl", kTypedRows);
    const TaskRegistry registry({scratch_ / "t"});
    std::string problems;
    for (const Case& one : cases_) problems += Problem(registry, one);
    return problems;
  }

 private:
  struct Case {
    std::string key, value, name;
    std::vector<std::string> named;
  };

  std::string Problem(const TaskRegistry& registry, const Case& one) {
    try {
      PrepareAndScore(registry, one.name, scratch_ / "cache");
    } catch (const Error& e) {
      const std::string message = e.what();
      const bool input = e.kind() == ErrorKind::kInput || e.kind() == ErrorKind::kUsage;
      // A task under another name is another task.
      const bool renamed = (one.key == "task" || one.key == "group") &&
                           message.find("there is no task, group or tag") != std::string::npos;
      const bool file = renamed || message.find(".yaml:", message.find("/t/")) != std::string::npos;
      bool names = renamed;
      for (const std::string& word : one.named)
        names = names || message.find(word) != std::string::npos;
      if (input && file && names) return "";
      return fmt::format("{}: {}: {} ({}{}{})\n", one.key, one.value, message,
                         input ? "" : "not of kind input ", file ? "" : "without file ",
                         names ? "" : "without key");
    } catch (const std::exception& e) {
      return fmt::format("{}: {}: no Error but {}\n", one.key, one.value, e.what());
    }
    return "";
  }

  TemporaryFolder scratch_;
  std::vector<Case> cases_;
};

const std::map<std::string, std::string> kGenerate = {
    {"task", "t"},
    {"dataset_path", "json"},
    {"dataset_kwargs", "{data_files: {test: d.jsonl}}"},
    {"test_split", "test"},
    {"doc_to_text", "q"},
    {"doc_to_target", "a"},
    {"num_fewshot", "1"},
    {"fewshot_split", "test"}};
const std::map<std::string, std::string> kChoice = {
    {"task", "t"},
    {"dataset_path", "json"},
    {"dataset_kwargs", "{data_files: {test: d.jsonl}}"},
    {"test_split", "test"},
    {"doc_to_text", "q"},
    {"doc_to_target", "1"},
    {"doc_to_choice", "[x, y]"},
    {"output_type", "multiple_choice"}};

TEST_F(TaskTypes, EveryKeyOfATask) {
  for (const auto& keys : {kGenerate, kChoice}) {
    for (const std::string& key : TaskKeys()) {
      for (const std::string& value : WrongValues())
        Add(keys, key, value, {key, "task '", "data_files has no split"});
    }
  }
  EXPECT_EQ(Problems(), "");
}

TEST_F(TaskTypes, WhatStandsInsideAKey) {
  const std::pair<const char*, const char*> nested[] = {
      {"dataset_kwargs", "{data_files: VALUE}"},
      {"dataset_kwargs", "{data_files: {test: VALUE}}"},
      {"dataset_kwargs", "{data_files: {test: d.jsonl}, trust_remote_code: VALUE}"},
      {"fewshot_config", "{sampler: VALUE}"},
      {"fewshot_config", "{split: VALUE}"},
      {"fewshot_config", "{samples: VALUE}"},
      {"fewshot_config", "{samples: [{q: VALUE, a: VALUE}]}"},
      {"fewshot_config", "{process_docs: VALUE}"},
      {"fewshot_config", "{fewshot_indices: VALUE}"},
      {"fewshot_config", "{doc_to_text: VALUE}"},
      {"fewshot_config", "{doc_to_target: VALUE}"},
      {"fewshot_config", "{doc_to_choice: VALUE}"},
      {"fewshot_config", "{gen_prefix: VALUE}"},
      {"fewshot_config", "{fewshot_delimiter: VALUE}"},
      {"fewshot_config", "{target_delimiter: VALUE}"},
      {"generation_kwargs", "{until: VALUE}"},
      {"generation_kwargs", "{max_gen_toks: VALUE}"},
      {"generation_kwargs", "{temperature: VALUE, do_sample: true}"},
      {"generation_kwargs", "{do_sample: VALUE}"},
      {"generation_kwargs", "{top_p: VALUE, do_sample: true, temperature: 1.0}"},
      {"generation_kwargs", "{top_k: VALUE}"},
      {"generation_kwargs", "{VALUE: 1}"},
      {"metric_list", "[VALUE]"},
      {"metric_list", "[{metric: VALUE}]"},
      {"metric_list", "[{metric: exact_match, aggregation: VALUE}]"},
      {"metric_list", "[{metric: exact_match, higher_is_better: VALUE}]"},
      {"metric_list", "[{metric: exact_match, ignore_case: VALUE}]"},
      {"metric_list", "[{metric: exact_match, regexes_to_ignore: VALUE}]"},
      {"metric_list", "[{metric: exact_match, hf_evaluate: VALUE}]"},
      {"filter_list", "[VALUE]"},
      {"filter_list", "[{name: VALUE, filter: [{function: take_first}]}]"},
      {"filter_list", "[{name: f, filter: VALUE}]"},
      {"filter_list", "[{name: f, filter: [VALUE]}]"},
      {"filter_list", "[{name: f, filter: [{function: VALUE}]}]"},
      {"filter_list",
       "[{name: f, filter: [{function: regex, regex_pattern: VALUE}, {function: take_first}]}]"},
      {"filter_list",
       "[{name: f, filter: [{function: regex, group_select: VALUE}, {function: take_first}]}]"},
      {"filter_list",
       "[{name: f, filter: [{function: regex, fallback: VALUE}, {function: take_first}]}]"},
      {"filter_list",
       "[{name: f, filter: [{function: take_first_k, k: VALUE}, {function: majority_vote}, "
       "{function: take_first}]}]"},
      {"metadata", "{version: VALUE}"},
      {"metadata", "[VALUE]"},
  };
  for (const auto& [key, form] : nested) {
    for (const std::string& value : WrongValues()) {
      std::string given = form;
      for (size_t at; (at = given.find("VALUE")) != std::string::npos;) given.replace(at, 5, value);
      Add(kGenerate, key, given, WordsOf(key, form));
      if (std::string(key) == "fewshot_config") {
        std::map<std::string, std::string> keys = kChoice;
        keys["num_fewshot"] = "1";
        Add(keys, key, given, WordsOf(key, form));
      }
    }
  }
  EXPECT_EQ(Problems(), "");
}

TEST_F(TaskTypes, EveryKeyOfAGroup) {
  const std::map<std::string, std::string> group = {{"group", "t"}, {"task", "[u]"}};
  for (const char* key : {"group", "group_alias", "task", "aggregate_metric_list", "tag",
                          "metadata", "include", "task_list", "num_fewshot"}) {
    for (const std::string& value : WrongValues()) Add(group, key, value, {key, "group '"});
  }
  const std::pair<const char*, const char*> nested[] = {
      {"task", "[VALUE]"},
      {"task", "[{task: VALUE}]"},
      {"task", "[{group: VALUE}]"},
      {"task", "[{group: g, task: VALUE}]"},
      {"aggregate_metric_list", "[{metric: VALUE}]"},
      {"aggregate_metric_list", "[{metric: acc, aggregation: VALUE}]"},
      {"aggregate_metric_list", "[{metric: acc, weight_by_size: VALUE}]"},
      {"aggregate_metric_list", "[{metric: acc, filter_list: VALUE}]"}};
  for (const auto& [key, form] : nested) {
    for (const std::string& value : WrongValues()) {
      std::string given = form;
      given.replace(given.find("VALUE"), 5, value);
      Add(group, key, given, WordsOf(key, form));
    }
  }
  EXPECT_EQ(Problems(), "");
}

/// The error of a file; "" if there is none.
std::string RefusalOfType(const std::string& yaml) {
  const TemporaryFolder scratch;
  scratch.Write("t/t.yaml", yaml);
  scratch.Write("t/d.jsonl", kTypedRows);
  return CaughtText(
      [&] { PrepareAndScore(TaskRegistry({scratch / "t"}), "t", scratch / "cache"); });
}

TEST(TaskFiles, AnIntegerBeyond64BitsNamesItsKey) {
  const std::string text = TaskWith(kGenerate, "num_fewshot", "9223372036854775808");
  EXPECT_THAT(
      RefusalOfType(text),
      HasSubstr("t.yaml:6: key 'num_fewshot': the integer 9223372036854775808 is beyond 64 bits"));
  // Also if the integer keeps evald from reading the task's name.
  EXPECT_THAT(RefusalOfType("{\"task\": \"t\", \"num_fewshot\": 9223372036854775808}\n"),
              AllOf(HasSubstr("there is no task, group or tag 't'"),
                    HasSubstr("t.yaml:1: key 'num_fewshot': the integer")));
}

TEST(TaskFiles, ATargetThatCannotBeScoredIsRefusedWhenItIsPrepared) {
  std::map<std::string, std::string> zero = kGenerate;
  zero.erase("num_fewshot");
  EXPECT_THAT(RefusalOfType(TaskWith(zero, "doc_to_target", "[null]")),
              AllOf(HasSubstr("d.jsonl:1: task 't': the task at "),
                    HasSubstr("t.yaml:6: doc_to_target gives [null], expected text")));
  EXPECT_THAT(RefusalOfType(TaskWith(kChoice, "doc_to_target", "[x]")),
              HasSubstr("doc_to_target gives ['x'], expected a list of labels"));
}

TEST(TaskFiles, ATabIsCalledATab) {
  EXPECT_THAT(
      RefusalOfType("task: t\ndataset_kwargs:\n\tdata_files: d.jsonl\n"),
      HasSubstr("t.yaml:3: broken YAML: line 3 is indented by a tab; YAML is indented by spaces"));
}

}  // namespace
}  // namespace evald
