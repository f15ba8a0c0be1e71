#include "orchestrator/launch/slurm_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "orchestrator/launch/slurm.h"
#include "tests/unit/support/caught.h"

namespace evald::slurm {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using Outcome = SubmitAnswer::Outcome;

TEST(SlurmText, AListHasThisServicesJobs) {
  const std::vector<ListedJob> jobs = ParseList(
      "1|evald-ab-1|RUNNING|n1|1795781777|1795781837|None\n"
      "2|evald-ab-2|PENDING||N/A|N/A|Resources\n"
      "3|another|name|RUNNING|n2|1795781777|1795781837|None\n"
      "4|evald-ab-3|CANCELLED by 0|n1|1|2|(reason|with bars)\n"
      "5|evald-cd-3|RUNNING\n",
      "evald-ab-");
  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs[0].job, "1");
  EXPECT_EQ(jobs[0].state, ListedJob::State::kRunning);
  EXPECT_EQ(jobs[0].node, "n1");
  EXPECT_EQ(jobs[0].starts_at, 1795781777);
  EXPECT_EQ(jobs[0].ends_at, 1795781837);
  EXPECT_EQ(jobs[0].reason, "");
  EXPECT_EQ(jobs[1].state, ListedJob::State::kPending);
  EXPECT_EQ(jobs[1].reason, "Resources");
  EXPECT_EQ(jobs[1].starts_at, 0);
  EXPECT_EQ(jobs[2].state, ListedJob::State::kOver);
  EXPECT_EQ(jobs[2].reason, "(reason|with bars)");
  EXPECT_THAT(CaughtText([] { ParseList("1|evald-ab-1|RUNNING|n1\n", "evald-ab-"); }),
              HasSubstr("expected 7 fields"));
}

TEST(SlurmText, AFailedSubmissionIsRefusedOrOpen) {
  const auto answer = [](const char* errors) { return FailedSubmission(errors); };
  const SubmitAnswer partition = answer(
      "sbatch: error: invalid partition specified: gpux\n"
      "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  EXPECT_EQ(partition.outcome, Outcome::kRefused);
  EXPECT_EQ(partition.why, "invalid partition specified: gpux; Invalid partition name specified");
  EXPECT_EQ(
      answer("sbatch: unrecognized option '--x'\nTry \"sbatch --help\" for more information\n").why,
      "unrecognized option '--x'");
  EXPECT_EQ(answer("sbatch: error: Batch job submission failed: Unable to contact slurm controller "
                   "(connect failure)\n")
                .outcome,
            Outcome::kRefused);
  EXPECT_EQ(answer("sbatch: error: Batch job submission failed: Socket timed out on send/recv "
                   "operation\n")
                .outcome,
            Outcome::kUnknown);
  EXPECT_EQ(answer("sbatch: error: Batch job submission failed: Zero Bytes were transmitted or "
                   "received\n")
                .outcome,
            Outcome::kUnknown);
}

TEST(SlurmText, Durations) {
  EXPECT_EQ(Minutes(1), "1");
  EXPECT_EQ(Minutes(61), "2");
  EXPECT_EQ(Minutes(7200), "120");
  EXPECT_EQ(SecondsOf("0:56"), 56);
  EXPECT_EQ(SecondsOf("1:02:03"), 3723);
  EXPECT_EQ(SecondsOf("2-01:00:00"), 2 * 86400 + 3600);
  EXPECT_EQ(SecondsOf("UNLIMITED"), -1);
  EXPECT_EQ(SecondsOf(""), -1);
}

TEST(SlurmText, ATokenNeverStandsOnTheCommandLine) {
  SlurmSettings settings;
  settings.prefix = "evald-ab-";
  settings.evald = "/opt/it's here/evald";
  settings.logs = "/shared/logs";
  settings.gpus_per_node = 8;
  settings.time_s = 7200;
  settings.more = {"--account=llm"};
  NodeJob job;
  job.name = "evald-ab-7";
  const SlurmLauncher launcher(settings);
  const std::vector<std::string> arguments = launcher.SubmitArguments(job, {"n1", "n2"});
  EXPECT_THAT(arguments, Contains("--exclude=n1,n2"));
  EXPECT_THAT(arguments, Contains("--gpus-per-node=8"));
  EXPECT_THAT(arguments, Contains("--time=120"));
  EXPECT_THAT(arguments, Contains("--output=/shared/logs/evald-ab-7.log"));
  EXPECT_EQ(arguments.back(), "--account=llm");
  EXPECT_THAT(arguments, Not(Contains(HasSubstr("--partition"))));
  EXPECT_EQ(launcher.Script(), "#!/bin/sh\nexec '/opt/it'\\''s here/evald' agent\n");
}

}  // namespace
}  // namespace evald::slurm
