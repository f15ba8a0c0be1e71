// Scores and aggregates the made-up tasks of tests/golden/metrics/suite.json. Expects lm_eval
// 0.4.13's results (tests/oracle/results.py synthetic).
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "base/file.h"
#include "base/jsonl.h"
#include "tests/unit/metrics/score_suite.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

class Oracle : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string path = EVALD_SOURCE_DIR "/tests/golden/metrics/suite.json";
    golden_ = ParseJson(ReadFile(path), path);
    scratch_.emplace();
    results_ = test::ScoreSuite(golden_["suite"], scratch_->path(), [] { return nullptr; });
  }
  static void TearDownTestSuite() { scratch_.reset(); }

  static inline std::optional<TemporaryFolder> scratch_;
  static inline Json golden_;
  static inline Json results_;
};

TEST_F(Oracle, ResultsAndGroupsAreEqualToTheLastDigit) {
  const Json& expected = golden_["expected"];
  for (const char* key : {"results", "groups", "n-samples", "higher_is_better", "versions",
                          "n-shot", "group_subtasks"}) {
    ASSERT_EQ(results_[key].size(), expected[key].size()) << key;
    for (const auto& [name, entry] : expected[key].items()) {
      // The order of members does not matter.
      EXPECT_EQ(nlohmann::json(results_[key][name]), nlohmann::json(entry)) << key << " " << name;
    }
  }
}

TEST_F(Oracle, FilteredResponsesAreEqual) {
  for (const auto& [name, samples] : golden_["filtered"].items()) {
    size_t line = 0;
    ForEachJsonLine(scratch_->path() / ("samples_" + name + ".jsonl"), [&](size_t, Json&& sample) {
      ASSERT_LT(line, samples.size());
      EXPECT_EQ(sample["filter"], samples[line][0]) << name;
      EXPECT_EQ(sample["doc_id"], samples[line][1]) << name;
      EXPECT_EQ(sample["filtered_resps"], samples[line][2])
          << name << " document " << sample["doc_id"];
      ++line;
    });
    EXPECT_EQ(line, samples.size()) << name;
  }
}

TEST_F(Oracle, TheSameInputGivesTheSameBytes) {
  const TemporaryFolder again;
  test::ScoreSuite(golden_["suite"], again.path(), [] { return nullptr; });
  EXPECT_EQ(ReadFile(again.path() / "results.json"), ReadFile(scratch_->path() / "results.json"));
  EXPECT_EQ(ReadFile(again.path() / "samples_filters.jsonl"),
            ReadFile(scratch_->path() / "samples_filters.jsonl"));
  EXPECT_EQ(ReadFile(again.path() / "choice_all/scores.jsonl"),
            ReadFile(scratch_->path() / "choice_all/scores.jsonl"));
}

}  // namespace
}  // namespace evald
