#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "base/file.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class WriteOutputTest : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST_F(WriteOutputTest, AFileIsReplacedWhole) {
  WriteOutput(folder_ / "a", "one");
  WriteOutput(folder_ / "a", "two");
  EXPECT_EQ(ReadFile(folder_ / "a"), "two");
}

TEST_F(WriteOutputTest, OfALinkTheFileBehindIsReplaced) {
  WriteOutput(folder_ / "a", "one");
  fs::create_symlink("a", folder_ / "link");
  WriteOutput(folder_ / "link", "two");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(ReadFile(folder_ / "a"), "two");
}

TEST_F(WriteOutputTest, APipeIsWrittenTo) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string found;
  std::thread reader([&] { found = ReadFile(pipe); });
  WriteOutput(pipe, "one");
  reader.join();
  EXPECT_EQ(found, "one");
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST_F(WriteOutputTest, APipeOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's pipe";
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0666), 0);
  ASSERT_EQ(::chown(pipe.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  EXPECT_THAT(CaughtText([&] { WriteOutput(pipe, "one"); }, ErrorKind::kUsage),
              HasSubstr("is a pipe of user 12345"));
}

TEST_F(WriteOutputTest, APendingFileFollowsNoLinkAndWaitsForNoPipe) {
  const fs::path target = folder_.path() / "target", file = folder_.path() / "file";
  WriteFileAtomic(target, "kept");
  fs::create_symlink(target, file.string() + ".part");
  EXPECT_THAT(CaughtText([&] { PendingFile{file}; }, ErrorKind::kUsage),
              HasSubstr("file.part: expected a file or nothing, found a symbolic link"));
  EXPECT_EQ(ReadFile(target), "kept");
  fs::remove(file.string() + ".part");
  ASSERT_EQ(::mkfifo((file.string() + ".part").c_str(), 0600), 0);
  EXPECT_THAT(CaughtText([&] { PendingFile{file}; }, ErrorKind::kUsage), HasSubstr("found a pipe"));
}

TEST_F(WriteOutputTest, ALinkOfAnotherUserIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give links to another user";
  WriteFileAtomic(folder_ / "mine", "kept");
  fs::create_symlink(folder_ / "mine", folder_ / "link");
  WriteOutput(folder_ / "link", "new");
  EXPECT_EQ(ReadFile(folder_ / "mine"), "new");
  ASSERT_EQ(::lchown((folder_ / "link").c_str(), 12345, 12345), 0);
  EXPECT_THAT(CaughtText([&] { WriteOutput(folder_ / "link", "x"); }, ErrorKind::kUsage),
              HasSubstr("is a symbolic link of user 12345"));
  EXPECT_EQ(ReadFile(folder_ / "mine"), "new");
}

TEST_F(WriteOutputTest, ADeviceStaysOne) {
  // If WriteOutput were wrong, root would rename a file over /dev/full itself. So the test names a
  // link.
  fs::create_symlink("/dev/full", folder_ / "full");
  EXPECT_THROW(WriteOutput(folder_ / "full", "one"), Error);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  WriteOutput("/dev/null", "one");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace evald
