// Every call of a pull fails once. Emulated devices only.
#include <gtest/gtest.h>

#include "tests/unit/native/native_test_util.h"
#include "transfer_reference.h"
#include "worker/native/cuda/checkpoint_loader.h"
#include "worker/native/cuda/emulated/faults.h"
#include "worker/native/cuda/pull.h"

namespace evald::native::cuda {
namespace {

PullOptions SmallChunks(int threads) {
  PullOptions options;
  options.threads = threads;
  options.chunk_bytes = 16'384;
  options.depth = 2;
  return options;
}

class PullFaultsTest : public ::testing::Test {
 protected:
  ~PullFaultsTest() override { emulated::OrderFaults(""); }

  ModelConfig config_ = ReadModelConfig(GoldenPath("olmo2"));
  ModelWeights weights_{GoldenPath("olmo2"), config_};
};

TEST_F(PullFaultsTest, AfterAFailedCallTheNextTryWorks) {
  const DeviceWeights device(weights_, WeightType::kBF16);
  for (const int threads : {1, 3}) {
    emulated::OrderFaults("");
    Puller(SmallChunks(threads)).Run(device.transfers());
    const int64_t calls = emulated::CallsOf(0);
    ASSERT_GT(calls, 30);
    int failed = 0;
    for (int64_t call = 0; call < calls; ++call) {
      Puller puller(SmallChunks(threads));
      emulated::OrderFaults("0:other:" + std::to_string(call));
      try {
        puller.Run(device.transfers());
      } catch (const DeviceError& error) {
        ++failed;
        EXPECT_EQ(error.fault(), DeviceFault::kOther);
      }
      emulated::OrderFaults("");
      puller.Run(device.transfers());
      ASSERT_EQ(FirstWrong(device.transfers()), "") << "call " << call;
    }
    EXPECT_GT(failed, calls / 2) << "of " << calls;
  }
}

TEST_F(PullFaultsTest, ALostDeviceIsTold) {
  const DeviceWeights device(weights_, WeightType::kBF16);
  for (const char* kind : {"lost", "ecc", "kernel"}) {
    Puller puller(SmallChunks(2));
    puller.Run(device.transfers());
    emulated::OrderFaults(std::string("0:") + kind + ":9");
    try {
      puller.Run(device.transfers());
      ADD_FAILURE() << kind;
    } catch (const DeviceError& error) {
      EXPECT_TRUE(error.sticky()) << kind;
    }
    emulated::OrderFaults("");
  }
}

TEST_F(PullFaultsTest, OutOfMemoryLeavesTheLoaderUsable) {
  CheckpointLoader loader(SmallChunks(2));
  emulated::OrderFaults("0:oom:0");
  try {
    loader.Load(GoldenPath("olmo2"), weights_);
    ADD_FAILURE() << "there was no memory";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fault(), DeviceFault::kOutOfMemory);
  }
  loader.Load(GoldenPath("olmo2"), weights_);
  EXPECT_EQ(FirstWrong(loader.weights().transfers()), "");
}

}  // namespace
}  // namespace evald::native::cuda
