#include "orchestrator/watch/scan_turns.h"

#include <gtest/gtest.h>

#include <future>

namespace evald {
namespace {

using Turn = std::shared_ptr<void>;

class ScanTurnsTest : public testing::Test {
 protected:
  std::future<Turn> Ask(const std::string& user) {
    return std::async(std::launch::async, [this, user] { return turns_.Wait(user, ending_); });
  }

  ScanTurns turns_{2};
  std::atomic<bool> ending_{false};
};

TEST_F(ScanTurnsTest, AsManyAtOnceAsAreAllowed) {
  Turn first = turns_.Wait("ada", ending_);
  const Turn second = turns_.Wait("bob", ending_);
  std::future<Turn> third = Ask("eve");
  EXPECT_EQ(third.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  first.reset();
  EXPECT_NE(third.get(), nullptr);
}

TEST_F(ScanTurnsTest, OneOfAUserWhileOthersGo) {
  Turn own = turns_.Wait("ada", ending_);
  std::future<Turn> again = Ask("ada");
  EXPECT_EQ(again.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  EXPECT_NE(turns_.Wait("bob", ending_), nullptr);  // although ada's came before
  own.reset();
  EXPECT_NE(again.get(), nullptr);
}

TEST_F(ScanTurnsTest, AWatchThatEndsWaitsNoLonger) {
  const Turn own = turns_.Wait("ada", ending_);
  std::future<Turn> again = Ask("ada");
  ending_ = true;
  EXPECT_EQ(again.get(), nullptr);
}

}  // namespace
}  // namespace evald
