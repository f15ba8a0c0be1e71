#include "checkpoint/lease.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <csignal>

#include "checkpoint_files.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

/// Whether the process has this file open.
bool HasOpen(pid_t pid, const fs::path& file) {
  for (const auto& entry : fs::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) == fs::canonical(file)) return true;
  }
  return false;
}

class LeaseTest : public ::testing::Test {
 protected:
  LeaseTest() { testing::Put(staged_ / kLeaseFile, ""); }

  bool Droppable() {
    const UniqueFd fd(::open((staged_ / kLeaseFile).c_str(), O_RDONLY | O_CLOEXEC));
    return ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0;
  }

  TemporaryFolder temp_;
  fs::path staged_ = temp_.path() / "staged";
};

TEST_F(LeaseTest, HoldsUntilTheLastIsGone) {
  {
    const StagedLease first(staged_);
    const StagedLease second(staged_);
    StagedLease moved = StagedLease(staged_);
    EXPECT_FALSE(Droppable());
  }
  EXPECT_TRUE(Droppable());
}

TEST_F(LeaseTest, AFolderThatIsNotStagedNeedsNone) {
  fs::remove(staged_ / kLeaseFile);
  EXPECT_NO_THROW(StagedLease{staged_});
}

TEST_F(LeaseTest, RefusesAFolderThatIsGone) {
  EXPECT_THAT(CaughtText([&] { StagedLease lease(temp_.path() / "absent"); }),
              HasSubstr("is gone"));
}

TEST_F(LeaseTest, RefusesAFolderThatIsRenamedAwayMeanwhile) {
  const pid_t child = ::fork();
  if (child == 0) {
    const int fd = ::open((staged_ / kLeaseFile).c_str(), O_RDONLY);
    ::flock(fd, LOCK_EX);
    testing::Put(temp_.path() / "ready", "");
    while (!HasOpen(::getppid(), staged_ / kLeaseFile)) ::usleep(1000);
    fs::rename(staged_, temp_.path() / "away");
    ::_exit(0);
  }
  while (!fs::exists(temp_.path() / "ready")) ::usleep(1000);
  EXPECT_THAT(CaughtText([&] { StagedLease lease(staged_); }), HasSubstr("being dropped"));
  ::waitpid(child, nullptr, 0);
}

TEST_F(LeaseTest, EndsWithAKilledProcess) {
  const pid_t child = ::fork();
  if (child == 0) {
    const StagedLease lease(staged_);
    testing::Put(temp_.path() / "ready", "");
    ::pause();
    ::_exit(0);
  }
  while (!fs::exists(temp_.path() / "ready")) ::usleep(1000);
  EXPECT_FALSE(Droppable());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(Droppable());
}

}  // namespace
}  // namespace evald
