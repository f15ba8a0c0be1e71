#include "orchestrator/staging/root.h"

#include <sys/file.h>
#include <unistd.h>

#include <thread>

#include "staging_fixture.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Put;

std::string Fp(char digit) { return std::string(32, digit); }

class RootTest : public testing::StagingTest {
 protected:
  StagedLease Publish(char digit, uint64_t bytes = 100) {
    const fs::path staging = root().StagingFolderOf("s" + std::string(1, digit));
    Put(staging / "sub" / "file", std::string(bytes, 'x'));
    return root().Publish(staging, {Fp(digit), "/from", "id", {}, bytes, 1.0});
  }
  StagingRoot root() const { return StagingRoot(root_); }
  std::vector<std::string> Listed() const {
    std::vector<std::string> names;
    for (const StagedInfo& info : root().List()) names.push_back(info.fingerprint);
    return names;
  }
};

TEST_F(RootTest, IsMadePrivate) {
  root();
  struct stat info{};
  ASSERT_EQ(::stat(root_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0700u);
  EXPECT_EQ(DefaultStagingRoot(), "/dev/shm/evald-" + std::to_string(::geteuid()));
  EXPECT_EQ(StagingRoot(root_.string() + "/").path(), root_);
}

TEST_F(RootTest, RefusesAFolderThatIsNotSafe) {
  root();
  fs::permissions(root_, fs::perms::all);
  EXPECT_THAT(CaughtText([&] { root(); }), HasSubstr("may be written by others (mode 777)"));
  fs::permissions(root_, fs::perms::owner_all);
  fs::create_directory_symlink(root_, temp_.path() / "link");
  EXPECT_THAT(CaughtText([&] { StagingRoot(temp_.path() / "link"); }),
              HasSubstr("is not a folder"));
  Put(temp_.path() / "file", "");
  EXPECT_THAT(CaughtText([&] { StagingRoot(temp_.path() / "file"); }),
              HasSubstr("is not a folder"));
  EXPECT_NE(CaughtText([&] { StagingRoot(temp_.path() / "file" / "root"); }), "");
  EXPECT_THAT(CaughtText([&] { StagingRoot("/proc/evald"); }), HasSubstr("/proc/evald"));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(root_.c_str(), 12345, 0), 0);
    EXPECT_THAT(CaughtText([&] { root(); }), HasSubstr("belongs to user 12345, expected 0"));
  }
}

// Somebody cut a kept copy short, so it is no longer the checkpoint.
TEST_F(RootTest, ACopyThatIsShorterThanItWasIsDroppedRatherThanLeased) {
  const auto cut = [&](char digit) {
    const fs::path file = root().FolderOf(Fp(digit)) / "sub" / "file";
    fs::permissions(file, fs::perms::owner_all);
    fs::resize_file(file, 40);
  };
  Publish('a');
  root().Keep(Fp('a'));
  EXPECT_TRUE(root().Lease(Fp('a')));
  cut('a');
  EXPECT_FALSE(root().Lease(Fp('a')));
  EXPECT_THAT(Listed(), IsEmpty());
  // The copy is not dropped while others read it. The error names them as the obstacle.
  const StagedLease other = Publish('b');
  cut('b');
  EXPECT_THAT(CaughtText([&] { root().Lease(Fp('b')); }),
              HasSubstr("is damaged (its files have 40 bytes, expected 100), and in use"));
}

TEST_F(RootTest, PublishesReadOnlyAndLeased) {
  StagedLease lease = Publish('a');
  const fs::path folder = root().FolderOf(Fp('a'));
  struct stat info{};
  ASSERT_EQ(::stat((folder / "sub" / "file").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0444u);
  ASSERT_EQ(::stat((folder / "sub").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0555u);
  ASSERT_EQ(::stat(folder.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0555u);
  EXPECT_FALSE(root().Drop(Fp('a')));
  const std::vector<StagedInfo> listed = root().List();
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].source, "/from");
  EXPECT_EQ(listed[0].bytes, 100u);
  EXPECT_EQ(listed[0].leases, 1);
  EXPECT_FALSE(listed[0].kept);
  lease = StagedLease();
  EXPECT_EQ(root().List()[0].leases, 0);
  EXPECT_TRUE(root().Drop(Fp('a')));
  EXPECT_FALSE(root().Drop(Fp('a')));
  EXPECT_THAT(InRoot(), IsEmpty());
}

TEST_F(RootTest, TheSameContentCollapses) {
  const StagedLease first = Publish('a');
  const StagedLease second = Publish('a');
  EXPECT_TRUE(second.held());
  EXPECT_EQ(InRoot(), std::set<std::string>{Fp('a')});
  EXPECT_EQ(root().List()[0].leases, 2);
}

TEST_F(RootTest, DropTakesNamesOfFingerprintsOnly) {
  root();
  Put(temp_.path() / "victim" / kLeaseFile, "");
  EXPECT_FALSE(root().Drop("../victim"));
  EXPECT_TRUE(fs::exists(temp_.path() / "victim"));
}

TEST_F(RootTest, BudgetDropsTheLeastRecentlyUsedFirst) {
  for (const char digit : {'a', 'b', 'c'}) {
    Publish(digit);
    root().Keep(Fp(digit));
    ::usleep(10'000);
  }
  root().MarkUsed(Fp('a'));
  EXPECT_THAT(Listed(), ElementsAre(Fp('b'), Fp('c'), Fp('a')));
  root().ShrinkKept(250);
  EXPECT_THAT(Listed(), ElementsAre(Fp('c'), Fp('a')));
  const std::optional<StagedLease> lease = root().Lease(Fp('c'));
  ASSERT_TRUE(lease);
  root().ShrinkKept(0);
  EXPECT_THAT(Listed(), ElementsAre(Fp('c')));
}

TEST_F(RootTest, ReapsWhatNobodyOwns) {
  Publish('a');
  Publish('b');
  root().Keep(Fp('b'));
  const StagedLease leased = Publish('c');
  const std::optional<OwnerLock> living = root().TryOwn("living");
  Put(root_ / ".staging-living" / "w", "x");
  Put(root_ / ".staging-dead" / "w", "x");
  Put(root_ / ".staging-dead.lock", "");
  Put(root_ / ".staging-unlocked" / "w", "x");
  Put(root_ / (".dropped-" + Fp('e') + "-1-0") / "sub" / "w", "x");
  fs::permissions(root_ / (".dropped-" + Fp('e') + "-1-0") / "sub",
                  fs::perms::owner_read | fs::perms::owner_exec);
  Put(root_ / (".kept-" + Fp('f')), "");
  Put(root_ / Fp('d') / "debris", "x");
  root().Reap();
  EXPECT_EQ(InRoot(), (std::set<std::string>{".kept-" + Fp('b'), ".staging-living",
                                             ".staging-living.lock", Fp('b'), Fp('c')}));
}

TEST_F(RootTest, OneOwnerAtATime) {
  std::optional<OwnerLock> first = root().TryOwn("x");
  ASSERT_TRUE(first);
  EXPECT_FALSE(root().TryOwn("x"));
  first.reset();
  EXPECT_THAT(InRoot(), IsEmpty());
  EXPECT_TRUE(root().TryOwn("x"));
}

// Threads that lease and threads that drop, on one name. A lease never holds a folder that is gone.
TEST_F(RootTest, LeasingAndDroppingNeverMeet) {
  root();
  std::atomic<bool> stop{false};
  std::atomic<int> leases{0}, drops{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop) {
      Publish('a');
      ::usleep(200);
    }
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        if (const auto lease = root().Lease(Fp('a'))) {
          ++leases;
          for (int look = 0; look < 20; ++look) {
            EXPECT_TRUE(fs::exists(root_ / Fp('a') / "sub" / "file"));
          }
        }
        ::usleep(300);  // otherwise one of the two would always hold it
      }
    });
  }
  threads.emplace_back([&] {
    while (!stop) drops += root().Drop(Fp('a'));
  });
  for (int i = 0; i < 6000 && (leases < 30 || drops < 30); ++i) ::usleep(10'000);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(leases, 0);
  EXPECT_GT(drops, 0);
}

}  // namespace
}  // namespace evald
