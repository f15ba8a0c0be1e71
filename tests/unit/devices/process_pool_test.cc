// Slots of processes as a fleet gives them up, with a host that only takes notes.
#include "orchestrator/fleet/process_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace evald {
namespace {

using testing::ElementsAre;

class NotingHost : public Host {
 public:
  void Start(const ProcessSpec& spec) override { started.push_back(spec.id); }
  void Send(const std::string&, const protocol::Message&) override {}
  void Kill(const std::string&) override {}
  void StopAll(std::chrono::milliseconds, std::function<void()> done) override { done(); }

  std::vector<std::string> started;
};

class ProcessPoolTest : public testing::Test {
 protected:
  ProcessPoolTest() : pool_(&loop_, &host_, 6) {
    for (const char* id : {"w0", "w1"}) {
      pool_.AddSlot(id);
      pool_.Assign({id, "evald-worker", {}, "t"}, "t");
    }
  }
  // Lets time pass, for processes that are to be started again.
  void Wait(std::chrono::milliseconds time) {
    loop_.After(time, [this] { loop_.Stop(); });
    loop_.Run();
  }

  Loop loop_;
  NotingHost host_;
  ProcessPool pool_;
};

TEST_F(ProcessPoolTest, WhatEndedIsStartedAgain) {
  pool_.Exited("w0", "exit status 3");
  EXPECT_FALSE(pool_.given_up("w0"));
  Wait(std::chrono::milliseconds(400));
  EXPECT_THAT(host_.started, ElementsAre("w0", "w1", "w0"));
}

TEST_F(ProcessPoolTest, WhatIsGivenUpIsNot) {
  pool_.NoteCause("w0", "a kernel failed");
  EXPECT_EQ(pool_.cause("w0"), "a kernel failed");
  pool_.GaveUp("w0", "device cuda:GPU-a is set aside");
  EXPECT_TRUE(pool_.given_up("w0"));
  EXPECT_EQ(pool_.last_exit(), "w0: device cuda:GPU-a is set aside");
  EXPECT_EQ(pool_.cause("w0"), "");
  Wait(std::chrono::milliseconds(400));
  EXPECT_THAT(host_.started, ElementsAre("w0", "w1"));
  EXPECT_FALSE(pool_.exhausted());
  pool_.GaveUp("w1", "device cuda:GPU-b is set aside");
  EXPECT_TRUE(pool_.exhausted());
}

TEST_F(ProcessPoolTest, WhatRunsButIsOfNoUseDoesNotCount) {
  pool_.GaveUp("w0", "set aside");
  EXPECT_TRUE(pool_.exhausted([](const std::string& id) { return id == "w1"; }));
  EXPECT_FALSE(pool_.exhausted([](const std::string& id) { return id == "w0"; }));
}

TEST_F(ProcessPoolTest, WhatSaysThatItWaitsIsNotLate) {
  const int64_t now = MonotonicMicros() + 90'000'000;
  EXPECT_THAT(pool_.NotConnectedFor(60'000'000, now), ElementsAre("w0", "w1"));
  pool_.StillStarting("w0", now - 10'000'000);
  EXPECT_THAT(pool_.NotConnectedFor(60'000'000, now), ElementsAre("w1"));
}

// A run whose devices went with their host waits for them, whatever ends meanwhile.
TEST_F(ProcessPoolTest, WhatLeftIsNotGivenUp) {
  pool_.Retire("w0");
  const auto useless = [](const std::string& id) { return id == "w1"; };
  EXPECT_FALSE(pool_.exhausted(useless));
  pool_.GaveUp("w1", "exit status 3");
  EXPECT_FALSE(pool_.exhausted(useless));
  EXPECT_TRUE(pool_.exhausted());
}

}  // namespace
}  // namespace evald
