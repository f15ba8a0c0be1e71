// Key files.
#include "worker/endpoint/key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::endpoint::test {
namespace {

using ::testing::HasSubstr;

class KeyTest : public ::testing::Test {
 protected:
  void Write(const std::string& text, mode_t mode = 0600) {
    std::ofstream(file_) << text;
    ::chmod(file_.c_str(), mode);
  }
  std::string Refusal() {
    return CaughtText([&] { ReadOrMakeKey(file_); }, ErrorKind::kUsage);
  }
  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "key";
};

TEST_F(KeyTest, AKeyIsMadeForThisUserOnlyAndKept) {
  const std::string key = ReadOrMakeKey(file_);
  EXPECT_EQ(key.size(), 64u);
  struct stat info{};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_EQ(ReadOrMakeKey(file_), key);
  EXPECT_NE(MakeKey(), key);
}

TEST_F(KeyTest, AnOwnKeyIsTaken) {
  Write("  a-key-of-my-own-1234\n");
  EXPECT_EQ(ReadOrMakeKey(file_), "a-key-of-my-own-1234");
}

TEST_F(KeyTest, OtherFilesAreRefusedByName) {
  Write("a-key-of-my-own-1234", 0640);
  EXPECT_THAT(Refusal(), HasSubstr("others than its owner"));
  for (const std::string text :
       {"", "short", "two words of some length", "a\x01key-of-my-own-1234"}) {
    Write(text);
    EXPECT_THAT(Refusal(), HasSubstr("at least 16 visible"));
    EXPECT_THAT(Refusal(), HasSubstr(file_.string()));
  }
  if (::geteuid() == 0) {  // only root can give a file away
    Write("a-key-of-my-own-1234");
    ASSERT_EQ(::chown(file_.c_str(), 65534, 65534), 0);
    EXPECT_THAT(Refusal(), HasSubstr("belongs to user 65534"));
  }
  file_ = folder_.path();
  EXPECT_THAT(Refusal(), HasSubstr("no regular file"));
  file_ = folder_.path() / "none" / "key";
  EXPECT_THAT(Refusal(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace evald::endpoint::test
