#include "worker/server/self_test.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/temporary_folder.h"
#include "tiny_tokenizer.h"

namespace evald::server {
namespace {

using test::Fault;
using testing::HasSubstr;

ScoringVerdict Judge(Fault fault) {
  const TemporaryFolder folder;
  test::WriteTinyCheckpoint(folder.path(), 512);
  const auto tokenizer = Tokenizer::Load(folder.path());
  CompletionsStyle style;
  style.tokens = true;
  return TestScoring(style, *tokenizer, [fault](const Json& body) {
    return ParseCompletion(ToLine(test::ToyCompletion(body, fault)));
  });
}

TEST(TestScoring, AServerThatScoresRightlyIsTrusted) {
  const ScoringVerdict verdict = Judge(Fault::kNone);
  EXPECT_TRUE(verdict.right) << verdict.reason;
  EXPECT_THAT(verdict.reason, HasSubstr("agree"));
}

TEST(TestScoring, EveryFaultIsFound) {
  const std::pair<Fault, const char*> cases[] = {
      {Fault::kNoLogprobs, "no log-probabilities"},
      {Fault::kConstant, "the same log-probability"},
      {Fault::kShifted, "as part of the prompt"},
      {Fault::kChance, "as part of the prompt"},
      {Fault::kContextFree, "as part of the prompt"},
      {Fault::kGreedyAlways, "likeliest"},
      {Fault::kShort, "came back with"},
  };
  for (const auto& [fault, reason] : cases) {
    const ScoringVerdict verdict = Judge(fault);
    EXPECT_FALSE(verdict.right) << reason;
    EXPECT_THAT(verdict.reason, HasSubstr(reason));
  }
}

TEST(TestScoring, AnErrorIsAReason) {
  const TemporaryFolder folder;
  test::WriteTinyCheckpoint(folder.path(), 512);
  const ScoringVerdict verdict =
      TestScoring({}, *Tokenizer::Load(folder.path()), [](const Json&) -> Completion {
        throw Error(ErrorKind::kInfrastructure, "status 400: echo is not supported");
      });
  EXPECT_FALSE(verdict.right);
  EXPECT_THAT(verdict.reason, HasSubstr("echo is not supported"));
}

TEST(SumLogprobs, OfAPartOfThePrompt) {
  const double none = std::nan("");
  Completion completion;
  completion.tokens = {{none, none, {}}, {-1, -1, {}}, {-2, -0.5, {}}, {-4, -4, {}}};
  bool greedy = false;
  EXPECT_EQ(SumLogprobs(completion, 1, 2, &greedy), -1);
  EXPECT_TRUE(greedy);
  EXPECT_EQ(SumLogprobs(completion, 1, 4, &greedy), -7);
  EXPECT_FALSE(greedy);
  EXPECT_THROW(SumLogprobs(completion, 0, 2, &greedy), Error);
  EXPECT_THROW(SumLogprobs(completion, 1, 5, &greedy), Error);
}

}  // namespace
}  // namespace evald::server
