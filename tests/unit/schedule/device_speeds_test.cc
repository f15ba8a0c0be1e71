#include "orchestrator/schedule/device_speeds.h"

#include <gtest/gtest.h>

#include <random>

namespace evald {
namespace {

TEST(DeviceSpeeds, NothingIsKnownBeforeTwoAreMeasured) {
  DeviceSpeeds speeds;
  EXPECT_EQ(speeds.slowness(3), 1);
  EXPECT_EQ(speeds.measured_s(3), 0);
  speeds.Measured(3, 0, 10, 30);
  EXPECT_DOUBLE_EQ(speeds.slowness(3), 1);
  speeds.Measured(4, 0, 10, 10);
  EXPECT_DOUBLE_EQ(speeds.slowness(3), 3);
  EXPECT_DOUBLE_EQ(speeds.slowness(4), 1);
  EXPECT_EQ(speeds.devices_of(0), 2u);
  EXPECT_EQ(speeds.devices_of(1), 0u);
}

TEST(DeviceSpeeds, DocumentsOfOneTaskAreCompared) {
  DeviceSpeeds speeds;
  speeds.Measured(0, 0, 10, 1);
  speeds.Measured(0, 1, 10, 5);  // dear for all
  speeds.Measured(1, 0, 10, 1);
  EXPECT_DOUBLE_EQ(speeds.slowness(0), 1);
  EXPECT_DOUBLE_EQ(speeds.slowness(1), 1);
}

TEST(DeviceSpeeds, TheBeginningShowsHowFastADeviceIs) {
  DeviceSpeeds speeds;
  speeds.Measured(0, 0, 100, DeviceSpeeds::kMeasuredSeconds);
  speeds.Measured(0, 0, 100, 1000);
  EXPECT_DOUBLE_EQ(speeds.measured_s(0), DeviceSpeeds::kMeasuredSeconds);
}

// Up to three quarters of the devices may be slow.
TEST(DeviceSpeeds, SlowDevicesAreFoundAmongOthers) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const int devices = 2 + static_cast<int>(random() % 40);
    const int slow = static_cast<int>(random() % static_cast<uint64_t>(1 + devices * 7 / 10));
    DeviceSpeeds speeds;
    for (int device = 0; device < devices; ++device) {
      const double noise = 0.95 + 0.1 * static_cast<double>(random() % 100) / 100;
      speeds.Measured(device, 0, 100, (device < slow ? 3 : 1) * noise);
    }
    for (int device = 0; device < devices; ++device)
      EXPECT_NEAR(speeds.slowness(device), device < slow ? 3 : 1, device < slow ? 0.45 : 0.15);
  }
}

}  // namespace
}  // namespace evald
