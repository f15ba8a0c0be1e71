#include "orchestrator/devices/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "orchestrator/devices/programs.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Devices = std::vector<std::string>;

GpuListing Two() {
  return {{{"cuda:GPU-a", "NVIDIA H200", 1, 0, "9.0"}, {"cuda:GPU-b", "NVIDIA H200", 1, 1, "9.0"}},
          "driver 13.0",
          "",
          false};
}
GpuListing None() { return {{}, "", "no NVIDIA driver is loaded", false}; }

Devices Choose(const Devices& asked, const GpuListing& listing,
               const std::string& engine = "native") {
  return ChooseDevices({asked, 1, 3}, engine, [&] { return listing; });
}

TEST(DeviceChoice, AutoTakesAllGpusElseTheProcessors) {
  EXPECT_THAT(Choose({"auto"}, Two()), ElementsAre("cuda:GPU-a", "cuda:GPU-b"));
  EXPECT_THAT(Choose({"auto"}, None()), ElementsAre("cpu:0", "cpu:1", "cpu:2"));
}

TEST(DeviceChoice, NobodyAsksForGpusThatAreNotUsed) {
  const auto never = []() -> GpuListing { throw std::logic_error("asked"); };
  EXPECT_THAT(ChooseDevices({{"auto"}, 1, 2}, "openai", never), ElementsAre("cpu:0", "cpu:1"));
  EXPECT_THAT(ChooseDevices({{"cpu:4", "cpu:1"}, 1, 2}, "native", never),
              ElementsAre("cpu:4", "cpu:1"));
}

TEST(DeviceChoice, NamedGpusMustBeThere) {
  EXPECT_THAT(Choose({"cuda:GPU-b"}, Two()), ElementsAre("cuda:GPU-b"));
  EXPECT_THAT(
      CaughtText([] { Choose({"cuda:GPU-b", "cuda:GPU-c"}, Two()); }, ErrorKind::kInfrastructure),
      HasSubstr("device cuda:GPU-c is not there; visible: cuda:GPU-a, cuda:GPU-b"));
  EXPECT_THAT(CaughtText([] { Choose({"cuda:GPU-b"}, None()); }, ErrorKind::kInfrastructure),
              HasSubstr("there is no GPU: no NVIDIA driver is loaded"));
}

TEST(DeviceChoice, AllMeansThatThereMustBeOne) {
  EXPECT_THAT(Choose({"cuda:all"}, Two()), ElementsAre("cuda:GPU-a", "cuda:GPU-b"));
  EXPECT_THAT(CaughtText([] { Choose({"cuda:all"}, None()); }, ErrorKind::kInfrastructure),
              HasSubstr("no NVIDIA driver is loaded"));
}

TEST(DeviceChoice, AnEngineWithoutGpusIsGivenNone) {
  EXPECT_THAT(CaughtText([] { Choose({"cuda:all"}, Two(), "replay"); }, ErrorKind::kUsage),
              HasSubstr("engine 'replay' computes on no GPU"));
}

GpuListing Five() {
  GpuListing listing;
  for (const auto& [name, node] : {std::pair{"a", 0}, {"b", 1}, {"c", 0}, {"d", 1}, {"e", 0}})
    listing.gpus.push_back({std::string("cuda:GPU-") + name, "NVIDIA H200", 1, node, "9.0"});
  return listing;
}

Devices ChooseTwos(const Devices& asked, const GpuListing& listing,
                   const std::string& engine = "vllm") {
  return ChooseDevices({asked, 2, 3}, engine, [&] { return listing; });
}

TEST(DeviceChoice, AWorkersGpusAreOfOneNode) {
  EXPECT_THAT(ChooseTwos({"auto"}, Five()), ElementsAre("cuda:GPU-a+GPU-c", "cuda:GPU-e+GPU-b"));
  EXPECT_THAT(ChooseTwos({"cuda:all"}, Two(), kAnyEngine), ElementsAre("cuda:GPU-a+GPU-b"));
  EXPECT_THAT(ChooseTwos({"cuda:GPU-d", "cuda:GPU-a"}, Five()), ElementsAre("cuda:GPU-d+GPU-a"))
      << "GPUs that are named stay in their order";
  EXPECT_THAT(Choose({"cuda:GPU-d+GPU-a", "cuda:GPU-b"}, Five(), "vllm"),
              ElementsAre("cuda:GPU-d+GPU-a", "cuda:GPU-b"));
}

TEST(DeviceChoice, AWorkerThatCannotHaveItsGpusSaysSo) {
  EXPECT_THAT(CaughtText([] { ChooseTwos({"cuda:GPU-a+GPU-b"}, Two()); }, ErrorKind::kUsage),
              HasSubstr("device cuda:GPU-a+GPU-b is a group already"));
  GpuListing one = Two();
  one.gpus.pop_back();
  EXPECT_THAT(CaughtText([&] { ChooseTwos({"auto"}, one); }, ErrorKind::kInfrastructure),
              HasSubstr("2 GPUs for each worker: there are only 1 (cuda:GPU-a)"));
  EXPECT_THAT(CaughtText([] { ChooseTwos({"auto"}, None()); }, ErrorKind::kInfrastructure),
              HasSubstr("there is no GPU"));
  EXPECT_THAT(
      CaughtText([] { Choose({"cuda:GPU-a+GPU-x"}, Two(), "vllm"); }, ErrorKind::kInfrastructure),
      HasSubstr("device cuda:GPU-x is not there"));
  EXPECT_THAT(CaughtText([] { ChooseTwos({"auto"}, Two(), "native"); }, ErrorKind::kUsage),
              HasSubstr("engine 'native' computes on one"));
  EXPECT_THAT(CaughtText([] { ChooseTwos({"cpu:0", "cpu:1"}, Two()); }, ErrorKind::kUsage),
              HasSubstr("device cpu:0 is no GPU"));
}

TEST(DeviceChoice, WhatIsWrongIsSaid) {
  EXPECT_EQ(WrongWithDevices({"auto"}), "");
  EXPECT_EQ(WrongWithDevices({"cpu:0", "cpu:12"}), "");
  EXPECT_EQ(WrongWithDevices({"cuda:GPU-8f6d-1", "cuda:MIG-12"}), "");
  EXPECT_EQ(WrongWithDevices({"cuda:GPU-a+GPU-b", "cuda:GPU-c"}), "");
  EXPECT_THAT(WrongWithDevices({}), HasSubstr("found an empty list, expected auto"));
  for (const char* bad : {"gpu:0", "cuda:0", "cuda:", "cuda:GPU-a/../b", "cuda:GPU-a+",
                          "cuda:GPU-a+b", "cpu:", "cpu:x", "cpu:-1", "cpu:12345", "", "AUTO"}) {
    EXPECT_THAT(
        WrongWithDevices({bad}),
        HasSubstr("expected auto, cuda:all, cuda:<uuid>, cuda:<uuid>+<uuid>, cpu:<number> or none"))
        << bad;
  }
  EXPECT_THAT(WrongWithDevices({"auto", "cpu:0"}), HasSubstr("'auto' stands alone"));
  EXPECT_THAT(WrongWithDevices({"cuda:GPU-a", "cuda:all"}), HasSubstr("'cuda:all' stands alone"));
  EXPECT_THAT(WrongWithDevices({"cpu:1", "cpu:1"}), HasSubstr("twice"));
  EXPECT_THAT(WrongWithDevices({"cuda:GPU-a", "cuda:GPU-b+GPU-a"}),
              HasSubstr("'GPU-a' is there twice"));
  EXPECT_THAT(WrongWithDevices({"cpu:1", "cuda:GPU-a"}), HasSubstr("a CPU and a GPU"));
}

TEST(Programs, TheGpusWorkerIsForTheNativeEngineOnAGpu) {
  EXPECT_EQ(WorkerProgram("native", "cuda:GPU-a"), "evald-worker-cuda");
  EXPECT_EQ(WorkerProgram("native", "cpu:0"), "evald-worker");
  EXPECT_EQ(WorkerProgram("openai", "cuda:GPU-a"), "evald-worker");
  EXPECT_TRUE(IsStartable("evald-worker-cuda"));
  EXPECT_FALSE(IsStartable("sh"));
}

}  // namespace
}  // namespace evald
