#include "bench/gpu/activity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::bench {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

Activity Kernel(double begin, double end, uint32_t name = 0) {
  return {static_cast<uint64_t>(begin * kSecond), static_cast<uint64_t>(end * kSecond), 0,
          Activity::kKernel, name};
}
Activity Copy(double begin, double end, uint64_t bytes) {
  return {static_cast<uint64_t>(begin * kSecond), static_cast<uint64_t>(end * kSecond), bytes,
          Activity::kCopyToDevice, 0};
}

TEST(ShareBusyTest, CountsFromTheLastWeightToTheLastKernel) {
  ActivityTrace trace;
  // Activities in no order. The last weights arrive at 2 s. A kernel before that time and a copy
  // after it do not count.
  trace.activities = {Kernel(5, 6),     Kernel(0, 1),   Copy(1, 2, 60),
                      Copy(0.5, 1, 40), Kernel(2.5, 4), Copy(8, 9, 500)};
  const BusyShare share = ShareBusy(trace, 100);
  EXPECT_DOUBLE_EQ(share.window_seconds, 4);
  EXPECT_DOUBLE_EQ(share.busy_seconds, 2.5);
  EXPECT_DOUBLE_EQ(share.share, 0.625);
}

TEST(ShareBusyTest, KernelsAtTheSameTimeCountOnce) {
  ActivityTrace trace;
  trace.activities = {Copy(0, 1, 10), Kernel(1, 3), Kernel(2, 4), Kernel(2.5, 2.75), Kernel(9, 10)};
  const BusyShare share = ShareBusy(trace, 10);
  EXPECT_DOUBLE_EQ(share.window_seconds, 9);
  EXPECT_DOUBLE_EQ(share.busy_seconds, 4);
}

TEST(ShareBusyTest, AKernelThatRunsAcrossTheBeginCountsFromThere) {
  ActivityTrace trace;
  trace.activities = {Kernel(0, 3), Copy(0, 2, 10)};
  const BusyShare share = ShareBusy(trace, 10);
  EXPECT_DOUBLE_EQ(share.window_seconds, 1);
  EXPECT_DOUBLE_EQ(share.share, 1);
}

TEST(ShareBusyTest, CopiesAreNoComputing) {
  ActivityTrace trace;
  trace.activities = {Copy(0, 1, 10), Kernel(1, 2), Copy(1.5, 3, 1), Kernel(4, 5)};
  const BusyShare share = ShareBusy(trace, 10);
  EXPECT_DOUBLE_EQ(share.busy_seconds, 2);
  EXPECT_DOUBLE_EQ(share.copies_seconds, 1);
}

TEST(ShareBusyTest, GapsAreSortedByLength) {
  ActivityTrace trace;
  trace.activities = {Copy(0, 1, 10), Kernel(1, 2), Kernel(2.5, 3), Kernel(3.05, 4),
                      Kernel(4.000005, 5)};
  const BusyShare share = ShareBusy(trace, 10);
  ASSERT_EQ(share.gaps_seconds.size(), 6U);
  EXPECT_NEAR(share.gaps_seconds[0], 5e-6, 1e-9);
  EXPECT_NEAR(share.gaps_seconds[4], 0.05, 1e-9);
  EXPECT_NEAR(share.gaps_seconds[5], 0.5, 1e-9);
  ASSERT_EQ(share.longest.size(), 3U);
  EXPECT_NEAR(share.longest[0].at_seconds, 1, 1e-9);
  EXPECT_NEAR(share.longest[0].seconds, 0.5, 1e-9);
  double all = share.busy_seconds;
  for (const double seconds : share.gaps_seconds) all += seconds;
  EXPECT_NEAR(all, share.window_seconds, 1e-6);
}

TEST(ShareBusyTest, WithoutTheWeightsThereIsNoWindow) {
  ActivityTrace trace;
  trace.activities = {Copy(0, 1, 99), Kernel(1, 2)};
  EXPECT_EQ(ShareBusy(trace, 100).window_seconds, 0);
  EXPECT_EQ(ShareBusy({}, 1).window_seconds, 0);
}

class ReadActivityTest : public testing::Test {
 protected:
  void Write(const std::string& name, const std::vector<Activity>& activities, size_t cut = 0) {
    const std::string bytes(reinterpret_cast<const char*>(activities.data()),
                            activities.size() * sizeof(Activity));
    WriteFileAtomic(folder_ / name, bytes.substr(0, bytes.size() - cut));
  }
  TemporaryFolder folder_;
};

TEST_F(ReadActivityTest, ReadsEachProcess) {
  Write("17.activity", {Copy(0, 1, 10), Kernel(1, 3, 1)});
  WriteFileAtomic(folder_ / "17.names", "first\n_ZN5evald4NormEv\n");
  Write("18.activity", {});
  const auto traces = ReadActivity(folder_.path());
  ASSERT_EQ(traces.size(), 2U);
  EXPECT_TRUE(traces.at(18).activities.empty());
  const BusyShare share = ShareBusy(traces.at(17), 10);
  ASSERT_EQ(share.kernel_seconds.size(), 1U);
  EXPECT_DOUBLE_EQ(share.kernel_seconds.at("evald::Norm()"), 2);
}

TEST_F(ReadActivityTest, RefusesAFileThatIsCutOff) {
  Write("17.activity", {Kernel(0, 1)}, 5);
  EXPECT_THROW(ReadActivity(folder_.path()), Error);
}

}  // namespace
}  // namespace evald::bench
