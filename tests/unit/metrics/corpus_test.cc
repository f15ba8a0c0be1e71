// bleu, chrf, chrf++ and ter against sacrebleu by way of lm_eval (tests/oracle/corpus_golden.py).
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/aggregate.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/score_number.h"
#include "tests/unit/metrics/fixtures.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

constexpr int kIterations = 100;

MetricValues ValuesOf(const Json& items) {
  MetricValues values;
  for (const Json& item : items) values.push_back(&item);
  return values;
}

TEST(CorpusMetrics, AreTheHarnessesToTheLastDigit) {
  size_t corpora = 0;
  ForEachJsonLine(EVALD_SOURCE_DIR "/tests/golden/metrics/corpus.jsonl", [&](size_t line,
                                                                             Json&& corpus) {
    ++corpora;
    for (const auto& [metric, expected] : corpus["expected"].items()) {
      const MetricValues values = ValuesOf(corpus["items"]);
      if (expected.is_null()) {
        EXPECT_THROW(Aggregate(metric, values, kIterations), Error) << metric << ", line " << line;
        continue;
      }
      const Aggregated found = Aggregate(metric, values, kIterations);
      EXPECT_EQ(found.value, NumberToScore(expected[0].get<double>()))
          << metric << ", line " << line;
      EXPECT_EQ(found.stderr_,
                expected[1].is_string() ? expected[1] : NumberToScore(expected[1].get<double>()))
          << metric << ", line " << line;
    }
  });
  EXPECT_GT(corpora, 100u);
}

TEST(CorpusMetrics, SayWhatTheyCannotTake) {
  const auto error = [](const char* items) {
    const Json json = Json::parse(items);
    return CaughtText([&] { Aggregate("bleu", ValuesOf(json), kIterations); }, ErrorKind::kInput);
  };
  EXPECT_EQ(error(R"([["a b", "a b"]])"), "");
  for (const char* items : {R"([1])", R"([["a"]])", R"([["a", 5]])", R"([[5, "a"]])",
                            R"([[[], "a"]])", R"([[[null], "a"]])", R"([["a", "a"], [["a"], "a"]])",
                            R"([["a", ["a", "b"]]])", R"([["a", "a"], ["a", ["a"]]])"}) {
    EXPECT_NE(error(items), "") << items;
  }
}

// lm_eval/evaluator_utils.py: at most 100 draws for these metrics.
TEST(CorpusMetrics, AHundredDrawsAreTheMost) {
  TaskDefinition task = test::AnswerTask();
  std::vector<ScoredDocument> scores(30);
  for (const char* metric : {"bleu", "chrf", "ter"}) {
    task.metrics = {{metric, "", metric, true, Json::object()}};
    for (size_t i = 0; i < scores.size(); ++i) {
      const Json pair = {"the cat sat on the mat today",
                         i % 3 == 0 ? "the cat sat on a mat today" : "a dog sat on the mat"};
      scores[i].filters = {{"strict", "", {{metric, pair}}, {}}};
    }
    const auto error = [&](int draws) {
      return AggregateTask(task, scores, draws)[std::string(metric) + "_stderr,strict"];
    };
    EXPECT_EQ(error(100), error(3000)) << metric;
    EXPECT_NE(error(100), error(50)) << metric;
  }
}

}  // namespace
}  // namespace evald
