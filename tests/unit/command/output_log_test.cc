#include "worker/command/output_log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::command {
namespace {

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    read = UniqueFd(fds[0]);
    write = UniqueFd(fds[1]);
  }
  UniqueFd read, write;
};

// A process that outlived everything may hold the pipe.
TEST(OutputLog, EndsAlthoughThePipeIsOpen) {
  const TemporaryFolder folder;
  Pipe pipe;
  OutputLog log(std::move(pipe.read), folder / "log", 100);
  ASSERT_EQ(::write(pipe.write.get(), "abc", 3), 3);
  log.Finish();
  EXPECT_EQ(log.Tail(), "abc");
  EXPECT_EQ(ReadFile(folder / "log"), "abc");
}

TEST(OutputLog, LeavesOutTheMiddle) {
  const TemporaryFolder folder;
  Pipe pipe;
  OutputLog log(std::move(pipe.read), folder / "log", 10);
  const std::string text = std::string(10, 'a') + std::string(5, 'b');
  ASSERT_EQ(::write(pipe.write.get(), text.data(), text.size()), 15);
  pipe.write.reset();
  log.Finish();
  EXPECT_EQ(ReadFile(folder / "log"),
            "aaaaaaaaaa\n… evald: 0 B of output are left out here\nbbbbb");
}

TEST(OutputLog, AFolderThatIsNotThereIsNamed) {
  const TemporaryFolder folder;
  Pipe pipe;
  EXPECT_THAT(CaughtText([&] { OutputLog(std::move(pipe.read), folder / "a/log", 10); },
                         ErrorKind::kInfrastructure),
              ::testing::HasSubstr("a/log"));
}

}  // namespace
}  // namespace evald::command
