// Jobs by programs of the user.
#include "orchestrator/launch/command_launcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
using Outcome = SubmitAnswer::Outcome;

std::vector<std::string> Shell(const std::string& script) { return {"/bin/sh", "-c", script}; }

SubmitAnswer Start(const std::string& script) {
  CommandLauncher launcher({.prefix = "e-",
                            .start = Shell(script),
                            .evald = "/opt/evald",
                            .agent = {"--devices", "cpu:0,cpu:1"}});
  NodeJob job;
  job.name = "e-1";
  return launcher.Submit(job, "join", {"n1", "n2"});
}

TEST(CommandLauncher, StartGetsAllByVariables) {
  const SubmitAnswer answer = Start(
      "echo \"$EVALD_JOB_NAME/$EVALD_JOIN/$EVALD_EXCLUDED/$EVALD/$EVALD_AGENT_ARGUMENTS\" | tr ' ' "
      "%");
  EXPECT_EQ(answer.outcome, Outcome::kAccepted);
  EXPECT_EQ(answer.job, "e-1/join/n1,n2//opt/evald/--devices%cpu:0,cpu:1");
}

TEST(CommandLauncher, TheStatusSaysWhetherTheJobMayExist) {
  const SubmitAnswer refused = Start("echo first >&2; echo 'no quota' >&2; exit 1");
  EXPECT_EQ(refused.outcome, Outcome::kRefused);
  EXPECT_EQ(refused.why, "no quota");
  EXPECT_EQ(Start("exit 75").outcome, Outcome::kUnknown);
  EXPECT_EQ(Start("exit 0").outcome, Outcome::kUnknown);  // no id
  EXPECT_EQ(Start("echo two words").outcome, Outcome::kUnknown);
  EXPECT_EQ(Start("yes | tr -d '\\n' | head -c 300").outcome, Outcome::kUnknown);
  CommandLauncher absent({.start = {"/absent/program"}});
  EXPECT_EQ(absent.Submit({}, "", {}).outcome, Outcome::kRefused);
}

TEST(CommandLauncher, AListHasALineForEachJob) {
  const std::string output =
      R"({"job": "7", "name": "e-1", "state": "running", "node": "n1", "ends_at": 170.5})"
      "\n\n"
      R"({"job": "8", "name": "e-2", "state": "pending", "reason": "Priority", "more": [1]})"
      "\n"
      R"({"name": "another's"})";
  const std::vector<ListedJob> jobs = CommandLauncher::ParseList(output, "e-");
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].job, "7");
  EXPECT_EQ(jobs[0].state, ListedJob::State::kRunning);
  EXPECT_EQ(jobs[0].node, "n1");
  EXPECT_EQ(jobs[0].ends_at, 170.5);
  EXPECT_EQ(jobs[1].reason, "Priority");
}

TEST(CommandLauncher, AListOfAnotherFormIsNamedByItsLine) {
  const auto wrong = [](const std::string& output) {
    return CaughtText([&] { CommandLauncher::ParseList(output, "e-"); },
                      ErrorKind::kInfrastructure);
  };
  EXPECT_THAT(wrong("\nJOB STATE\n"), HasSubstr("line 2 of 'list'"));
  EXPECT_THAT(
      wrong(R"({"name": "e-1", "job": "1", "state": "R"})"),
      HasSubstr("line 1 of 'list': key 'state': found 'R', expected pending, running or over"));
  EXPECT_THAT(wrong(R"({"name": "e-1", "state": "over"})"), HasSubstr("key 'job'"));
  EXPECT_THAT(wrong(R"({"name": "e-1", "job": 7, "state": "over"})"), HasSubstr("key 'job'"));
}

TEST(CommandLauncher, AFailureOfListOrStopSaysWhy) {
  CommandLauncher launcher({.stop = Shell("test \"$EVALD_JOB\" = 7 || exit 4"),
                            .list = Shell("echo 'cannot log in' >&2; exit 3")});
  EXPECT_THAT(CaughtText([&] { launcher.List(); }, ErrorKind::kInfrastructure),
              HasSubstr("/bin/sh fails: cannot log in"));
  NodeJob job;
  job.job = "7";
  launcher.Stop(job);
  job.job = "";
  EXPECT_THAT(CaughtText([&] { launcher.Stop(job); }, ErrorKind::kInfrastructure),
              HasSubstr("exit status 4"));
}

}  // namespace
}  // namespace evald
