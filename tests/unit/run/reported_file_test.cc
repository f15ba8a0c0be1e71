// Files from agents of other hosts, which may contain any bytes.
#include "orchestrator/run/reported_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hash.h"
#include "base/jsonl.h"
#include "evald/score.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/little_memory.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using testing::HasSubstr;

class ReportedFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    task_.filters.resize(1);
    test::PrepareAnswers(task_, 8, scratch_.path() / "prepared");
  }

  // The verdict on a file with this text for documents 2 and 3.
  std::string Verdict(bool scores, const std::string& text) {
    const auto path = scratch_.path() / "file.jsonl";
    test::WriteText(path, text);
    return WhyNotSound(
        {path, text.size(), HashHex(text), 2, 4, scores, task_, scratch_.path() / "prepared"},
        nullptr);
  }
  std::string OfGenerations(const std::string& text) { return Verdict(false, text); }
  std::string OfScores(const std::string& text) { return Verdict(true, text); }

  static std::string Score(int64_t document, const Json& metrics,
                           const std::string& filter = "strict") {
    ScoredDocument score;
    score.doc_id = document;
    score.filters.push_back({filter, {"x"}, metrics, {}});
    return ToLine(ToJson(score)) + "\n";
  }
  static std::string Answered(int64_t document) { return test::Line(test::Answer(document, "x")); }

  TemporaryFolder scratch_;
  TaskDefinition task_ = test::AnswerTask();
};

TEST_F(ReportedFileTest, HonestFilesAreSound) {
  EXPECT_EQ(OfGenerations(Answered(2) + Answered(3)), "");
  EXPECT_EQ(OfGenerations(Answered(3) + Answered(2) + Answered(5)), "")
      << "in any order, with another's lines";
  EXPECT_EQ(OfScores(Score(2, {{"exact_match", 1.0}}) + Score(3, {{"exact_match", 0.0}})), "");
}

TEST_F(ReportedFileTest, LongAnswersAreCheckedOneByOne) {
  task_.repeats = 24;
  test::PrepareAnswers(task_, 8, scratch_.path() / "repeated");
  const auto path = scratch_.path() / "file.jsonl";
  ReportedFile file{path, 0, "", 2, 3, false, task_, scratch_.path() / "repeated"};
  {
    std::string text;
    for (int i = 0; i < task_.repeats; ++i)
      text += test::Line(test::Answer(2, std::string(2 << 20, 'x'), i));
    test::WriteText(path, text);
    file.bytes = text.size();
    file.hash = HashHex(text);
  }
  const LittleMemory memory(24 << 20);
  EXPECT_EQ(WhyNotSound(file, nullptr), "");
}

TEST_F(ReportedFileTest, WhatIsThereMustBeWhatWasReported) {
  const std::string text = Answered(2) + Answered(3);
  ReportedFile file{scratch_.path() / "file.jsonl", text.size(), HashHex(text), 2, 4, false, task_,
                    scratch_.path() / "prepared"};
  EXPECT_THAT(WhyNotSound(file, nullptr), HasSubstr("no such file"));
  test::WriteText(file.path, text + "\n");
  EXPECT_THAT(WhyNotSound(file, nullptr), HasSubstr("bytes, not"));
  test::WriteText(file.path, std::string(text.size(), ' '));
  EXPECT_THAT(WhyNotSound(file, nullptr), HasSubstr("another content"));
}

TEST_F(ReportedFileTest, GenerationsMustBeReadableAndWhole) {
  EXPECT_THAT(OfGenerations("garbage\n"), HasSubstr("not JSON"));
  EXPECT_THAT(OfGenerations(Answered(2)), HasSubstr("document 3"));
  EXPECT_THAT(OfGenerations(Answered(2) + Answered(3) + Answered(3)),
              HasSubstr("found 2 generations"));
  Generation likelihood = test::Answer(3, "");
  likelihood.kind = RequestKind::kLoglikelihoodRolling;
  likelihood.finish = FinishReason::kScored;
  EXPECT_THAT(OfGenerations(Answered(2) + test::Line(likelihood)),
              HasSubstr("expected generate_until"));
  std::string many;
  for (int i = 0; i < 2000; ++i) many += Answered(2);
  EXPECT_THAT(OfGenerations(many), HasSubstr("it has 2000 lines"));
}

TEST_F(ReportedFileTest, ScoresMustBeThoseOfTheTask) {
  const std::string good = Score(2, {{"exact_match", 1.0}});
  EXPECT_THAT(OfScores("garbage\n"), HasSubstr("not JSON"));
  EXPECT_THAT(OfScores(good), HasSubstr("document 3 has no score"));
  EXPECT_THAT(OfScores(good + Score(3, {{"exact_match", 1.0}}, "other")), HasSubstr("filters"));
  EXPECT_THAT(OfScores(good + Score(3, {{"exact_match", "much"}})), HasSubstr("expected a number"));
  EXPECT_THAT(OfScores(good + Score(3, {{"exact_match", {1, 2}}})), HasSubstr("expected a number"));
  EXPECT_THAT(OfScores(good + Score(3, {{"exact_match", 1.0}, {"zz", std::string(10'000, 'x')}})),
              HasSubstr("the metrics of document 3"));
}

TEST_F(ReportedFileTest, ValuesForAnAggregationOfTheTasksOwnMayBeTexts) {
  const auto scored = [](int64_t document, const Json& value, const Json& python) {
    ScoredDocument score;
    score.doc_id = document;
    score.filters.push_back({"strict", {"x"}, {{"exact_match", value}}, {}, python});
    return ToLine(ToJson(score)) + "\n";
  };
  const std::string text(100'000, 'x');
  const std::string file = scored(2, text, nullptr) + scored(3, {"a", 1}, {{"exact_match", text}});
  EXPECT_THAT(OfScores(file), HasSubstr("the metrics of document 2"));
  task_.metrics[0].aggregation = "!function /t/utils.f";
  task_.sources["code"] = Json::object();
  EXPECT_EQ(OfScores(file), "");
  EXPECT_THAT(OfScores(scored(2, text, nullptr) + Score(3, {{"zz", text}})),
              HasSubstr("the metrics of document 3"))
      << "no value for that aggregation";
  EXPECT_THAT(OfScores(scored(2, std::string(9 << 20, 'x'), nullptr) + scored(3, 1, nullptr)),
              HasSubstr("expected at most 8.0 MiB"));
}

}  // namespace
}  // namespace evald
