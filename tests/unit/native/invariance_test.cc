// No answer depends on the requests that are computed beside it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "evald/generation.h"
#include "native_test_util.h"

namespace evald::native {
namespace {

// Answers in the order of the requests' keys, whatever the order of submission.
std::vector<std::string> Lines(const std::string& name, std::vector<Request> requests,
                               unsigned shuffle, const Json& settings, int threads) {
  if (shuffle != 0) std::shuffle(requests.begin(), requests.end(), std::mt19937(shuffle));
  return AnswerLines(LoadedEngine(GoldenPath(name), settings, threads).get(), requests);
}

class InvarianceTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Checkpoints, InvarianceTest, testing::ValuesIn(GoldenNames()),
                         [](const auto& info) { return info.param; });

TEST_P(InvarianceTest, OrderThreadsChunksAndCacheDoNotMatter) {
  const std::vector<Request> requests = MixedRequests();
  const auto expected = Lines(GetParam(), requests, 0, Json::object(), 1);
  EXPECT_EQ(Lines(GetParam(), requests, 0, {{"concurrency", 1}}, 1), expected) << "one by one";
  EXPECT_EQ(Lines(GetParam(), requests, 1, {{"chunk", 7}}, 2), expected);
  EXPECT_EQ(Lines(GetParam(), requests, 2, {{"chunk", 1}, {"concurrency", 5}}, 1), expected);
  EXPECT_EQ(Lines(GetParam(), requests, 3, {{"concurrency", 64}}, 3), expected);
  // Memory for one sequence of the context's length (four pages) and hardly more.
  const ModelConfig config = ReadModelConfig(GoldenPath(GetParam()));
  const uint64_t page = PageLayout(config).bytes();
  EXPECT_EQ(Lines(GetParam(), requests, 4, {{"kv_cache", 4 * page}}, 2), expected);
  EXPECT_EQ(Lines(GetParam(), requests, 5, {{"kv_cache", 9 * page}, {"chunk", 33}}, 1), expected);
}

TEST_P(InvarianceTest, NeitherWithTheInstructionSetCapped) {
  const std::vector<Request> requests = MixedRequests();
  for (const std::string& kernels : AllKernels()) {
    const auto expected =
        Lines(GetParam(), requests, 0, {{"kernels", kernels}, {"concurrency", 1}}, 1);
    EXPECT_EQ(Lines(GetParam(), requests, 6, {{"kernels", kernels}, {"chunk", 19}}, 2), expected)
        << kernels;
  }
}

TEST_P(InvarianceTest, LogitsOfEveryChunking) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 200; ++i) tokens.push_back(i * 37 % 318 + 2);
  const std::vector<int64_t> positions = {0, 1, 17, 63, 64, 65, 128, 199};
  for (const std::string& kernels : AllKernels()) {
    BareModel model(GoldenPath(GetParam()), kernels);
    const auto expected = model.Logits(tokens, positions, 200);
    for (const int64_t chunk : {1, 2, 13, 64, 100}) {
      EXPECT_EQ(model.Logits(tokens, positions, chunk), expected) << kernels << " " << chunk;
    }
    BareModel threaded(GoldenPath(GetParam()), kernels, 3);
    EXPECT_EQ(threaded.Logits(tokens, positions, 50), expected) << kernels;
  }
}

TEST(SeedTest, DecidesSamplesOnly) {
  std::vector<Request> requests;
  for (int doc = 0; doc < 8; ++doc) {
    requests.push_back(GenerateRequest("The answer is", {}, 10));
    requests.back().doc_id = doc;
    requests.back().sampling.do_sample = doc > 0;
  }
  const auto texts = [&](uint64_t seed) {
    const auto engine = LoadedEngine(GoldenPath("linear"), Json::object(), 1, seed);
    std::vector<std::string> result;
    for (const Generation& g : AnswerAll(engine.get(), requests)) result.push_back(g.text);
    return result;
  };
  const auto one = texts(1), again = texts(1), two = texts(2);
  EXPECT_EQ(one, again);
  EXPECT_EQ(one[0], two[0]);
  EXPECT_NE(one, two);
  EXPECT_NE(one[1], one[2]) << "documents draw numbers of their own";
}

}  // namespace
}  // namespace evald::native
