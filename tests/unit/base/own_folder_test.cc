// Folders whose content is trusted: no other user may have made them or may write to them.
#include "base/own_folder.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr uid_t kOther = 12345;

class OwnFolder : public ::testing::Test {
 protected:
  static std::string ErrorOf(const fs::path& folder) {
    const std::string text =
        CaughtText([&] { MakeOwnFolder(folder, "set state_dir"); }, ErrorKind::kUsage);
    if (!text.empty()) {
      EXPECT_THAT(text, HasSubstr("set state_dir"));
    }
    return text;
  }
  static mode_t ModeOf(const fs::path& path) {
    struct stat info{};
    return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
  }
  fs::path Make(const std::string& name, mode_t mode, uid_t owner = ::geteuid()) {
    const fs::path path = scratch_ / name;
    fs::create_directories(path);
    EXPECT_EQ(::chown(path.c_str(), owner, static_cast<gid_t>(-1)), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  TemporaryFolder scratch_;
};

TEST_F(OwnFolder, IsMadeForItsUserOnlyWithWhatIsMissingAbove) {
  const mode_t before = ::umask(0);
  MakeOwnFolder(scratch_ / "a" / "b" / "c", "");
  ::umask(before);
  for (const char* name : {"a", "a/b", "a/b/c"}) EXPECT_EQ(ModeOf(scratch_ / name), 0700u) << name;
  MakeOwnFolder(scratch_ / "a" / "b" / "c" / "", "");
}

// A default ACL (acl(5)) of the folder above takes the place of the umask.
TEST_F(OwnFolder, NewFoldersGrantNothingThatADefaultAclGrants) {
  const fs::path above = Make("above", 0755);
  struct Entry {
    uint16_t tag, rights;
    uint32_t id;
  };
  constexpr uint32_t kNoId = 0xffffffff;
  struct {
    uint32_t version = 2;
    Entry entries[5] = {
        {1, 7, kNoId}, {2, 7, kOther}, {4, 7, kNoId}, {0x10, 7, kNoId}, {0x20, 7, kNoId}};
  } acl;  // u::rwx u:other:rwx g::rwx m::rwx o::rwx
  if (::setxattr(above.c_str(), "system.posix_acl_default", &acl, sizeof acl, 0) != 0)
    GTEST_SKIP() << "the file system has no ACLs";
  fs::create_directory(above / "plain");
  EXPECT_EQ(ModeOf(above / "plain"), 0777u);  // what the kernel does
  MakeDirectories(above / "a" / "b");
  MakeOwnFolder(above / "own", "");
  EXPECT_EQ(MakeFolder(above / "one"), 0);
  EXPECT_EQ(MakeFolder(above / "one"), EEXIST);
  std::ofstream(above / "a" / "b" / "file") << "x";
  for (const char* name : {"a", "a/b", "one", "own", "a/b/file"}) {
    EXPECT_EQ(ModeOf(above / name) & 0022u, 0u) << name;
    EXPECT_EQ(::getxattr((above / name).c_str(), "system.posix_acl_default", nullptr, 0), -1)
        << name;
  }
}

TEST_F(OwnFolder, OneThatOthersMayReadStaysOrIsMadePrivate) {
  const fs::path folder = Make("readable", 0755);
  MakeOwnFolder(folder, "");
  EXPECT_EQ(ModeOf(folder), 0755u);
  MakePrivateFolder(folder, "");
  EXPECT_EQ(ModeOf(folder), 0700u);
}

TEST_F(OwnFolder, OneThatOthersMayWriteIsRefused) {
  EXPECT_THAT(ErrorOf(Make("group", 0770)), HasSubstr("may be written by others (mode 770)"));
  EXPECT_THAT(ErrorOf(Make("all", 01777)), HasSubstr("may be written by others (mode 1777)"));
}

TEST_F(OwnFolder, WhatIsNoFolderIsRefused) {
  const fs::path folder = Make("folder", 0700);
  fs::create_directory_symlink(folder, scratch_ / "link");
  EXPECT_THAT(ErrorOf(scratch_ / "link"), HasSubstr("is not a folder"));
  ASSERT_EQ(::close(::open((scratch_ / "file").c_str(), O_CREAT | O_WRONLY, 0600)), 0);
  EXPECT_THAT(ErrorOf(scratch_ / "file"), HasSubstr("is not a folder"));
  EXPECT_NE(ErrorOf(scratch_ / "file" / "below"), "");
}

TEST_F(OwnFolder, AnotherUsersIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's folder";
  EXPECT_THAT(ErrorOf(Make("theirs", 0777, kOther)),
              HasSubstr("belongs to user 12345, expected 0"));
  EXPECT_THAT(ErrorOf(Make("private", 0700, kOther)),
              HasSubstr("belongs to user 12345, expected 0"));
}

// Like /tmp/.cache/evald below a /tmp/.cache that another user made: that user could exchange its
// content.
TEST_F(OwnFolder, BelowAFolderThatAnyoneCouldHaveMadeItIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's folder";
  const fs::path open = Make("tmp", 01777);
  Make("tmp/.cache", 0777, kOther);
  ASSERT_EQ(::chmod((open / ".cache").c_str(), 01777), 0);
  EXPECT_THAT(ErrorOf(open / ".cache" / "evald"),
              HasSubstr("tmp/.cache, which belongs to user 12345"));
  // Another user's link is refused too, wherever it leads.
  Make("mine", 0700);
  fs::create_directory_symlink(scratch_ / "mine", open / "link");
  ASSERT_EQ(::lchown((open / "link").c_str(), kOther, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(ErrorOf(open / "link" / "evald"), HasSubstr("tmp/link, which belongs to user 12345"));
  EXPECT_EQ(ErrorOf(open / "evald"), "");
}

TEST_F(OwnFolder, BelowAFolderWhereAllMayRenameItIsRefused) {
  Make("open", 0777);
  EXPECT_THAT(ErrorOf(scratch_ / "open" / "evald"),
              HasSubstr("every user may rename it (mode 777"));
  // Also if a link hides the folder.
  fs::create_directory_symlink(scratch_ / "open", scratch_ / "hidden");
  EXPECT_THAT(ErrorOf(scratch_ / "hidden" / "evald"), HasSubstr("every user may rename it"));
  ASSERT_EQ(::chmod((scratch_ / "open").c_str(), 01777), 0);
  EXPECT_EQ(ErrorOf(scratch_ / "open" / "evald"), "");
}

// Another user who owns a folder above, or may write to it, can rename what lies in it.
TEST_F(OwnFolder, BelowAFolderThatAnotherUserMayRenameItIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's folder";
  Make("theirs", 0755, kOther);
  const fs::path mine = Make("theirs/mine", 0700);
  EXPECT_THAT(ErrorOf(mine / "evald"),
              HasSubstr("theirs, which belongs to user 12345; expected 0 or root"));

  const fs::path shared = Make("shared", 0775);
  ASSERT_EQ(::chown(shared.c_str(), ::geteuid(), kOther), 0);
  EXPECT_THAT(ErrorOf(shared / "evald"), HasSubstr("where group 12345 may rename it (mode 775"));
  ASSERT_EQ(::chmod(shared.c_str(), 01775), 0);
  EXPECT_EQ(ErrorOf(shared / "evald"), "") << "the sticky bit";
  ASSERT_EQ(::chmod(shared.c_str(), 0775), 0);
  ASSERT_EQ(::chown(shared.c_str(), ::geteuid(), ::getegid()), 0);
  EXPECT_EQ(ErrorOf(shared / "evald"), "") << "root's group";
}

TEST_F(OwnFolder, EveryLinkOnTheWayIsChecked) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's folder";
  const fs::path theirs = Make("theirs", 0755, kOther), mine = Make("mine", 0700);
  fs::create_directory_symlink(mine, theirs / "inner");
  fs::create_directory_symlink(theirs / "inner", scratch_ / "outer");
  EXPECT_THAT(ErrorOf(scratch_ / "outer" / "evald"),
              HasSubstr("theirs, which belongs to user 12345"));
  fs::create_directory_symlink("mine", scratch_ / "plain");
  fs::create_directory_symlink("../" + scratch_.path().filename().string() + "/plain",
                               scratch_ / "twice");
  EXPECT_EQ(ErrorOf(scratch_ / "twice" / "evald"), "");
  fs::create_directory_symlink("loop", scratch_ / "loop");
  EXPECT_NE(ErrorOf(scratch_ / "loop" / "evald"), "");
}

TEST_F(OwnFolder, BelowAFolderWhoseAccessControlListLetsOthersWriteIsRefused) {
  // Version 2; then tag, permissions and id of: owner, user 12345, group, mask, others.
  const auto list = [](char mask) {
    std::string entries(
        "\2\0\0\0\1\0\7\0\xff\xff\xff\xff\2\0\7\0\x39\x30\0\0"
        "\4\0\5\0\xff\xff\xff\xff\x10\0",
        30);
    entries.push_back(mask);
    return entries + std::string("\0\xff\xff\xff\xff\x20\0\5\0\xff\xff\xff\xff", 13);
  };
  const fs::path listed = Make("listed", 0755);
  const auto set = [&](char mask) {
    const std::string entries = list(mask);
    return ::setxattr(listed.c_str(), "system.posix_acl_access", entries.data(), entries.size(), 0);
  };
  if (set(7) != 0) GTEST_SKIP() << "the file system has no ACLs";
  EXPECT_THAT(ErrorOf(listed / "evald"), HasSubstr("where user 12345 may rename it"));
  ASSERT_EQ(set(5), 0);
  EXPECT_EQ(ErrorOf(listed / "evald"), "") << "the mask denies the user to write";
}

class Home : public ::testing::Test {
 protected:
  ~Home() override {
    if (before_.empty()) {
      ::unsetenv("HOME");
    } else {
      ::setenv("HOME", before_.c_str(), 1);
    }
  }
  std::string before_ = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
};

TEST_F(Home, WithoutTheVariableThePasswordDatabaseSays) {
  ::setenv("HOME", "/somewhere", 1);
  EXPECT_EQ(HomeFolder(), "/somewhere");
  EXPECT_EQ(ExpandHome("~/data"), "/somewhere/data");
  EXPECT_EQ(ExpandHome("data/~/x"), "data/~/x");
  const passwd* user = ::getpwuid(::geteuid());
  for (const char* wrong : {"", "relative"}) {
    ::setenv("HOME", wrong, 1);
    EXPECT_EQ(HomeFolder(), user == nullptr ? "" : user->pw_dir) << wrong;
  }
  ::unsetenv("HOME");
  EXPECT_EQ(HomeFolder(), user == nullptr ? "" : user->pw_dir);
}

TEST(TmpFolder, IsTheOneThatIsSetIfItIsThere) {
  const char* set = std::getenv("TMPDIR");
  const std::string before = set == nullptr ? "" : set;
  ::setenv("TMPDIR", "", 1);
  EXPECT_EQ(TmpFolder(), "/tmp");
  ::setenv("TMPDIR", "/usr", 1);
  EXPECT_EQ(TmpFolder(), "/usr");
  ::setenv("TMPDIR", "/no/such", 1);
  EXPECT_THAT(CaughtText([] { TmpFolder(); }, ErrorKind::kUsage),
              HasSubstr("/no/such: expected the folder for temporary files"));
  if (set == nullptr) {
    ::unsetenv("TMPDIR");
  } else {
    ::setenv("TMPDIR", before.c_str(), 1);
  }
}

}  // namespace
}  // namespace evald
