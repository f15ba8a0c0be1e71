// The device's behaviour after calls that fail. Only the emulated runtime can order such failures.
#include <gtest/gtest.h>

#include "../native/native_test_util.h"
#include "cuda_test_util.h"
#include "worker/native/cuda/emulated/faults.h"

namespace evald::native::cuda {
namespace {

// With `fast` the emulated products depend on the number of rows, so the tests of invariance would
// notice.
TEST(FastTest, IsNotTheSameWhateverTheRows) {
  CudaModel model(GoldenPath("untied"), {.type = WeightType::kF32, .fast = true});
  const std::vector<int32_t> tokens = SomeTokens(40);
  EXPECT_FALSE(SameBits(AllLogits(&model, tokens, 1), AllLogits(&model, tokens, 40)));
}

// Wherever a call fails, the next batch is right. If the failure is that of a capture or of a
// graph's launch, the batch itself is right too, and no further graphs are used.
TEST(DeviceTest, GoesOnAfterAFault) {
  CudaModel model(GoldenPath("untied"));
  const std::vector<int32_t> tokens = SomeTokens(12);
  const auto expected = AllLogits(&model, tokens, 12);
  emulated::OrderFaults("");
  AllLogits(&model, tokens, 1);
  const int64_t calls = emulated::CallsOf(0);
  int failed = 0, mended = 0;
  for (int64_t after = 0; after < calls; after += 7) {
    emulated::OrderFaults("");
    CudaModel fresh(GoldenPath("untied"));  // has no graphs yet
    emulated::OrderFaults("0:other:" + std::to_string(after));
    try {
      EXPECT_TRUE(SameBits(AllLogits(&fresh, tokens, 1), expected)) << after << " calls";
      if (fresh.device.Report()["graphs_replayed"] == 0) ++mended;
    } catch (const DeviceError& e) {
      EXPECT_EQ(e.fault(), DeviceFault::kOther);
      EXPECT_FALSE(e.sticky());
      ++failed;
    }
    EXPECT_TRUE(SameBits(AllLogits(&fresh, tokens, 1), expected))
        << "a fault after " << after << " calls";
  }
  EXPECT_GT(failed, 5);
  EXPECT_GT(mended, 0);
}

TEST(DeviceTest, OutOfMemoryAndALostDevice) {
  CudaModel model(GoldenPath("untied"));
  const std::vector<int32_t> tokens = SomeTokens(200);
  std::string faults = "0:oom:0";
  model.device.DeletePage(model.device.NewPage());
  // a smaller slab would suffice, down to one page
  for (int i = 0; i < 20; ++i) faults += ",0:oom:0";
  emulated::OrderFaults(faults);
  EXPECT_THROW(CudaModel(GoldenPath("untied")), DeviceError);
  emulated::OrderFaults("");
  model.device.DeletePage(model.device.NewPage());
  const auto expected = AllLogits(&model, tokens, 256);
  emulated::OrderFaults("0:lost:3");
  for (int i = 0; i < 2; ++i) {
    try {
      AllLogits(&model, tokens, 256);
      FAIL() << "a lost device computed";
    } catch (const DeviceError& e) {
      EXPECT_EQ(e.fault(), DeviceFault::kLost);
      EXPECT_TRUE(e.sticky());
    }
  }
  emulated::OrderFaults("");
  EXPECT_TRUE(SameBits(AllLogits(&model, tokens, 256), expected));
}

}  // namespace
}  // namespace evald::native::cuda
