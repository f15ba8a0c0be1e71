#include "orchestrator/staging/free_space.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory_limits.h"
#include "orchestrator/staging/reserve.h"
#include "staging_fixture.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::Bytes;
using ::testing::HasSubstr;
using testing::Put;

class CgroupTest : public ::testing::Test {
 protected:
  std::vector<SpaceLimit> Limits() { return CgroupMemoryLimits(Proc(), temp_.path().string()); }
  fs::path Proc() const { return temp_.path() / "proc"; }
  fs::path Mounted(const std::string& path) const { return temp_.path().string() + path; }

  TemporaryFolder temp_;
};

TEST_F(CgroupTest, Version2CountsEveryLevel) {
  Put(Proc() / "cgroup", "0::/jobs/one\n");
  Put(Proc() / "mountinfo",
      "31 23 0:28 / /cg rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  Put(Mounted("/cg/jobs/memory.max"), "1000000\n");
  Put(Mounted("/cg/jobs/memory.current"), "700000\n");
  Put(Mounted("/cg/jobs/memory.stat"),
      "anon 1\nfile 300000\nshmem 50000\ninactive_anon 5\ninactive_file 100000\nactive_file "
      "20000\n");
  Put(Mounted("/cg/jobs/one/memory.max"), "max\n");
  Put(Mounted("/cg/jobs/one/memory.current"), "1\n");
  const std::vector<SpaceLimit> limits = Limits();
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].free, 1000000u - (700000u - 120000u));
  EXPECT_EQ(limits[0].total, 1000000u);
  EXPECT_THAT(limits[0].what, HasSubstr("/cg/jobs"));
}

TEST_F(CgroupTest, Version1AsInAContainer) {
  Put(Proc() / "cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/abc\n1:name=systemd:/\n0::/\n");
  Put(Proc() / "mountinfo",
      "30 31 0:27 / /cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
      "35 31 0:32 /docker/abc /memory rw - cgroup cgroup rw,memory\n");
  Put(Mounted("/memory/memory.limit_in_bytes"), "5000\n");
  Put(Mounted("/memory/memory.usage_in_bytes"), "6000\n");
  Put(Mounted("/memory/memory.stat"),
      "inactive_file 9\ntotal_inactive_file 300\ntotal_active_file 200\n");
  const std::vector<SpaceLimit> limits = Limits();
  ASSERT_EQ(limits.size(), 1u);
  EXPECT_EQ(limits[0].free, 0u);
  Put(Mounted("/memory/memory.usage_in_bytes"), "4000\n");
  EXPECT_EQ(Limits()[0].free, 1500u);
  Put(Mounted("/memory/memory.limit_in_bytes"), "9223372036854771712\n");
  EXPECT_TRUE(Limits().empty());
}

TEST_F(CgroupTest, NoneAndNonsenseGiveNoLimit) {
  EXPECT_TRUE(Limits().empty());
  Put(Proc() / "cgroup", "0::/../..\nx\n::\n4:memory\n");
  Put(Proc() / "mountinfo",
      "short\n31 23 0:28 / /cg rw - cgroup2 cgroup2 rw\n31 23 0:28 / /m - cgroup\n-\n");
  Put(Mounted("/cg/memory.max"), "lots\n");
  EXPECT_TRUE(Limits().empty());
}

TEST(MemoryLimits, TheLeastOfHostAndGroups) {
  const uint64_t available = AvailableMemory();
  EXPECT_GT(available, 0u);
  EXPECT_LE(available, HostMemory().total);
  for (const MemoryLimit& limit : CgroupMemory("/proc/self", "")) {
    EXPECT_LE(available, limit.total);
  }
}

TEST(Room, TheRealHostHasLimits) {
  const std::vector<SpaceLimit> limits = SpaceIn("/dev/shm");
  ASSERT_FALSE(limits.empty());
  EXPECT_FALSE(Shortage("/dev/shm", 0));
  const auto shortage = Shortage("/dev/shm", uint64_t{1} << 60);
  ASSERT_TRUE(shortage);
  EXPECT_THAT(CaughtText([&] { ThrowShortage(*shortage, 7777, "/dev/shm/x"); }),
              AllOf(HasSubstr("/dev/shm/x: staging needs"), HasSubstr("(7777 bytes)"),
                    HasSubstr("(" + std::to_string(shortage->free) + " bytes)")));
}

// Runs `inside` in a child that has a tmpfs of `size` at `folder`, mounted in a namespace of its
// own. The exit status is 77 if that is not allowed and 0 if `inside` returned "". Otherwise it is
// 1, and the text is on stderr.
int WithSmallTmpfs(const fs::path& folder, const char* size,
                   const std::function<std::string()>& inside) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool apart = ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
    const std::string data = std::string("size=") + size + ",mode=0700";
    if (!apart || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", folder.c_str(), "tmpfs", 0, data.c_str()) != 0) {
      ::_exit(77);
    }
    const std::string problem = inside();
    if (!problem.empty()) std::fprintf(stderr, "%s\n", problem.c_str());
    ::_exit(problem.empty() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

class SmallTmpfsTest : public testing::StagingTest {
 protected:
  SmallTmpfsTest() { fs::create_directories(root_); }

  static uint64_t UsedBytes(const fs::path& folder) {
    struct statvfs info{};
    ::statvfs(folder.c_str(), &info);
    return (info.f_blocks - info.f_bfree) * info.f_frsize;
  }
};

#define SKIP_WITHOUT_MOUNT(status)                                          \
  if ((status) == 77)                                                       \
  GTEST_SKIP() << "neither root nor user namespaces: cannot mount a small " \
                  "tmpfs"

TEST_F(SmallTmpfsTest, TooSmallIsRefusedBeforeTheFirstByte) {
  const int status = WithSmallTmpfs(root_, "4m", [&]() -> std::string {
    uint64_t done = 0;
    const std::string error = CaughtText([&] {
      CopyHooks hooks;
      hooks.progress = [&](uint64_t bytes, uint64_t) { done = bytes; };
      Stager(Options()).Stage(source_, hooks);
    });
    for (const char* part :
         {"staging needs 4.8 MiB (", "has 4.0 MiB free (4194304 bytes)", "--shm-size"}) {
      if (error.find(part) == std::string::npos)
        return "no '" + std::string(part) + "' in: " + error;
    }
    if (done != 0) return "copied before it looked";
    return InRoot().empty() ? "" : "left something behind";
  });
  SKIP_WITHOUT_MOUNT(status);
  EXPECT_EQ(status, 0);
}

// Each checkpoint fits, both together do not. The second is refused as if it had come later,
// however much of the first is written by then.
TEST_F(SmallTmpfsTest, TwoAtOnceNeverCountOnTheSameRoom) {
  const fs::path other = temp_.path() / "other";
  testing::PutWhole(other, Bytes(4'900'000, 2));
  const int status = WithSmallTmpfs(root_, "8m", [&]() -> std::string {
    std::string error;
    CopyHooks hooks;
    bool asked = false;
    hooks.progress = [&](uint64_t, uint64_t) {
      if (asked) return;
      asked = true;
      error = CaughtText([&] { Stager(Options()).Stage(other); });
    };
    const StagedCheckpoint first = Stager(Options()).Stage(source_, hooks);
    if (error.find("staging needs 4.7 MiB (") == std::string::npos) return "unexpected: " + error;
    return ListStaged(root_).size() == 1 ? "" : "the first should be there";
  });
  SKIP_WITHOUT_MOUNT(status);
  EXPECT_EQ(status, 0);
}

TEST_F(SmallTmpfsTest, TheRoomIsTakenWhetherItIsWrittenOrNot) {
  const int status = WithSmallTmpfs(root_, "8m", [&]() -> std::string {
    const std::vector<FileStamp> files = {{.name = "a/b", .bytes = 5 << 20},
                                          {.name = "c", .bytes = 0}};
    const auto reserve = [&](const fs::path& target) {
      MakeTree(files, target);
      Reservation(SpaceTurn(root_, nullptr), files, target, 5 << 20).Finish();
    };
    reserve(root_ / "first");
    if (UsedBytes(root_) < (5 << 20)) return "not taken";
    if (BytesWritten(root_ / "first/a/b") != 0) return "nothing is written yet";
    std::ofstream(root_ / "first/a/b", std::ios::in | std::ios::out) << Bytes(4 << 20, 1);
    if (BytesWritten(root_ / "first/a/b") != (4 << 20)) return "4 MiB are written";
    const std::string error = CaughtText([&] { reserve(root_ / "second"); });
    for (const char* part : {"staging needs 5.0 MiB (5242880 bytes)", "has 3.0 MiB free"}) {
      if (error.find(part) == std::string::npos)
        return "no '" + std::string(part) + "' in: " + error;
    }
    return fs::exists(root_ / "second") ? "left something behind" : "";
  });
  SKIP_WITHOUT_MOUNT(status);
  EXPECT_EQ(status, 0);
}

TEST(SpaceTurn, OneAtATimeAndCancelled) {
  const TemporaryFolder folder;
  std::atomic<bool> cancel{true};
  const SpaceTurn first(folder.path(), &cancel);
  EXPECT_THAT(CaughtText([&] { SpaceTurn(folder.path(), &cancel); }), HasSubstr("cancelled"));
}

// There is room for the checkpoint's files, and none for the record and the lease that are added at
// the end.
TEST_F(SmallTmpfsTest, FillingUpMeanwhileLeavesNothingBehind) {
  const int status = WithSmallTmpfs(root_, "8m", [&]() -> std::string {
    CopyHooks hooks;
    bool filled = false;
    hooks.progress = [&](uint64_t, uint64_t) {
      if (!filled) std::ofstream(root_ / "other", std::ios::binary) << Bytes(9 << 20, 3);
      filled = true;
    };
    StagerOptions options = Options();
    options.copy.threads = 1;
    options.copy.block_bytes = 65536;
    const std::string error = CaughtText([&] { Stager(options).Stage(source_, hooks); });
    if (error.find("No space left") == std::string::npos) return "unexpected: " + error;
    return InRoot() == std::set<std::string>{"other"} ? "" : "left something behind";
  });
  SKIP_WITHOUT_MOUNT(status);
  EXPECT_EQ(status, 0);
}

TEST_F(SmallTmpfsTest, RoomIsLookedForInTheRoot) {
  const int status = WithSmallTmpfs(root_, "8m", [&]() -> std::string {
    const Stager stager(Keeping());
    const fs::path other = temp_.path() / "other";
    testing::PutWhole(other, Bytes(4'900'000, 2));
    if (!stager.HasSpace(source_) || !stager.HasSpace(other)) return "it is empty";
    auto staged = std::optional(stager.Stage(source_));
    if (!stager.HasSpace(source_)) return "what is staged needs no room";
    if (stager.HasSpace(other)) return "the other one does not fit beside a leased one";
    staged->Release();
    if (!stager.HasSpace(other)) return "kept ones would give way";
    return ListStaged(root_).size() == 1 ? "" : "a look changes nothing";
  });
  SKIP_WITHOUT_MOUNT(status);
  EXPECT_EQ(status, 0);
}

TEST_F(SmallTmpfsTest, WhatNeverFitsIsRefused) {
  const int status = WithSmallTmpfs(root_, "8m", [&]() -> std::string {
    const Stager stager(Keeping());
    const auto staged = stager.Stage(source_);
    const fs::path other = temp_.path() / "other", large = temp_.path() / "large";
    testing::PutWhole(other, Bytes(4'900'000, 2));
    testing::PutWhole(large, Bytes(9'000'000, 2));
    stager.CheckFits(other);  // once the other checkpoint is dropped
    try {
      stager.CheckFits(large);
    } catch (const Error& e) {
      return e.kind() == ErrorKind::kUsage &&
                     e.message().find("8.0 MiB in all") != std::string::npos
                 ? ""
                 : e.what();
    }
    return "it never fits";
  });
  SKIP_WITHOUT_MOUNT(status);
  EXPECT_EQ(status, 0);
}

TEST(ExistingPart, OfARootThatIsNotMadeYet) {
  const TemporaryFolder folder;
  EXPECT_EQ(ExistingPartOf(folder.path()), folder.path());
  EXPECT_EQ(ExistingPartOf(folder.path() / "evald-0"), folder.path());
  EXPECT_EQ(ExistingPartOf(folder.path() / "a" / "b" / ".." / "c"), folder.path());
  EXPECT_EQ(ExistingPartOf("/nowhere/at/all"), "/");
}

TEST_F(SmallTmpfsTest, KeptOnesGiveWay) {
  const int status = WithSmallTmpfs(root_, "12m", [&]() -> std::string {
    Stager(Keeping()).Stage(source_).Release();
    const auto leased = [&] {
      testing::PutWhole(source_, Bytes(4'900'000, 2));
      return Stager(Keeping()).Stage(source_);
    }();
    if (ListStaged(root_).size() != 2) return "two should fit";
    testing::PutWhole(source_, Bytes(4'900'000, 3));
    const auto third = Stager(Keeping()).Stage(source_);
    if (ListStaged(root_).size() != 2) return "the kept one should have given way";
    testing::PutWhole(source_, Bytes(4'900'000, 4));
    const std::string error = CaughtText([&] { Stager(Keeping()).Stage(source_); });
    if (error.find("staging needs") == std::string::npos) return "leased ones must not: " + error;
    if (ListStaged(root_).size() != 2) return "leased ones were dropped";
    if (!fs::exists(leased.directory()) || !fs::exists(third.directory())) return "dropped";
    return UsedBytes(root_) < (11 << 20) ? "" : "left something behind";
  });
  SKIP_WITHOUT_MOUNT(status);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace evald
