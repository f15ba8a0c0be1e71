// Task files and data that are refused, each with its place and cause.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "datasets/task_set.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kHead =
    "task: t\ndataset_path: json\ndataset_kwargs: {data_files: {test: d.jsonl}}\ntest_split: "
    "test\n";
constexpr const char* kPrompt = "doc_to_text: \"{{q}}\"\ndoc_to_target: a\n";
constexpr const char* kData = "{\"q\":\"x\",\"a\":\"1\"}\n{\"q\":\"y\",\"a\":\"2\"}\n";

// The error of preparing the task that `yaml` defines, with the documents `data`.
std::string Refusal(const std::string& yaml, const std::string& data = kData) {
  const TemporaryFolder scratch;
  scratch.Write("t/t.yaml", yaml);
  scratch.Write("t/d.jsonl", data);
  PrepareOptions options;
  options.cache_dir = scratch / "cache";
  const std::string message = CaughtText([&] {
    TaskRequest request;
    request.name = "t";
    PrepareTask(TaskRegistry({scratch / "t"}).Resolve({request}).leaves.at(0), options);
  });
  if (std::filesystem::exists(scratch / "cache" / "prepared")) {
    EXPECT_TRUE(message.empty() || std::filesystem::is_empty(scratch / "cache" / "prepared"))
        << "a half-written task was left: " << message;
  }
  return message;
}

std::string With(const std::string& more) { return std::string(kHead) + kPrompt + more; }

TEST(TaskErrors, AWholeTaskIsPrepared) { EXPECT_EQ(Refusal(With("")), ""); }

TEST(TaskErrors, KeysAndTypes) {
  EXPECT_THAT(Refusal(With("num_fewshots: 3\n")),
              HasSubstr("t.yaml:7: a task has no key 'num_fewshots'; did you mean 'num_fewshot'?"));
  EXPECT_THAT(Refusal(With("num_fewshot: many\n")),
              HasSubstr("t.yaml:7: num_fewshot is \"many\", expected an integer"));
  EXPECT_THAT(Refusal(With("output_type: generate_untill\n")),
              HasSubstr("did you mean 'generate_until'?"));
  EXPECT_THAT(Refusal(With("use_prompt: \"promptsource:*\"\n")),
              HasSubstr("t.yaml:7: the key 'use_prompt' is not supported"));
  EXPECT_THAT(Refusal(With("fewshot_config:\n  samples: []\n  sampler: balanced\n")),
              HasSubstr("t.yaml:9: the sampler 'balanced' is not known"));
  EXPECT_THAT(Refusal(With("fewshot_config:\n  smpler: x\n")),
              HasSubstr("did you mean 'sampler'?"));
  EXPECT_THAT(Refusal(With("fewshot_config: {fewshot_indices: [1]}\n")),
              HasSubstr("fewshot_indices is not supported"));
  EXPECT_THAT(Refusal(With("generation_kwargs: {untill: x}\n")),
              HasSubstr("did you mean 'until'?"));
  EXPECT_THAT(Refusal(With("generation_kwargs: {do_sample: true, temperature: 0}\n")),
              HasSubstr("temperature of 0"));
  EXPECT_THAT(Refusal(With("metric_list: [{metric: unheard_of}]\n")),
              HasSubstr("the metric 'unheard_of' is not known"));
  EXPECT_THAT(
      Refusal(With("metric_list: [{metric: rouge, aggregation: mean, hf_evaluate: true}]\n")),
      HasSubstr("evaluate library"));
  EXPECT_EQ(Refusal(With("output_type: multiple_choice\ndoc_to_choice: [a, b]\n"
                         "metric_list: [{metric: f1, hf_evaluate: true}]\n")),
            "")
      << "the harness calls no metric of a multiple choice";
  EXPECT_THAT(Refusal(With("filter_list: [{name: x, filter: [{fun: y}]}]\n")),
              HasSubstr("a step of a filter"));
  EXPECT_THAT(Refusal("task: t\ntest_split: test\n"), HasSubstr("no dataset_path"));
  EXPECT_THAT(Refusal(std::string(kHead) + "doc_to_text: x\n"),
              HasSubstr("the task has no doc_to_target"));
}

TEST(TaskErrors, TasksBeyondTheirLimits) {
  const auto many = [](size_t count, const std::string& item) {
    std::string list = item;
    for (size_t i = 1; i < count; ++i) list += ", " + item;
    return "[" + list + "]";
  };
  const std::string step = "{function: take_first}";
  EXPECT_THAT(Refusal(With("filter_list: " + many(65, "{name: f, filter: [" + step + "]}") + "\n")),
              HasSubstr("t.yaml:7: pipelines in filter_list: found 65, expected at most 64"));
  EXPECT_THAT(Refusal(With("filter_list: [{name: f, filter: " + many(65, step) + "}]\n")),
              HasSubstr("steps in the pipeline 'f': found 65, expected at most 64"));
  EXPECT_THAT(Refusal(With("metric_list: " + many(65, "{metric: exact_match}") + "\n")),
              HasSubstr("metrics in metric_list: found 65, expected at most 64"));
  EXPECT_THAT(Refusal(With("repeats: 10001\n")),
              HasSubstr("t.yaml:7: repeats: found 10001, expected at most 10000"));
  EXPECT_EQ(Refusal(With("repeats: 10000\n")), "");
  const std::string choices = std::string(kHead) +
                              "output_type: multiple_choice\ndoc_to_text: \"{{q}}\"\n"
                              "doc_to_target: 0\ndoc_to_choice: [x, y]\nrepeats: 5001\n";
  EXPECT_THAT(Refusal(choices),
              HasSubstr("the document has 10002 answers (2 requests, 5001 repeats), expected at "
                        "most 10000"));
}

TEST(TaskErrors, LabelsThatCannotBeScored) {
  const std::string choice =
      std::string(kHead) +
      "output_type: multiple_choice\ndoc_to_text: \"{{q}}\"\ndoc_to_target: a\ndoc_to_choice: c\n"
      "metric_list: [{metric: acc}]\n";
  const auto with = [&](const std::string& label, const std::string& choices) {
    return Refusal(choice, "{\"q\":\"x\",\"a\":" + label + ",\"c\":" + choices + "}\n");
  };
  EXPECT_EQ(with("1", "[\"x\",\"y\"]"), "");
  EXPECT_EQ(with("7", "[\"x\",\"y\"]"), "")
      << "a label beyond the choices is never right, as in the harness";
  EXPECT_EQ(with("\"y\"", "[\"x\",\"y\"]"), "");
  EXPECT_EQ(with("1", "[\"\",\"y\"]"), "");
  EXPECT_THAT(
      with("1.5", "[\"x\",\"y\"]"),
      AllOf(HasSubstr("d.jsonl:1: "),
            HasSubstr("doc_to_target gives 1.5, expected a label or the text of a choice")));
  EXPECT_THAT(with("null", "[\"x\",\"y\"]"), HasSubstr("doc_to_target gives None"));
  EXPECT_THAT(with("[\"x\"]", "[\"x\",\"y\"]"), HasSubstr("expected a list of labels"));
  EXPECT_THAT(with("0", "[]"), HasSubstr("doc_to_choice gives no choice"));
}

TEST(TaskErrors, DataFilesThatAreNotServed) {
  const auto with = [](const std::string& kwargs) {
    return Refusal("task: t\ndataset_path: json\ndataset_kwargs: " + kwargs +
                   "\ntest_split: test\n" + kPrompt);
  };
  EXPECT_THAT(with("{data_files: {test: '[ab].jsonl'}}"),
              HasSubstr("patterns are not served: list the files"));
  EXPECT_THAT(with("{data_files: {test: d.jsonl}, field: data}"),
              HasSubstr("field is not served: write the rows"));
  EXPECT_THAT(with("{data_files: {test: d.jsonl}, sep: ';'}"),
              HasSubstr("a dataset_path of 'csv'"));
  EXPECT_THAT(with("{data_files: {train: none.jsonl, test: d.jsonl}}"),
              HasSubstr("none.jsonl is not there"));
  EXPECT_EQ(with("{data_files: {test: d.jsonl}}"), "");
}

TEST(TaskErrors, DatesOnlyPrint) {
  const std::string dates = "{\"q\":\"x\",\"a\":\"2020-01-02\"}\n";
  EXPECT_EQ(Refusal(std::string(kHead) + "doc_to_text: \"{{a}} {{[a]}} {{a is string}} {{a == "
                                         "a}}\"\ndoc_to_target: \"{{a}}\"\n",
                    dates),
            "");
  EXPECT_THAT(Refusal(With(""), dates),
              HasSubstr("the field 'a' holds dates, which only templates can print"));
  EXPECT_THAT(
      Refusal(std::string(kHead) + "doc_to_text: \"{{a.year}}\"\ndoc_to_target: q\n", dates),
      HasSubstr("the attribute 'year' of a date is not supported"));
}

TEST(TaskErrors, FunctionsThatAreNotBuiltIn) {
  EXPECT_THAT(Refusal(With("process_docs: !function utils.process_docs\n")),
              AllOf(HasSubstr("the function 'process_docs' of /"),
                    HasSubstr("/t/utils.py is not built in"), HasSubstr("--allow-task-code")));
  EXPECT_THAT(Refusal(With("num_fewshot: 1\nfewshot_config: {samples: !function utils.list}\n")),
              HasSubstr("built in are: mbpp/utils.list_fewshot_samples"));
  EXPECT_THAT(Refusal(std::string(kHead) + "doc_to_text: !function utils.f\ndoc_to_target: a\n"),
              HasSubstr("doc_to_text: the function 'f' of /"));
}

TEST(TaskErrors, Templates) {
  EXPECT_THAT(Refusal(std::string(kHead) + "doc_to_text: \"a\\n{{q\"\ndoc_to_target: a\n"),
              AllOf(HasSubstr("doc_to_text of the task at"), HasSubstr("line 2")));
  EXPECT_THAT(Refusal(With(""), "{\"a\":\"1\"}\n{\"a\":\"2\"}\n"),
              AllOf(HasSubstr("d.jsonl:1: task 't': doc_to_text of the task at"),
                    HasSubstr("line 1: 'q' is undefined")));
  EXPECT_THAT(Refusal(With("output_type: multiple_choice\ndoc_to_choice: \"{{q}}\"\n")),
              AllOf(HasSubstr("d.jsonl:1"), HasSubstr("is not a Python literal")));
  EXPECT_THAT(Refusal(With("output_type: multiple_choice\n")), HasSubstr("needs doc_to_choice"));
}

TEST(TaskErrors, Data) {
  EXPECT_THAT(Refusal(With(""), ""), HasSubstr("d.jsonl: the file has no documents"));
  EXPECT_THAT(Refusal(With("validation_split: dev\nfewshot_split: dev\nnum_fewshot: 1\n")),
              HasSubstr("t.yaml:3: data_files has no split 'dev', it has test"));
  EXPECT_THAT(
      Refusal(With("num_fewshot: 5\nfewshot_split: test\n")),
      HasSubstr("6 few-shot examples are to be chosen (one more where the document itself may be "
                "among them), and 2 documents are there"));
}

TEST(TaskErrors, WhatWasPreparedAndIsDamagedIsPreparedAgain) {
  const TemporaryFolder scratch;
  scratch.Write("t/t.yaml", With(""));
  scratch.Write("t/d.jsonl", kData);
  PrepareOptions options;
  options.cache_dir = scratch / "cache";
  TaskRequest request;
  request.name = "t";
  const auto prepare = [&] {
    return PrepareTask(TaskRegistry({scratch / "t"}).Resolve({request}).leaves.at(0), options);
  };
  const std::filesystem::path folder = prepare();
  for (const char* name : {"documents.jsonl", "requests.jsonl", "index.bin", "hashes.json"}) {
    const std::string whole = ReadFile(folder / name);
    std::filesystem::resize_file(folder / name, whole.size() - 3);
    EXPECT_EQ(prepare(), folder);
    EXPECT_EQ(ReadFile(folder / name), whole) << name;
    std::string altered = whole;
    altered[whole.size() / 2] = static_cast<char>(altered[whole.size() / 2] ^ 1);
    std::ofstream(folder / name, std::ios::binary) << altered;
    EXPECT_EQ(prepare(), folder);
    EXPECT_EQ(ReadFile(folder / name), whole) << name;
  }
}

TEST(TaskErrors, MissingDataNamesEveryPlace) {
  const TemporaryFolder scratch;
  PrepareOptions options;
  options.cache_dir = scratch / "cache";
  const auto prepare = [&] {
    TaskRequest request;
    request.name = "gsm8k";
    PrepareTask(TaskRegistry({}).Resolve({request}).leaves.at(0), options);
  };
  EXPECT_THAT(CaughtText(prepare), HasSubstr("no data folder was given"));
  options.data_dir = scratch / "data";
  EXPECT_THAT(CaughtText(prepare),
              AllOf(HasSubstr("no file holds the split 'test' of the dataset 'openai/gsm8k'"),
                    HasSubstr("data/gsm8k/test.jsonl"), HasSubstr("data/gsm8k/main/test.csv")));
}

}  // namespace
}  // namespace evald
