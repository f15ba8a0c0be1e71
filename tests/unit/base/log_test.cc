#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <string>

namespace evald {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Standard error is a pipe that nobody reads unless Read() is called.
class LogInAPipe : public testing::Test {
 protected:
  void SetUp() override {
    own_ = ::dup(STDERR_FILENO);
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    ASSERT_EQ(::dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    ::close(ends[1]);
    reader_ = ends[0];
    ::fcntl(reader_, F_SETFL, O_NONBLOCK);
    SetUpLog("program", "info");
  }
  void TearDown() override {
    ::dup2(own_, STDERR_FILENO);
    ::close(own_);
    ::close(reader_);
  }

  std::string Read() const {
    std::string text;
    char buffer[65536];
    for (ssize_t n = 0; (n = ::read(reader_, buffer, sizeof buffer)) > 0;) text.append(buffer, n);
    return text;
  }

  int own_ = -1, reader_ = -1;
};

TEST_F(LogInAPipe, LinesThatAreReadAreAllThere) {
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    log::Info("line {} of many, which together are more than a pipe holds", i);
    if (i % 100 == 0) text += Read();
  }
  text += Read();
  EXPECT_THAT(text, HasSubstr("line 0 of many"));
  EXPECT_THAT(text, HasSubstr("line 2999 of many"));
  EXPECT_THAT(text, Not(HasSubstr("lost")));
}

TEST_F(LogInAPipe, LinesThatNobodyReadsAreLostAndCounted) {
  for (int i = 0; i < 3000; ++i) log::Info("line {} of many, more than a pipe holds", i);
  const std::string first = Read();
  EXPECT_THAT(first, HasSubstr("line 0 of many"));
  EXPECT_THAT(first, Not(HasSubstr("line 2999 of many")));
  log::Info("somebody reads again");
  const std::string then = Read();
  EXPECT_THAT(then, HasSubstr(" lines of this log are lost: nobody read them\n"));
  EXPECT_THAT(then, HasSubstr("somebody reads again\n"));
}

TEST_F(LogInAPipe, ALineLongerThanThePipeHangsNobody) {
  log::Info("{}", std::string(1 << 20, 'x'));
  EXPECT_THAT(Read(), HasSubstr("xxxx"));
}

TEST_F(LogInAPipe, AReaderWhoHasGoneStopsNothing) {
  ::signal(SIGPIPE, SIG_IGN);
  ::close(reader_);
  reader_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  for (int i = 0; i < 100; ++i) log::Info("to nobody");
}

}  // namespace
}  // namespace evald
