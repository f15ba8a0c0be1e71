#include "orchestrator/devices/device_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evald {
namespace {

using testing::HasSubstr;

constexpr int64_t kMinute = 60'000'000;
constexpr const char* kGpu = "local/cuda:GPU-a";

TEST(DeviceBook, ThreeFailuresSetADeviceAsideWithTheLastCause) {
  DeviceBook book;
  EXPECT_FALSE(book.Failed(kGpu, "a kernel failed", 0));
  EXPECT_FALSE(book.Failed(kGpu, "a kernel failed", kMinute));
  EXPECT_FALSE(book.aside(kGpu));
  EXPECT_TRUE(book.Failed(kGpu, "it is lost", 2 * kMinute));
  ASSERT_TRUE(book.aside(kGpu));
  EXPECT_THAT(*book.aside(kGpu), HasSubstr("failed 3 times within 10 minutes"));
  EXPECT_THAT(*book.aside(kGpu), HasSubstr("it is lost"));
}

TEST(DeviceBook, ItIsSetAsideOnce) {
  DeviceBook book;
  for (int i = 0; i < 3; ++i) book.Failed(kGpu, "lost", i);
  const std::string why = *book.aside(kGpu);
  EXPECT_FALSE(book.Failed(kGpu, "another cause", 4));
  EXPECT_EQ(*book.aside(kGpu), why);
}

TEST(DeviceBook, OthersDoNotCount) {
  DeviceBook book;
  EXPECT_FALSE(book.Failed(kGpu, "lost", 0));
  EXPECT_FALSE(book.Failed("local/cuda:GPU-b", "lost", 1));
  EXPECT_FALSE(book.Failed("north/cuda:GPU-a", "lost", 2));
  EXPECT_FALSE(book.Failed(kGpu, "lost", 3));
  EXPECT_FALSE(book.aside("local/cuda:GPU-b"));
}

TEST(DeviceBook, AFinishedTrialForgivesWhatWasBefore) {
  DeviceBook book;
  book.Failed(kGpu, "lost", 0);
  book.Failed(kGpu, "lost", 1);
  book.Finished(kGpu);
  EXPECT_FALSE(book.Failed(kGpu, "lost", 2));
  EXPECT_FALSE(book.Failed(kGpu, "lost", 3));
  EXPECT_TRUE(book.Failed(kGpu, "lost", 4));
}

TEST(DeviceBook, AFinishedTrialBringsNoDeviceBack) {
  DeviceBook book;
  for (int i = 0; i < 3; ++i) book.Failed(kGpu, "lost", i);
  book.Finished(kGpu);  // the trial was committed after the worker's end
  EXPECT_TRUE(book.aside(kGpu));
}

TEST(DeviceBook, OnlyFailuresWithinTheWindowCount) {
  DeviceBook book;
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(book.Failed(kGpu, "lost", i * (5 * kMinute + 1))) << i;
  // With this one, three failures are within the window: the others are 1 and about 6 minutes old.
  EXPECT_TRUE(book.Failed(kGpu, "lost", 99 * (5 * kMinute + 1) + kMinute));
}

TEST(DeviceBook, TheWindowsEndBelongsToIt) {
  DeviceBook book;
  book.Failed(kGpu, "lost", 0);
  book.Failed(kGpu, "lost", kMinute);
  EXPECT_TRUE(book.Failed(kGpu, "lost", 10 * kMinute));
  DeviceBook late;
  late.Failed(kGpu, "lost", 0);
  late.Failed(kGpu, "lost", kMinute);
  EXPECT_FALSE(late.Failed(kGpu, "lost", 10 * kMinute + 1));
}

TEST(DeviceBook, AHostThatComesAnewIsGivenAnotherChance) {
  DeviceBook book;
  for (int i = 0; i < 3; ++i) book.Failed(kGpu, "lost", i);
  book.Forget(kGpu);
  EXPECT_FALSE(book.aside(kGpu));
  EXPECT_FALSE(book.Failed(kGpu, "lost", 4));
}

}  // namespace
}  // namespace evald
