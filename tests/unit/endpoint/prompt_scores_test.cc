// Log-probabilities of prompts: the numbers do not depend on what was asked before, and shared
// prefixes are computed once.
#include "worker/endpoint/prompt_scores.h"

#include <gtest/gtest.h>

#include <future>

#include "scripted_engine.h"
#include "support.h"

namespace evald::endpoint::test {
namespace {

using Tokens = std::vector<int32_t>;

// The numbers of a score, to the last bit.
std::vector<double> Numbers(const PromptScore& score) {
  std::vector<double> numbers;
  for (const TokenReport& report : score.reports) {
    numbers.push_back(report.token);
    numbers.push_back(report.log_probability);
    for (const TokenLogProbability& likely : report.top) {
      numbers.push_back(likely.token);
      numbers.push_back(likely.log_probability);
    }
  }
  return numbers;
}

class PromptScoresTest : public ::testing::Test {
 protected:
  // Scores all prompts at once.
  static std::vector<PromptScore> ScoreAll(PromptScores* scores, const std::vector<Tokens>& prompts,
                                           int top) {
    std::vector<std::promise<PromptScore>> promises(prompts.size());
    std::vector<ScoreWish> wishes;
    for (size_t i = 0; i < prompts.size(); ++i) {
      wishes.push_back({prompts[i], top, [] { return true; },
                        [&, i](PromptScore score) { promises[i].set_value(std::move(score)); }});
    }
    EXPECT_TRUE(scores->Ask(std::move(wishes)));
    std::vector<PromptScore> results;
    for (auto& promise : promises) results.push_back(promise.get_future().get());
    return results;
  }
  // The same prompts by an engine and a memory of their own each.
  static std::vector<double> Alone(const Tokens& prompt, int top) {
    const std::unique_ptr<Engine> engine = LoadedEngine();
    EngineQueue queue(engine.get(), {}, [] {});
    PromptScores scores(&queue, true);
    return Numbers(ScoreAll(&scores, {prompt}, top)[0]);
  }

  // Questions with a long common beginning, and four choices each.
  static std::vector<Tokens> Prompts() {
    const auto tokenizer = Tokenizer::Load(Checkpoint());
    std::string common;
    for (int i = 0; i < 20; ++i)
      common += "The king of Aldor has " + std::to_string(i) + " ships.\n";
    std::vector<Tokens> prompts;
    for (const char* question : {"How many has he", "Who is the king", "Where is Aldor"}) {
      for (const char* choice : {" A", " B", " C", " D"})
        prompts.push_back(tokenizer->Encode(common + question + "\nAnswer:" + choice, false));
    }
    return prompts;
  }

  std::unique_ptr<Engine> engine_ = LoadedEngine();
};

TEST_F(PromptScoresTest, TheNumbersAreTheEnginesSums) {
  const Tokens prompt = Prompts()[0];
  const int split = static_cast<int>(prompt.size()) - 5;
  Request request;
  request.kind = RequestKind::kLoglikelihood;
  request.context_tokens.assign(prompt.begin(), prompt.begin() + split);
  request.continuation_tokens.assign(prompt.begin() + split, prompt.end());
  engine_->Submit(1, request);
  std::vector<Finished> finished;
  while (finished.empty()) finished = engine_->Step(std::chrono::seconds(1));
  EngineQueue queue(engine_.get(), {}, [] {});
  PromptScores scores(&queue, true);
  const PromptScore score = ScoreAll(&scores, {prompt}, 1)[0];
  ASSERT_EQ(score.reports.size() + 1, prompt.size());
  double sum = 0;
  bool greedy = true;
  for (size_t i = static_cast<size_t>(split); i < prompt.size(); ++i) {
    const TokenReport& report = score.reports[i - 1];
    EXPECT_EQ(report.token, prompt[i]);
    sum += report.log_probability;
    greedy = greedy && report.log_probability == report.top[0].log_probability;
  }
  EXPECT_EQ(sum, finished[0].generation.loglikelihood);
  EXPECT_EQ(greedy, finished[0].generation.is_greedy);
}

TEST_F(PromptScoresTest, NumbersDoNotDependOnOtherPrompts) {
  EngineQueue queue(engine_.get(), {}, [] {});
  PromptScores scores(&queue, true);
  const std::vector<Tokens> prompts = Prompts();
  for (int round = 0; round < 2; ++round) {
    const std::vector<PromptScore> found = ScoreAll(&scores, prompts, 3);
    for (const size_t i : {0, 5, 11}) EXPECT_EQ(Numbers(found[i]), Alone(prompts[i], 3)) << i;
  }
}

TEST_F(PromptScoresTest, SharedPrefixesAreComputedOnce) {
  const std::vector<Tokens> prompts = Prompts();
  EngineQueue queue(engine_.get(), {}, [] {});
  PromptScores scores(&queue, true);
  ScoreAll(&scores, prompts, 1);
  queue.Stop();
  const auto rows = engine_->WorkReport().at("rows_computed").get<size_t>();
  size_t tokens = 0;
  for (const Tokens& prompt : prompts) tokens += prompt.size();
  EXPECT_LT(rows, prompts[0].size() + prompts.size() * 40);
  EXPECT_GT(tokens, 8 * rows);  // or this test shows nothing
}

TEST_F(PromptScoresTest, AnEngineThatIsNotDeterministicComputesEveryPrompt) {
  const Tokens prompt = Prompts()[0];
  EngineQueue queue(engine_.get(), {}, [] {});
  PromptScores scores(&queue, false);
  for (int i = 0; i < 3; ++i) ScoreAll(&scores, {prompt}, 1);
  queue.Stop();
  const Json work = engine_->WorkReport();
  EXPECT_EQ(work.at("rows_computed").get<size_t>() + work.at("rows_reused").get<size_t>(),
            3 * (prompt.size() - 1));
}

TEST_F(PromptScoresTest, FewerLikeliestTokensAreCutFromMore) {
  const Tokens prompt = Prompts()[0];
  EngineQueue queue(engine_.get(), {}, [] {});
  PromptScores scores(&queue, true);
  EXPECT_EQ(Numbers(ScoreAll(&scores, {prompt}, 5)[0]), Alone(prompt, 5));
  EXPECT_EQ(Numbers(ScoreAll(&scores, {prompt}, 1)[0]), Alone(prompt, 1));
  EXPECT_EQ(Numbers(ScoreAll(&scores, {prompt}, 7)[0]), Alone(prompt, 7));
  EXPECT_EQ(ScoreAll(&scores, {prompt}, 0)[0].reports[0].top.size(), 0u);
}

TEST_F(PromptScoresTest, LittleMemoryChangesNoNumber) {
  const std::vector<Tokens> prompts = Prompts();
  EngineQueue queue(engine_.get(), {}, [] {});
  PromptScores scores(&queue, true, prompts[0].size() + 10);
  for (const Tokens& prompt : prompts) ScoreAll(&scores, {prompt}, 1);
  EXPECT_EQ(Numbers(ScoreAll(&scores, {prompts[3]}, 1)[0]), Alone(prompts[3], 1));
}

TEST_F(PromptScoresTest, APromptOfOneTokenHasNoNumbers) {
  EngineQueue queue(engine_.get(), {}, [] {});
  PromptScores scores(&queue, true);
  const PromptScore score = ScoreAll(&scores, {{5}}, 1)[0];
  EXPECT_TRUE(score.reports.empty());
  EXPECT_FALSE(score.refused);
}

TEST(PromptScores, ThoseWhoWaitedAskAgainIfTheFirstIsGivenUp) {
  ScriptedEngine engine;
  EngineQueue queue(&engine, {}, [] {});
  PromptScores scores(&queue, true);
  std::atomic<bool> first_wanted{true};
  std::promise<PromptScore> first, second;
  std::vector<ScoreWish> wishes;
  Tokens tokens(100, 1);
  wishes.push_back({tokens, 1, [&] { return first_wanted.load(); },
                    [&](PromptScore score) { first.set_value(std::move(score)); }});
  ASSERT_TRUE(scores.Ask(std::move(wishes)));
  tokens.back() = 2;
  wishes = {};
  wishes.push_back({tokens, 1, [] { return true; },
                    [&](PromptScore score) { second.set_value(std::move(score)); }});
  ASSERT_TRUE(scores.Ask(std::move(wishes)));
  EXPECT_EQ(queue.under_way(), 1u);  // the second waits
  first_wanted = false;
  EXPECT_TRUE(first.get_future().get().refused);
  engine.AnswerFromNowOn();
  EXPECT_FALSE(second.get_future().get().refused);
}

TEST(PromptScores, AFullEngineTakesNone) {
  ScriptedEngine engine;
  EngineQueue queue(&engine, {1, 1000}, [] {});
  PromptScores scores(&queue, true);
  std::vector<ScoreWish> wishes;
  for (int32_t i = 1; i <= 2; ++i) {
    wishes.push_back({Tokens(10, i), 1, [] { return true; },
                      [](PromptScore) { ADD_FAILURE() << "nothing was taken"; }});
  }
  EXPECT_FALSE(scores.Ask(std::move(wishes)));
  EXPECT_EQ(queue.under_way(), 0u);
}

}  // namespace
}  // namespace evald::endpoint::test
