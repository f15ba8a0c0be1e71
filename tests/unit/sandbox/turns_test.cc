// Turns of one user's programs. Other users have no effect on them.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "evald/error.h"
#include "metrics/sandbox/host_turn.h"
#include "tests/unit/sandbox/fixtures.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::sandbox {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecondUs = 1'000'000;
constexpr uid_t kNobody = 65534;

/// The number of exclusive turns that are taken or waited for.
int LockedPlaces(const fs::path& queue) {
  const UniqueFd file(open(queue.c_str(), O_RDWR | O_CLOEXEC));
  int count = 0;
  struct flock place = {};
  for (int64_t from = 0; file; from = place.l_start + place.l_len) {
    place = {};
    place.l_type = F_WRLCK;
    place.l_start = from;
    if (fcntl(file.get(), F_OFD_GETLK, &place) != 0 || place.l_type == F_UNLCK) break;
    ++count;
  }
  return count;
}

class Turns : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(chmod(scratch_.path().c_str(), 0711), 0); }

  TemporaryFolder scratch_;
};

TEST_F(Turns, TheFolderIsMadeForItsUserAlone) {
  const TurnFolder folder({scratch_ / "turns"});
  ASSERT_TRUE(folder.usable());
  struct stat info = {};
  ASSERT_EQ(stat((scratch_ / "turns").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  EXPECT_EQ(TurnFolder({scratch_ / "turns"}).path(), scratch_ / "turns") << "a second time";
}

TEST_F(Turns, AFolderThatOthersMayEnterIsPassedOver) {
  fs::create_directory(scratch_ / "lax");
  fs::permissions(scratch_ / "lax", fs::perms(0755));
  fs::create_directory(scratch_ / "real");
  fs::permissions(scratch_ / "real", fs::perms(0700));
  fs::create_directory_symlink(scratch_ / "real", scratch_ / "link");
  const TurnFolder folder(
      {scratch_ / "lax", scratch_ / "link", scratch_ / "missing" / "deep", scratch_ / "own"});
  EXPECT_EQ(folder.path(), scratch_ / "own");
}

TEST_F(Turns, AFolderOfAnotherUserIsPassedOver) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  fs::create_directory(scratch_ / "taken");
  fs::permissions(scratch_ / "taken", fs::perms(0700));
  ASSERT_EQ(chown((scratch_ / "taken").c_str(), kNobody, kNobody), 0);
  EXPECT_EQ(TurnFolder({scratch_ / "taken", scratch_ / "own"}).path(), scratch_ / "own");
  const TurnFolder none({scratch_ / "taken"});
  EXPECT_FALSE(none.usable());
  const HostTurn alone = HostTurn::Alone(none, kSecondUs);
  // excludes nobody and waits for nobody
  const HostTurn beside = HostTurn::Shared(none, kSecondUs);
}

/// Another user holds a lock on everything that it may open: the folders in which turns were once
/// kept, and the files of this user that it finds.
TEST_F(Turns, AnotherUsersLocksHoldNothingUp) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const TurnFolder folder({scratch_ / "turns"});
  {
    const HostTurn made = HostTurn::Alone(folder, kSecondUs);
  }
  int ready[2];
  int over[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(over), 0);
  std::thread other([&] {
    const int opened = sandbox_test::InChild([&] {
      if (setresgid(kNobody, kNobody, kNobody) != 0 || setresuid(kNobody, kNobody, kNobody) != 0)
        return 90;
      int locked = 0;
      for (const fs::path& path : {fs::path("/proc"), fs::path("/dev"), folder.path(),
                                   folder.path() / "gate", folder.path() / "turn"}) {
        const int fd = open(path.c_str(), O_RDONLY);
        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0) ++locked;
      }
      char byte = 'r';
      if (write(ready[1], &byte, 1) != 1 || read(over[0], &byte, 1) != 1) return 91;
      return locked;
    });
    EXPECT_LE(opened, 2) << "of this user's folder it can lock nothing";
  });
  char byte = 0;
  EXPECT_EQ(read(ready[0], &byte, 1), 1);
  {
    const HostTurn shared = HostTurn::Shared(folder, kSecondUs);
  }
  {
    const HostTurn alone = HostTurn::Alone(folder, kSecondUs);
  }
  EXPECT_EQ(write(over[1], "o", 1), 1);
  other.join();
  for (const int fd : {ready[0], ready[1], over[0], over[1]}) close(fd);
}

/// Programs that run alone, one after another without end, leave the others their time.
TEST_F(Turns, ExclusiveTurnsLeaveTheOthersAsMuchTimeAsTheyTook) {
  const TurnFolder folder({scratch_ / "turns"});
  constexpr int64_t kTurnUs = 200'000;
  int64_t ended_us = 0;
  for (int i = 0; i < 3; ++i) {
    const HostTurn alone = HostTurn::Alone(folder, kSecondUs);
    if (i > 0) {
      EXPECT_GE(MonotonicMicros(), ended_us + kTurnUs) << i;
    }
    usleep(kTurnUs);
    ended_us = MonotonicMicros();
  }
  const int64_t asked_us = MonotonicMicros();
  {
    const HostTurn shared = HostTurn::Shared(folder, kSecondUs);
  }
  const int64_t shared_us = MonotonicMicros() - asked_us;
  const HostTurn alone = HostTurn::Alone(folder, kSecondUs);
  EXPECT_GE(MonotonicMicros(), ended_us + kTurnUs);
  EXPECT_LT(shared_us, MonotonicMicros() - asked_us)
      << "a shared turn does not wait for the pause to end";
}

TEST_F(Turns, ExclusiveTurnsAreTakenInTheOrderInWhichTheyWereAskedFor) {
  const TurnFolder folder({scratch_ / "turns"});
  std::vector<int> order;
  std::vector<int64_t> times_us;  // begin and end of each turn
  std::vector<std::thread> others;
  {
    const HostTurn first = HostTurn::Alone(folder, kSecondUs);
    for (int i = 0; i < 6; ++i) {
      others.emplace_back([&, i] {
        const HostTurn turn = HostTurn::Alone(folder, kSecondUs);
        order.push_back(i);  // no other turn is taken now
        times_us.push_back(MonotonicMicros());
        usleep(20'000);
        times_us.push_back(MonotonicMicros());
      });
      while (LockedPlaces(scratch_ / "turns" / "queue") < i + 2) usleep(1000);
    }
  }
  for (std::thread& other : others) other.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4, 5}));
  for (size_t i = 2; i < times_us.size(); i += 2) {
    const int64_t pause_us = times_us[i] - times_us[i - 1];
    EXPECT_GE(pause_us, times_us[i - 1] - times_us[i - 2])
        << "who waited in the queue leaves others their time too";
  }
}

TEST_F(Turns, WhoDiesInTheQueueHoldsNobodyUp) {
  const TurnFolder folder({scratch_ / "turns"});
  const pid_t waiting = [&] {
    const HostTurn held = HostTurn::Alone(folder, kSecondUs);
    const pid_t pid = fork();
    if (pid == 0) {
      const HostTurn never = HostTurn::Alone(folder, kSecondUs);
      _exit(0);
    }
    while (LockedPlaces(scratch_ / "turns" / "queue") < 2) usleep(1000);
    kill(pid, SIGKILL);
    return pid;
  }();
  EXPECT_EQ(waitpid(waiting, nullptr, 0), waiting);
  const HostTurn next = HostTurn::Alone(folder, kSecondUs);
  EXPECT_EQ(LockedPlaces(scratch_ / "turns" / "queue"), 1);
}

TEST_F(Turns, AWaitIsBoundedAndSaysForWhat) {
  const TurnFolder folder({scratch_ / "turns"}, kSecondUs / 10);
  const HostTurn stuck = HostTurn::Alone(folder, 0);
  const Error error = Caught([&] { HostTurn::Shared(folder, 0); });
  EXPECT_EQ(error.kind(), ErrorKind::kInfrastructure);
  EXPECT_NE(std::string(error.what()).find((scratch_ / "turns" / "gate").string()),
            std::string::npos);
  EXPECT_NE(error.remedy().find("lslocks"), std::string::npos);
}

TEST_F(Turns, ATurnIsWaitedForAsLongAsItMayLast) {
  const TurnFolder folder({scratch_ / "turns"}, 1);
  std::atomic<bool> taken{false};
  std::thread other;
  {
    const HostTurn alone = HostTurn::Alone(folder, 600 * kSecondUs);
    other = std::thread([&] {
      try {
        const HostTurn shared = HostTurn::Shared(folder, 0);
        taken = true;
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
      }
    });
    usleep(300'000);
    EXPECT_FALSE(taken);
  }
  other.join();
  EXPECT_TRUE(taken);
}

}  // namespace
}  // namespace evald::sandbox
