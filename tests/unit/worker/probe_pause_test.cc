// The pauses between questions to a server whether it is ready.
#include <gtest/gtest.h>

#include "worker/server/server.h"

namespace evald::server {
namespace {

using std::chrono::milliseconds;

TEST(ProbePause, AGivenServerIsAskedLessAndLessOften) {
  EXPECT_EQ(ProbePause(false, 0, 0.5), milliseconds(500));
  EXPECT_EQ(ProbePause(false, 1, 0.5), milliseconds(750));
  milliseconds before{0}, total{0};
  int asked = 0;
  for (; total < std::chrono::seconds(60); ++asked) {
    const milliseconds pause = ProbePause(false, asked, 0.5);
    EXPECT_GE(pause, before);
    EXPECT_LE(pause, std::chrono::seconds(5));
    before = pause;
    total += pause;
  }
  EXPECT_LE(asked, 17);
  EXPECT_EQ(ProbePause(false, 1'000'000, 0.5), std::chrono::seconds(5));
}

TEST(ProbePause, WorkersDoNotAskInStep) {
  EXPECT_EQ(ProbePause(false, 100, 0.0), milliseconds(3750));
  EXPECT_NEAR(static_cast<double>(ProbePause(false, 100, 0.999).count()), 6250, 10);
}

TEST(ProbePause, AServerThatWasStartedHereIsAskedOften) {
  for (const int asked : {0, 10, 1000}) EXPECT_EQ(ProbePause(true, asked, 0.9), milliseconds(200));
}

}  // namespace
}  // namespace evald::server
