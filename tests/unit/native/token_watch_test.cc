// Reports on single tokens, and requests that are cancelled.
#include "worker/engine/token_watch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "native_test_util.h"
#include "worker/native/likeliest.h"

namespace evald::native {
namespace {

std::vector<Request> WatchedRequests() {
  std::vector<Request> requests = MixedRequests();
  std::erase_if(requests,
                [](const Request& r) { return r.kind == RequestKind::kLoglikelihoodRolling; });
  return requests;
}

class TokenWatchTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, TokenWatchTest, testing::Values("llama3", "linear", "qwen2"),
                         [](const auto& info) { return info.param; });

TEST_P(TokenWatchTest, ChangesNoAnswer) {
  const std::vector<Request> requests = WatchedRequests();
  const auto engine = LoadedEngine(GoldenPath(GetParam()));
  const std::vector<Generation> expected = AnswerAll(engine.get(), requests);
  for (const int top : {TokenWatch::kNoLogProbabilities, 0, 1, 5}) {
    const std::vector<Watched> watched = WatchAll(engine.get(), requests, top);
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(watched[i].generation.text, expected[i].text);
      EXPECT_EQ(watched[i].generation.loglikelihood, expected[i].loglikelihood);
      EXPECT_EQ(watched[i].generation.is_greedy, expected[i].is_greedy);
      EXPECT_EQ(watched[i].reports.size(), static_cast<size_t>(expected[i].tokens_out));
    }
  }
}

TEST_P(TokenWatchTest, AScoredContinuationIsTheSumOfItsTokens) {
  const auto engine = LoadedEngine(GoldenPath(GetParam()));
  for (const Watched& watched : WatchAll(engine.get(), WatchedRequests(), 3)) {
    double sum = 0;
    bool greedy = true;
    for (const TokenReport& report : watched.reports) {
      sum += report.log_probability;
      greedy = greedy && report.token == report.top.at(0).token;
    }
    if (watched.generation.kind != RequestKind::kLoglikelihood) continue;
    EXPECT_EQ(sum, watched.generation.loglikelihood);
    EXPECT_EQ(greedy, watched.generation.is_greedy);
  }
}

TEST_P(TokenWatchTest, ReportsAreThoseOfTheLogits) {
  const std::vector<int32_t> prompt = {5, 9, 12, 40, 7};
  Request request = GenerateRequest("", {}, 6);
  request.context_tokens = prompt;
  const auto engine = LoadedEngine(GoldenPath(GetParam()));
  const Watched watched = WatchAll(engine.get(), {request}, 4)[0];
  std::vector<int32_t> tokens = prompt;
  for (const TokenReport& report : watched.reports) tokens.push_back(report.token);
  BareModel model(GoldenPath(GetParam()));
  std::vector<int64_t> positions;
  for (size_t i = prompt.size() - 1; i + 1 < tokens.size(); ++i)
    positions.push_back(static_cast<int64_t>(i));
  const auto logits = model.Logits(tokens, positions, 64);
  for (size_t i = 0; i < watched.reports.size(); ++i) {
    const TokenReport& report = watched.reports[i];
    double total = 0;
    for (const float logit : logits[i]) total += std::exp(static_cast<double>(logit));
    EXPECT_NEAR(report.log_probability,
                logits[i][static_cast<size_t>(report.token)] - std::log(total), 1e-4);
    ASSERT_EQ(report.top.size(), 4u);
    EXPECT_EQ(report.top[0].token, report.token);  // greedy
    std::vector<float> sorted = logits[i];
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (size_t n = 0; n < 4; ++n) {
      EXPECT_EQ(logits[i][static_cast<size_t>(report.top[n].token)], sorted[n]);
      EXPECT_NEAR(report.top[n].log_probability, sorted[n] - std::log(total), 1e-4);
    }
  }
}

TEST(TokenWatch, LogitsThatSettingsChangeAreReportedAsTheyWere) {
  const auto engine = LoadedEngine(GoldenPath("llama3"));
  Request plain = GenerateRequest("The answer is", {}, 1);
  Request changed = plain;
  changed.sampling.settings = {{"repetition_penalty", 1.5}, {"suppress_tokens", {3, 4}}};
  const std::vector<Watched> watched = WatchAll(engine.get(), {plain, changed}, 8);
  for (size_t n = 0; n < 8; ++n) {
    EXPECT_EQ(watched[0].reports[0].top[n].token, watched[1].reports[0].top[n].token);
    EXPECT_NEAR(watched[0].reports[0].top[n].log_probability,
                watched[1].reports[0].top[n].log_probability, 1e-6);
  }
}

TEST(TokenWatch, LogitsWithoutASoftmaxHaveNoNumbers) {
  CheckpointCopy copy("linear");
  copy.MakeEmbeddingNan(5);
  const auto engine = LoadedEngine(copy.path());
  Request score = ScoreRequest("", "");
  score.context_tokens = {7};
  score.continuation_tokens = {8, 5, 9};
  Request generate = GenerateRequest("", {}, 1);
  generate.context_tokens = {5};
  for (const int top : {0, 2}) {
    const std::vector<Watched> watched = WatchAll(engine.get(), {score, generate}, top);
    EXPECT_TRUE(std::isfinite(watched[0].reports[1].log_probability));
    EXPECT_TRUE(std::isnan(watched[0].reports[2].log_probability));
    EXPECT_TRUE(watched[0].reports[2].top.empty());
    EXPECT_TRUE(std::isnan(watched[1].reports[0].log_probability));
    EXPECT_TRUE(watched[1].reports[0].top.empty());
  }
}

TEST(TokenWatch, RollingRequestsAreNotWatched) {
  const auto engine = LoadedEngine(GoldenPath("llama3"));
  Request request = GenerateRequest("text", {}, 1);
  request.kind = RequestKind::kLoglikelihoodRolling;
  EXPECT_THROW(engine->SubmitWatched(1, request, {}), Error);
  EXPECT_EQ(engine->pending(), 0u);
}

TEST(Likeliest, AmongEqualOnesTheLowerIdComesFirst) {
  const std::vector<float> logits = {1, 3, -INFINITY, 3, 2, 3};
  const auto likely = Likeliest(logits.data(), 6, 4, 3, 0.5);
  ASSERT_EQ(likely.size(), 4u);
  const std::vector<int32_t> tokens = {1, 3, 5, 4};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(likely[i].token, tokens[i]);
  EXPECT_EQ(likely[0].log_probability, -0.5);
  EXPECT_EQ(likely[3].log_probability, -1.5);
  EXPECT_EQ(Likeliest(logits.data(), 6, 10, 3, 0).size(), 5u);  // not minus infinity
  EXPECT_TRUE(Likeliest(logits.data(), 6, 0, 3, 0).empty());
}

// ---- Cancel

// Requests that share a long prefix, so that some wait for others to compute it.
std::vector<Request> SharedRequests(int count, int max_gen_toks) {
  std::vector<Request> requests;
  for (int doc = 0; doc < count; ++doc) {
    Request request = GenerateRequest("", {}, max_gen_toks);
    request.context_tokens.assign(60, 9);
    request.context_tokens.push_back(10 + doc);
    request.doc_id = doc;
    requests.push_back(std::move(request));
  }
  return requests;
}

TEST(Cancel, TheOthersAreAnsweredAsBefore) {
  const std::vector<Request> requests = SharedRequests(12, 20);
  const auto fresh = LoadedEngine(GoldenPath("llama3"));
  const std::vector<Generation> expected = AnswerAll(fresh.get(), requests);
  // Active, parked and waiting ones, before and after so many steps
  for (const int steps : {0, 1, 2, 8}) {
    const auto engine = LoadedEngine(GoldenPath("llama3"), {{"concurrency", 4}, {"chunk", 16}});
    for (size_t i = 0; i < requests.size(); ++i) engine->Submit(i, requests[i]);
    for (int step = 0; step < steps; ++step) engine->Step(std::chrono::milliseconds(0));
    for (size_t i = 0; i < requests.size(); i += 2) EXPECT_TRUE(engine->Cancel(i)) << steps;
    EXPECT_FALSE(engine->Cancel(0));
    EXPECT_EQ(engine->pending(), 6u);
    size_t answered = 0;
    while (engine->pending() > 0) {
      for (const Finished& finished : engine->Step(std::chrono::milliseconds(50))) {
        ASSERT_EQ(finished.tag % 2, 1u);
        EXPECT_EQ(finished.generation.text, expected[finished.tag].text);
        ++answered;
      }
    }
    EXPECT_EQ(answered, 6u);
  }
}

TEST(Cancel, GivesBackMemory) {
  // Each request needs most of the cache.
  const auto engine = LoadedEngine(GoldenPath("llama3"), {{"concurrency", 4}});
  const auto tight = LoadedEngine(GoldenPath("llama3"), {{"concurrency", 4}, {"kv_cache", "1MiB"}});
  for (uint64_t round = 0; round < 200; ++round) {
    for (uint64_t i = 0; i < 4; ++i) {
      Request request = GenerateRequest("", {}, 100);
      request.context_tokens.assign(40, static_cast<int32_t>(10 + (round * 4 + i) % 200));
      tight->Submit(round * 4 + i, request);
    }
    for (int step = 0; step < 3; ++step) tight->Step(std::chrono::milliseconds(0));
    for (uint64_t i = 0; i < 4; ++i) EXPECT_TRUE(tight->Cancel(round * 4 + i));
    EXPECT_EQ(tight->pending(), 0u);
  }
  const std::vector<Request> requests = SharedRequests(3, 20);
  EXPECT_EQ(AnswerLines(tight.get(), requests), AnswerLines(engine.get(), requests));
}

TEST(Cancel, AFinishedRequestIsForgottenToo) {
  const auto engine = LoadedEngine(GoldenPath("llama3"));
  Request request = GenerateRequest("", {}, 1);
  request.kind = RequestKind::kLoglikelihoodRolling;  // without tokens: finished at once
  engine->Submit(7, request);
  EXPECT_TRUE(engine->Cancel(7));
  EXPECT_EQ(engine->pending(), 0u);
}

}  // namespace
}  // namespace evald::native
