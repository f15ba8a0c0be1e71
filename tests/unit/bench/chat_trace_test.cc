#include "bench/gpu/chat_trace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace evald::bench {
namespace {

// The means that the source gives for its 2,104 requests.
constexpr double kPromptMean = 500'552.0 / 2104, kOutputMean = 424'529.0 / 2104;

TEST(ChatTraceTest, HasTheSourcesMeans) {
  double prompts = 0, outputs = 0;
  const auto trace = ChatTrace(1000, 7);
  for (const ChatLengths& lengths : trace) {
    prompts += lengths.prompt;
    outputs += lengths.output;
  }
  EXPECT_NEAR(prompts / 1000, kPromptMean, 0.04 * kPromptMean);
  EXPECT_NEAR(outputs / 1000, kOutputMean, 0.04 * kOutputMean);
}

TEST(ChatTraceTest, HasTheSourcesHistogram) {
  const auto trace = ChatTrace(2104, 7);
  const auto prompts_to = [&](int most) {
    return std::count_if(trace.begin(), trace.end(),
                         [&](const ChatLengths& x) { return x.prompt <= most; });
  };
  const auto outputs_to = [&](int most) {
    return std::count_if(trace.begin(), trace.end(),
                         [&](const ChatLengths& x) { return x.output <= most; });
  };
  EXPECT_NEAR(prompts_to(20), 511, 1);
  EXPECT_NEAR(prompts_to(200), 1182, 1);
  EXPECT_NEAR(prompts_to(1000), 2102, 1);
  EXPECT_NEAR(outputs_to(5), 49, 1);
  EXPECT_NEAR(outputs_to(500), 1883, 1);
  EXPECT_EQ(outputs_to(2000), 2104);
  for (const ChatLengths& lengths : trace) {
    EXPECT_GE(lengths.prompt, 3);
    EXPECT_GE(lengths.output, 3);
  }
}

TEST(ChatTraceTest, PairsAtRandomButTheSameEachTime) {
  const auto one = ChatTrace(500, 7), same = ChatTrace(500, 7), other = ChatTrace(500, 8);
  int equal = 0, apart = 0;
  for (size_t i = 0; i < one.size(); ++i) {
    equal += one[i].prompt == same[i].prompt && one[i].output == same[i].output;
    apart += one[i].prompt != other[i].prompt;
  }
  EXPECT_EQ(equal, 500);
  EXPECT_GT(apart, 400);
}

}  // namespace
}  // namespace evald::bench
