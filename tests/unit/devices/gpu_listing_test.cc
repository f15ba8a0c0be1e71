#include "orchestrator/devices/gpu_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "base/clock.h"
#include "evald/error.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A program of the test in place of evald-worker-cuda.
class GpuListingTest : public testing::Test {
 protected:
  void SetUp() override { ::unsetenv("EVALD_WORKER_CUDA"); }

  GpuListing ListWith(const std::string& script,
                      std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    const fs::path program = folder_ / "evald-worker-cuda";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0700);
    return ListGpus(folder_.path(), timeout);
  }

  TemporaryFolder folder_;
};

TEST_F(GpuListingTest, TakesWhatTheWorkerSays) {
  const GpuListing listing = ListWith(
      R"(test "$1" = --list-devices && echo '{"devices":[{"id":"cuda:GPU-a","name":"NVIDIA H200","memory_bytes":5,"numa_node":1,"compute":"9.0"}],"driver":"driver 13.0"}')");
  ASSERT_EQ(listing.gpus.size(), 1u) << listing.missing;
  EXPECT_EQ(listing.gpus[0].id, "cuda:GPU-a");
  EXPECT_EQ(listing.gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(listing.gpus[0].memory_bytes, 5u);
  EXPECT_EQ(listing.gpus[0].numa_node, 1);
  EXPECT_EQ(listing.gpus[0].compute, "9.0");
  EXPECT_EQ(listing.driver, "driver 13.0");
}

TEST_F(GpuListingTest, WithoutAWorkerItSaysSo) {
  const GpuListing listing = ListGpus(folder_.path());
  EXPECT_TRUE(listing.gpus.empty());
  EXPECT_THAT(listing.missing, HasSubstr("evald-worker-cuda"));
  EXPECT_FALSE(listing.broken);
}

TEST_F(GpuListingTest, WithoutGpusItSaysWhatIsMissing) {
  const GpuListing listing = ListWith(R"(echo '{"devices":[],"driver":""}')");
  EXPECT_TRUE(listing.gpus.empty());
  EXPECT_THAT(listing.missing, HasSubstr("NVIDIA driver"));
  EXPECT_FALSE(listing.broken);
}

TEST_F(GpuListingTest, AWorkerThatAnswersNonsenseIsBroken) {
  for (const char* script :
       {"echo nonsense", "exit 3", "kill -9 $$", R"(echo '{"driver":""}')",
        R"(echo '{"devices":[{"id":"cpu:0","name":"","memory_bytes":1}],"driver":""}')"}) {
    const GpuListing listing = ListWith(script);
    EXPECT_TRUE(listing.broken) << script;
    EXPECT_THAT(listing.missing, HasSubstr("--list-devices")) << script;
  }
}

TEST_F(GpuListingTest, AWorkerThatHangsIsGivenUp) {
  const int64_t begin = MonotonicMicros();
  const GpuListing listing = ListWith("exec sleep 100", std::chrono::milliseconds(300));
  EXPECT_TRUE(listing.broken);
  EXPECT_THAT(listing.missing, HasSubstr("has not answered within 0.3 s"));
  EXPECT_LT(MonotonicMicros() - begin, 20'000'000);
}

TEST_F(GpuListingTest, AWorkerThatClosesItsOutputAndHangsIsGivenUpToo) {
  const GpuListing listing = ListWith("exec >&-; exec sleep 100", std::chrono::milliseconds(300));
  EXPECT_TRUE(listing.broken);
}

}  // namespace
}  // namespace evald
