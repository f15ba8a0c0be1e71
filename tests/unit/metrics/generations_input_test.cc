// Generations in evald's, the harness's and HumanEval's form, and broken ones.
#include "metrics/generations_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include "base/hash.h"
#include "base/memory_limits.h"
#include "evald/error.h"
#include "metrics/line_index.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using test::Answer;
using test::Line;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GenerationsInput : public ::testing::Test {
 protected:
  void SetUp() override {
    test::PrepareAnswers(test::AnswerTask(), 3, scratch_.path() / "prepared");
    task_.emplace(scratch_.path() / "prepared");
  }

  ImportedGenerations Import(const std::string& text) {
    test::WriteText(scratch_.path() / "in.jsonl", text);
    return ImportGenerations(*task_, scratch_.path() / "in.jsonl", out());
  }
  std::filesystem::path out() const { return scratch_.path() / "out.jsonl"; }

  std::string Refusal(const std::string& text) {
    std::filesystem::remove(out());
    const Error error = Caught([&] { Import(text); });
    EXPECT_FALSE(std::filesystem::exists(out()));
    EXPECT_FALSE(std::filesystem::exists(out().string() + ".part"));
    return error.what();
  }

  TemporaryFolder scratch_;
  std::optional<PreparedTask> task_;
};

TEST_F(GenerationsInput, EvaldsOwnLines) {
  const auto read =
      Import(Line(Answer(2, "c")) + "\n" + Line(Answer(0, "a")) + Line(Answer(1, "é\n")));
  EXPECT_EQ(read.form, GenerationsForm::kEvald);
  EXPECT_EQ(read.documents, 3);
  EXPECT_TRUE(read.missing.empty());
  EXPECT_EQ(GenerationReader(out()).Read(1, 1, 1)[0].text, "é\n");
}

TEST_F(GenerationsInput, CompletionsAreRepeats) {
  std::string text;
  for (int i : {0, 1, 2, 2, 1, 0}) {
    text += ToLine({{"task_id", "Sums/" + std::to_string(i)}, {"completion", std::to_string(i)}}) +
            "\n";
  }
  const auto read = Import(text);
  EXPECT_EQ(read.form, GenerationsForm::kCompletions);
  EXPECT_EQ(read.repeats, 2);
  EXPECT_EQ(GenerationReader(out()).Read(2, 1, 2)[1].text, "2");
  EXPECT_THAT(Refusal(text + ToLine({{"task_id", "Sums/0"}, {"completion", ""}}) + "\n"),
              HasSubstr("document 1 has 2 answers, expected 3"));
}

TEST_F(GenerationsInput, HarnessSamples) {
  const auto sample = [&](int doc, const char* filter, const char* resp) {
    return ToLine({{"doc_id", doc},
                   {"resps", {{resp}}},
                   {"filter", filter},
                   {"prompt_hash",
                    Sha256Hex("What is " + std::to_string(doc == 1 ? 9 : doc) + "?")}}) +
           "\n";
  };
  std::string text;
  for (const char* filter : {"strict", "flexible"}) {
    for (int i = 0; i < 3; ++i) text += sample(i, filter, "r");
  }
  const auto read = Import(text);
  EXPECT_EQ(read.form, GenerationsForm::kSamples);
  EXPECT_EQ(read.generations, 3);
  EXPECT_EQ(read.other_prompts, 1);
  EXPECT_THAT(Refusal(text + sample(0, "strict", "r")),
              HasSubstr("in.jsonl:7: document 0 with filter"));
  EXPECT_THAT(Refusal(sample(0, "a", "x") + sample(0, "b", "y")), HasSubstr("other responses"));
  EXPECT_THAT(Refusal(sample(7, "a", "x")), HasSubstr("found doc_id 7, expected 0 to 2"));
  EXPECT_THAT(Refusal("{\"doc_id\":0,\"resps\":[[1]]}"), HasSubstr("expected text"));
  EXPECT_THAT(Refusal("{\"doc_id\":0,\"resps\":[[\"a\"],[\"b\"]]}"),
              HasSubstr("2 requests, document 0 has 1"));
}

TEST_F(GenerationsInput, SamplesOfLoglikelihoods) {
  TaskDefinition task = test::AnswerTask();
  PreparedTaskWriter writer(scratch_.path() / "ll", ToJson(task));
  Request request;
  request.kind = RequestKind::kLoglikelihood;
  writer.Add({0, Json::object(), 0, {"a"}}, {request});
  writer.Finish();
  task_.emplace(scratch_.path() / "ll");
  Import("{\"doc_id\":0,\"resps\":[[[\"-1.25e-05\",\"True\"]]]}");
  const Generation read = GenerationReader(out()).Read(0, 1, 1)[0];
  EXPECT_EQ(read.loglikelihood, -1.25e-05);
  EXPECT_TRUE(read.is_greedy);
  Import("{\"doc_id\":0,\"resps\":[[[\"-inf\",\"False\"]]]}");
  EXPECT_EQ(GenerationReader(out()).Read(0, 1, 1)[0].loglikelihood, -INFINITY);
  Import("{\"doc_id\":0,\"resps\":[[[\"nan\",\"False\"]]]}");
  EXPECT_TRUE(std::isnan(GenerationReader(out()).Read(0, 1, 1)[0].loglikelihood));
  EXPECT_THAT(Refusal("{\"doc_id\":0,\"resps\":[[[\"none\",\"False\"]]]}"),
              HasSubstr("a log-likelihood"));
  EXPECT_THAT(Refusal("{\"doc_id\":0,\"resps\":[[[\"-1\",\"no\"]]]}"), HasSubstr("True or False"));
}

TEST_F(GenerationsInput, MissingDocumentsAreListed) {
  const auto read = Import(Line(Answer(1, "b")));
  EXPECT_EQ(read.documents, 1);
  EXPECT_THAT(read.missing, ElementsAre(0, 2));
}

TEST_F(GenerationsInput, WhatALimitLeavesOutIsPassedOver) {
  TaskDefinition task = test::AnswerTask();
  task.original_documents = 5;
  test::PrepareAnswers(task, 3, scratch_.path() / "limited");
  task_.emplace(scratch_.path() / "limited");
  const auto read = Import(Line(Answer(4, "e")) + Line(Answer(0, "a")) + Line(Answer(3, "d")) +
                           Line(Answer(1, "b")) + Line(Answer(2, "c")));
  EXPECT_EQ(read.documents, 3);
  EXPECT_EQ(read.beyond_limit, 2);
  EXPECT_TRUE(read.missing.empty());
  EXPECT_THAT(Refusal(Line(Answer(5, "f"))),
              HasSubstr("in.jsonl:1: found doc_id 5, expected 0 to 2"))
      << "the task never had it";
}

TEST_F(GenerationsInput, Gzip) {
  const std::string text = Line(Answer(0, "a")) + Line(Answer(1, "b")) + Line(Answer(2, "c"));
  const std::string path = scratch_.path() / "in.jsonl.gz";
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  EXPECT_EQ(ImportGenerations(*task_, path, out()).documents, 3);
  const std::string whole = ReadFile(path);
  test::WriteText(path, whole.substr(0, whole.size() / 2));
  EXPECT_THROW(ImportGenerations(*task_, path, out()), Error);
}

// A few hundred KiB can hold a line of many GiB. Memory stays near the limit of a line.
TEST_F(GenerationsInput, APackedLineIsBoundedWhileItIsUnpacked) {
  const std::string path = scratch_.path() / "in.jsonl.gz";
  gzFile file = gzopen(path.c_str(), "wb1");
  const std::string text = Line(Answer(0, "a"));
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  const std::string spaces(1 << 20, ' ');
  for (int i = 0; i < 400; ++i) gzwrite(file, spaces.data(), static_cast<unsigned>(spaces.size()));
  gzclose(file);
  const auto peak = [] {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss >> 10;
  };
  const int64_t before = peak();
  EXPECT_THAT(RefusalOf([&] { ImportGenerations(*task_, path, out()); }),
              HasSubstr("in.jsonl.gz: a line is longer than 192.0 MiB"));
  if (LimitsOwnMemory()) {  // sanitizers take more
    EXPECT_LT(peak() - before, 230) << "MiB";
  }
}

TEST_F(GenerationsInput, BrokenFilesAreNamedByLine) {
  const std::string good = Line(Answer(0, "a"));
  EXPECT_THAT(Refusal(""), HasSubstr("holds no generations"));
  EXPECT_THAT(Refusal("{\"a\":1}"), HasSubstr("in.jsonl:1: found object with the keys [a]"));
  EXPECT_THAT(Refusal("[1]"), HasSubstr("no generation"));
  EXPECT_THAT(Refusal(good + "{\"doc_id\": 1, \"text\":"), HasSubstr("in.jsonl:2: not JSON"));
  EXPECT_THAT(Refusal(good + "\xff\xfe\n"), HasSubstr("in.jsonl:2"));
  EXPECT_THAT(Refusal(good + good),
              HasSubstr("in.jsonl:2: document 0, request 0, repeat 0 was answered in line 1"));
  EXPECT_THAT(Refusal(good + "{\"task_id\":\"Sums/1\",\"completion\":\"\"}"),
              HasSubstr("the form changes"));
  EXPECT_THAT(Refusal(Line(Answer(3, "d"))), HasSubstr("found doc_id 3"));
  EXPECT_THAT(Refusal("{\"task_id\":\"Sum/1\",\"completion\":\"\"}"),
              HasSubstr("did you mean 'Sums/1'"));
  EXPECT_THROW(ImportGenerations(*task_, scratch_.path() / "absent", out()), Error);
  std::string lines;
  for (int i = 0; i < 16; ++i) lines += "\n";
  EXPECT_THAT(Refusal(lines + "{"), HasSubstr("in.jsonl:17: not JSON"));
}

TEST_F(GenerationsInput, ATenMegabyteGeneration) {
  const std::string big(10 << 20, 'z');
  const auto read = Import(Line(Answer(0, big)) + Line(Answer(1, "")) + Line(Answer(2, "x")));
  EXPECT_EQ(read.documents, 3);
  EXPECT_EQ(GenerationReader(out()).Read(0, 1, 1)[0].text, big);
}

}  // namespace
}  // namespace evald
