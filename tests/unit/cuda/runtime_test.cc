// The emulated runtime itself. It must find faults that a GPU would only show sometimes.
#include "worker/native/cuda/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "worker/native/cuda/emulated/device.h"
#include "worker/native/cuda/emulated/faults.h"
#include "worker/native/cuda/tuning.h"

namespace evald::native::cuda {
namespace {

// Set before the first use of a GPU. The memory is small, since the tests below take all of it.
const int kGpusAreSet = ::setenv("EVALD_EMULATED_GPUS", "1:16777216", 1);

class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override { emulated::OrderFaults(""); }
  void TearDown() override { emulated::OrderFaults(""); }

  static std::string Text(const Memory& memory) { return {memory.data(), memory.bytes()}; }
};

Memory Pinned(const std::string& text) {
  Memory memory(MemoryKind::kPinned, text.size());
  std::memcpy(memory.data(), text.data(), text.size());
  return memory;
}

DeviceFault FaultOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& e) {
    return e.fault();
  }
  ADD_FAILURE() << "nothing failed";
  return DeviceFault::kOther;
}

TEST_F(RuntimeTest, NothingIsThereBeforeSomeoneWaits) {
  Stream stream;
  const Memory from = Pinned("abcd"), to = Pinned("....");
  const Memory device(MemoryKind::kDevice, 4);
  CopyToDevice(device.data(), from.data(), 4, stream);
  CopyToHost(to.data(), device.data(), 4, stream);
  EXPECT_EQ(Text(to), "....");
  stream.Synchronize();
  EXPECT_EQ(Text(to), "abcd");
}

TEST_F(RuntimeTest, PinnedMemoryIsReadLateAndPageableAtOnce) {
  Stream stream;
  const Memory pinned = Pinned("aa"), device(MemoryKind::kDevice, 4);
  std::string pageable = "bb";
  CopyToDevice(device.data(), pinned.data(), 2, stream);
  CopyToDevice(device.data() + 2, pageable.data(), 2, stream);
  std::memcpy(pinned.data(), "cc", 2);
  pageable = "dd";
  std::string back(4, '.');
  CopyToHost(back.data(), device.data(), 4, stream);  // waits, since `back` is pageable
  EXPECT_EQ(back, "ccbb");
}

TEST_F(RuntimeTest, QueuesRunWhenTheyAreLong) {
  Stream stream;
  int ran = 0;
  for (int i = 0; i < 100; ++i) emulated::Enqueue(stream, [&ran] { ++ran; });
  EXPECT_EQ(ran, 36);
  stream.Synchronize();
  EXPECT_EQ(ran, 100);
}

TEST_F(RuntimeTest, OneStreamWaitsForAnother) {
  Stream one, two;
  std::string order;
  Event event;
  EXPECT_TRUE(event.Done());
  emulated::Enqueue(one, [&] { order += 'a'; });
  event.Record(one);
  emulated::Enqueue(one, [&] { order += 'x'; });
  two.Wait(event);
  emulated::Enqueue(two, [&] { order += 'b'; });
  two.Synchronize();
  EXPECT_EQ(order, "ab") << "what came before the event, and no more of the other stream";
  EXPECT_TRUE(event.Done());
  one.Synchronize();
  EXPECT_EQ(order, "abx");
}

TEST_F(RuntimeTest, AskingForAnEventComesToAnEnd) {
  Stream stream;
  int ran = 0;
  for (int i = 0; i < 20; ++i) emulated::Enqueue(stream, [&ran] { ++ran; });
  Event event;
  event.Record(stream);
  int asked = 1;
  while (!event.Done()) ++asked;
  EXPECT_EQ(ran, 20);
  EXPECT_GT(asked, 1);
}

TEST_F(RuntimeTest, TimesBetweenEvents) {
  Stream stream;
  Event begin(true), end(true);
  begin.Record(stream);
  emulated::Enqueue(stream, [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  end.Record(stream);
  EXPECT_THROW(SecondsBetween(begin, end), DeviceError);
  end.Synchronize();
  EXPECT_GT(SecondsBetween(begin, end), 0.004);
}

TEST_F(RuntimeTest, GraphsReadAgainWhatTheirMemoryHolds) {
  Stream stream;
  const Memory from = Pinned("ab"), to = Pinned(".."), device(MemoryKind::kDevice, 2);
  Graph::BeginCapture(stream);
  CopyToDevice(device.data(), from.data(), 2, stream);
  CopyToHost(to.data(), device.data(), 2, stream);
  EXPECT_THROW(stream.Synchronize(), DeviceError);
  EXPECT_THROW(Memory(MemoryKind::kDevice, 8), DeviceError);
  const Graph graph = Graph::EndCapture(stream);
  stream.Synchronize();
  EXPECT_EQ(Text(to), "..");
  for (const char* text : {"ab", "cd"}) {
    std::memcpy(from.data(), text, 2);
    graph.Launch(stream);
    stream.Synchronize();
    EXPECT_EQ(Text(to), text);
  }
}

TEST_F(RuntimeTest, ACaptureThatIsAbandonedLeavesNothing) {
  Stream stream;
  int ran = 0;
  Graph::BeginCapture(stream);
  emulated::Enqueue(stream, [&ran] { ++ran; });
  Graph::AbandonCapture(stream);
  stream.Synchronize();
  EXPECT_EQ(ran, 0);
  EXPECT_THROW(Graph::EndCapture(stream), DeviceError);
}

TEST_F(RuntimeTest, MemoryIsLimitedPoisonedAndGivenBack) {
  const uint64_t free = MemoryOfDevice().free;
  {
    const Memory memory(MemoryKind::kDevice, free);
    EXPECT_EQ(MemoryOfDevice().free, 0u);
    EXPECT_EQ(static_cast<unsigned char>(memory.data()[free - 1]), 0xFF);
    EXPECT_EQ(FaultOf([] { Memory(MemoryKind::kDevice, 1); }), DeviceFault::kOutOfMemory);
  }
  EXPECT_EQ(MemoryOfDevice().free, free);
}

TEST_F(RuntimeTest, CopiesOutsideOfDeviceMemoryAreFound) {
  Stream stream;
  const Memory device(MemoryKind::kDevice, 8), pinned(MemoryKind::kPinned, 16);
  EXPECT_THROW(CopyToDevice(device.data(), pinned.data(), 9, stream), DeviceError);
  EXPECT_THROW(CopyToHost(pinned.data(), device.data() + 4, 5, stream), DeviceError);
  EXPECT_THROW(FillBytes(pinned.data(), 0, 8, stream), DeviceError);
  {
    const Memory gone(MemoryKind::kDevice, 8);
    CopyToDevice(gone.data(), pinned.data(), 8, stream);
  }
  EXPECT_THROW(stream.Synchronize(), DeviceError);
}

TEST(RuntimeDeathTest, WritingBehindMemoryIsFound) {
  EXPECT_DEATH(
      {
        Memory memory(MemoryKind::kDevice, 8);
        std::memset(memory.data(), 0, 9);
        memory = Memory();
      },
      testing::HasSubstr("wrote behind memory of 8 bytes"));
}

TEST_F(RuntimeTest, AQueuedFailureIsToldOnce) {
  Stream stream;
  emulated::Enqueue(stream, [] { throw DeviceError(DeviceFault::kKernel, "kernel k"); });
  EXPECT_THAT([&] { stream.Synchronize(); },
              testing::ThrowsMessage<DeviceError>(testing::HasSubstr("kernel k")));
  stream.Synchronize();
}

TEST_F(RuntimeTest, OrderedFaults) {
  Stream stream;
  emulated::OrderFaults("0:oom:0,0:other:2");
  EXPECT_EQ(FaultOf([] { Memory(MemoryKind::kDevice, 8); }), DeviceFault::kOutOfMemory);
  const Memory memory(MemoryKind::kDevice, 8);
  EXPECT_EQ(FaultOf([&] { FillBytes(memory.data(), 0, 8, stream); }), DeviceFault::kOther);
  FillBytes(memory.data(), 0, 8, stream);
  for (const auto& [kind, fault] :
       {std::pair("lost", DeviceFault::kLost), std::pair("ecc", DeviceFault::kMemory),
        std::pair("kernel", DeviceFault::kKernel)}) {
    emulated::OrderFaults(std::string("0:") + kind + ":1");
    FillBytes(memory.data(), 0, 8, stream);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(FaultOf([&] { stream.Synchronize(); }), fault) << kind;
  }
  for (const char* wrong : {"0:oom", "x:oom:1", "0:cold:1", "0:oom:-1", "0:oom:1x", ","}) {
    EXPECT_THROW(emulated::OrderFaults(wrong), Error) << wrong;
  }
}

TEST_F(RuntimeTest, GpusAreCalledByUuid) {
  const auto gpus = ListGpus();
  ASSERT_EQ(kGpusAreSet, 0);
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].uuid, "GPU-emulated-0");
  UseGpu(gpus[0].uuid);
  EXPECT_THAT([] { UseGpu("GPU-1"); },
              testing::ThrowsMessage<Error>(testing::HasSubstr("GPU-emulated-0")));
}

TEST_F(RuntimeTest, RandomNumbersAndDifferences) {
  Stream stream;
  constexpr int64_t kCount = 1003;
  const Memory a(MemoryKind::kDevice, kCount * 4), b(MemoryKind::kDevice, kCount * 4);
  const Memory differences(MemoryKind::kDevice, 8);
  const auto count = [&] {
    FillBytes(differences.data(), 0, 8, stream);
    CountDifferences(a.data(), b.data(), kCount * 4, differences.as<unsigned long long>(), stream);
    unsigned long long found = 0;
    CopyToHost(&found, differences.data(), 8, stream);
    return found;
  };
  FillRandom(WeightType::kF32, a.data(), kCount, 1, stream);
  FillRandom(WeightType::kF32, b.data(), kCount, 1, stream);
  EXPECT_EQ(count(), 0u);
  std::vector<float> values(kCount);
  CopyToHost(values.data(), a.data(), kCount * 4, stream);
  double sum = 0;
  for (const float value : values) {
    EXPECT_TRUE(value > -1 && value < 1 && value != 0);
    sum += value;
  }
  EXPECT_LT(std::abs(sum / kCount), 0.1);
  stream.Synchronize();
  b.data()[kCount * 4 - 1] ^= 1;
  b.data()[0] ^= 1;
  EXPECT_EQ(count(), 2u);
  FillRandom(WeightType::kF32, b.data(), kCount, 2, stream);
  EXPECT_GT(count(), 3000u);
}

}  // namespace
}  // namespace evald::native::cuda
