// bleu, chrf, chrf++ and ter against sacrebleu by way of lm_eval (tests/oracle/corpus_golden.py).
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "metrics/scoring/aggregations.h"
#include "metrics/scoring/score_number.h"
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

}  // namespace
}  // namespace evald
