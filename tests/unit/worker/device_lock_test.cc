#include "worker/device_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "base/clock.h"
#include "evald/error.h"
#include "support.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr const char* kGpu = "cuda:GPU-8f6d-1";

class DeviceLockTest : public testing::Test {
 protected:
  // The holder of the device's lock; "" if the lock can be taken.
  std::string Take(const std::string& device, milliseconds patience) {
    DeviceLock lock(folder(), device);
    return lock.Take(patience) ? "" : lock.HeldBy();
  }
  fs::path folder() const { return folder_.path() / "devices"; }

  TemporaryFolder folder_;
};

TEST_F(DeviceLockTest, OneAtATimeAndTheHolderIsNamed) {
  DeviceLock lock(folder(), kGpu);
  EXPECT_EQ(Take(kGpu, milliseconds(0)), "") << "it was not taken yet";
  ASSERT_TRUE(lock.Take(milliseconds(0)));
  const std::string problem = Take(kGpu, milliseconds(0));
  EXPECT_THAT(problem,
              HasSubstr(std::string(kGpu) + " is held by process " + std::to_string(::getpid())));
  EXPECT_EQ(Take("cuda:GPU-other", milliseconds(0)), "");
}

TEST_F(DeviceLockTest, SeveralGpusAreTakenTogetherOrNotAtAll) {
  DeviceLock one(folder(), "cuda:GPU-b");
  ASSERT_TRUE(one.Take(milliseconds(0)));
  EXPECT_THAT(Take("cuda:GPU-a+GPU-b", milliseconds(0)), HasSubstr("cuda:GPU-b is held by"));
  EXPECT_EQ(Take("cuda:GPU-a", milliseconds(0)), "") << "the GPU that was free is free again";
  DeviceLock others(folder(), "cuda:GPU-a+GPU-c");
  ASSERT_TRUE(others.Take(milliseconds(0)));
  EXPECT_THAT(Take("cuda:GPU-c", milliseconds(0)), HasSubstr("cuda:GPU-c is held by"));
}

TEST_F(DeviceLockTest, AKilledProcessHoldsNothing) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    DeviceLock lock(folder(), kGpu);
    (void)!::write(ready[1], lock.Take(milliseconds(0)) ? "x" : "-", 1);
    ::pause();
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(Take(kGpu, milliseconds(0)), HasSubstr("process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(Take(kGpu, milliseconds(2000)), "");
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(DeviceLockTest, IsWaitedFor) {
  const int64_t begin = MonotonicMicros();
  DeviceLock lock(folder(), kGpu);
  ASSERT_TRUE(lock.Take(milliseconds(0)));
  EXPECT_NE(Take(kGpu, milliseconds(200)), "");
  EXPECT_GE(MonotonicMicros() - begin, 200'000);
}

TEST_F(DeviceLockTest, EverybodyMayTakeItsTurn) {
  const mode_t before = ::umask(0077);
  {
    const DeviceLock lock(folder(), kGpu);
  }
  ::umask(before);
  struct stat about{};
  ASSERT_EQ(::stat(folder().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 01777u);
  ASSERT_EQ(::stat((folder() / "cuda_GPU-8f6d-1").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0666u);
}

TEST_F(DeviceLockTest, ALinkIsNotFollowed) {
  fs::create_directory(folder());
  fs::create_symlink(folder_.path() / "elsewhere", folder() / "cuda_GPU-8f6d-1");
  EXPECT_THROW(DeviceLock(folder(), kGpu), Error);
  EXPECT_FALSE(fs::exists(folder_.path() / "elsewhere"));
}

}  // namespace
}  // namespace evald
