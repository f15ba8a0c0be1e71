#include "base/program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ProgramCall Shell(const std::string& script) { return {"/bin/sh", {"-c", script}}; }

TEST(Program, GivesStatusOutputAndErrors) {
  ProgramCall call = Shell("read line; echo \"got $line\"; echo wrong >&2; exit 3");
  call.input = "a line\n";
  call.keeps_errors = true;
  const ProgramResult result = RunProgram(call);
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.output, "got a line\n");
  EXPECT_EQ(result.errors, "wrong\n");
  EXPECT_EQ(RunProgram(Shell("kill -9 $$")).status, 128 + 9);
}

TEST(Program, IsFoundInThePath) { EXPECT_EQ(RunProgram({"true"}).status, 0); }

// A program that outlives this process would otherwise keep its ports.
TEST(Program, InheritsNoDescriptor) {
  // Without O_CLOEXEC, as of some libraries, and of a number that `ls` does not use itself
  const int end = ::fcntl(STDIN_FILENO, F_DUPFD, 100);
  ASSERT_GE(end, 100);
  const std::string open = RunProgram(Shell("ls /proc/self/fd")).output;
  EXPECT_THAT(open, Not(HasSubstr("\n" + std::to_string(end) + "\n")));
  ::close(end);
}

TEST(Program, ThatIsMissingIsNamed) {
  EXPECT_THAT(CaughtText([] { RunProgram({"no-such-program"}); }), HasSubstr("no-such-program"));
}

TEST(Program, SeesTheVariablesOfTheCall) {
  ProgramCall call = Shell("echo \"$HOME $EVALD_TEST\"");
  call.environment = {{"HOME", "/nowhere"}, {"EVALD_TEST", "1"}};
  EXPECT_EQ(RunProgram(call).output, "/nowhere 1\n");
  ::setenv("EVALD_TEST_SECRET", "2", 1);
  call = Shell("env");
  call.environment = {{"EVALD_TEST", "1"}};
  call.clears_environment = true;
  EXPECT_THAT(RunProgram(call).output, HasSubstr("EVALD_TEST=1\n"));
  EXPECT_THAT(RunProgram(call).output, testing::Not(HasSubstr("SECRET")));
}

TEST(Program, IsKilledSoonAfterItIsGivenUp) {
  std::atomic<bool> given_up{false};
  ProgramCall call = Shell("sleep 100 & sleep 100");
  call.timeout = std::chrono::seconds(60);
  call.given_up = &given_up;
  std::thread giving([&] {
    ::usleep(200'000);
    given_up = true;
  });
  const int64_t begun = MonotonicMicros();
  EXPECT_THAT(CaughtText([&] { RunProgram(call); }), HasSubstr("/bin/sh was given up"));
  EXPECT_LT(MonotonicMicros() - begun, 5'000'000);
  giving.join();
}

TEST(Program, ThatIsOnlyStartedGoesOnByItself) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const std::string path = "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(ends[1]);
  StartProgram(Shell("sleep 0.2; echo nobody reads this; echo told >" + path));
  char said[5] = {};
  EXPECT_EQ(::read(ends[0], said, sizeof said), 5);
  EXPECT_EQ(std::string(said, 4), "told");
  for (const int end : ends) ::close(end);
}

TEST(Program, IsKilledWithItsChildrenOnceItsTimeIsUp) {
  ProgramCall call = Shell("sleep 100 & sleep 100");
  call.timeout = std::chrono::milliseconds(200);
  const int64_t begun = MonotonicMicros();
  EXPECT_THAT(CaughtText([&] { RunProgram(call); }),
              HasSubstr("/bin/sh has not answered within 0.2 s"));
  EXPECT_LT(MonotonicMicros() - begun, 20'000'000);
}

TEST(Program, LongOutputIsCut) {
  const ProgramResult result = RunProgram(Shell("head -c 3000000 /dev/zero"));
  EXPECT_GE(result.output.size(), size_t{1} << 20);
  EXPECT_LE(result.output.size(), (size_t{1} << 20) + 4096);
}

}  // namespace
}  // namespace evald
