// The text of `evald nodes`, and of launchers in `evald status`.
#include "orchestrator/cli/launcher_text.h"

#include <fmt/chrono.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <regex>

namespace evald::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A text in which this regular expression is found.
auto Matches(const std::string& pattern) {
  return ::testing::Truly(
      [pattern](const std::string& text) { return std::regex_search(text, std::regex(pattern)); });
}

Json JobOf(const std::string& id, const std::string& state, const Json& more) {
  Json job = {{"name", "evald-0-slurm-" + id},
              {"job", "47" + id},
              {"host", "slurm-" + id},
              {"state", state},
              {"word", "RUNNING"},
              {"reason", nullptr},
              {"node", nullptr},
              {"devices", 0},
              {"submitted_at", "2001-01-02T10:15:00.000Z"},
              {"starts_at", nullptr},
              {"started_at", nullptr},
              {"ends_at", nullptr},
              {"why", nullptr}};
  job.update(more);
  return job;
}

Json Waiting(const std::string& id, const std::string& reason, const Json& starts) {
  return JobOf(id, "waiting", {{"word", "PENDING"}, {"reason", reason}, {"starts_at", starts}});
}

Json Working(const std::string& id, const std::string& node) {
  return JobOf(id, "working",
               {{"node", node},
                {"started_at", "2001-01-02T10:20:00.000Z"},
                {"ends_at", "2001-01-02T14:20:00.000Z"}});
}

Json LauncherWith(const Json& jobs) {
  return {{"name", "slurm"},
          {"kind", "slurm"},
          {"nodes", {{"min", 0}, {"max", 16}, {"wanted", 5}}},
          {"start_s", 60.0},
          {"node_hours", 12.34},
          {"node_hours_per_day", nullptr},
          {"jobs", jobs},
          {"excluded", Json::array()},
          {"problems", Json::array()},
          {"next_try_at", nullptr}};
}

TEST(LauncherLines, SayHowManyNodesAreHereAndWhatIsAwaited) {
  const Json late = "2001-01-03T11:00:00.000Z", early = "2001-01-02T11:05:00.000Z";
  Json launcher = LauncherWith({Working("1", "n1"), JobOf("2", "idle", {{"node", "n2"}}),
                                JobOf("3", "starting", {{"node", "n3"}}),
                                Waiting("4", "Resources", late), Waiting("5", "Priority", early)});
  std::vector<std::string> lines = LauncherLines(Json::array({launcher}));
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], Matches("Launcher slurm: 2 of at most 16 nodes, 1 starting, 2 jobs "
                                "wait \\(Priority, Resources\\), the first expected "
                                "Jan 0[123] 2001"));
  launcher["jobs"] = Json::array({Waiting("1", "", nullptr)});
  launcher["node_hours_per_day"] = 100;
  EXPECT_THAT(LauncherLines(Json::array({launcher})),
              ElementsAre("Launcher slurm: 0 of at most 16 nodes, 1 job waits, 12.3 of 100 node "
                          "hours used"));
  EXPECT_THAT(LauncherLines(Json::array()), IsEmpty());
}

TEST(LauncherLines, TellProblemsAndWhenTheNextJobIsSubmitted) {
  Json launcher = LauncherWith(Json::array());
  launcher["problems"] = {"node n7 is not asked for: job 4711 on n7: its agent\x1b[31m"};
  launcher["next_try_at"] = "2001-01-02T11:05:00.000Z";
  const std::vector<std::string> lines = LauncherLines(Json::array({launcher}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "Launcher slurm: 0 of at most 16 nodes");
  EXPECT_EQ(lines[1],
            "Launcher slurm: node n7 is not asked for: job 4711 on n7: its agent\\x1b[31m");
  EXPECT_THAT(lines[2], HasSubstr("no job is submitted before Jan 0"));
  launcher["next_try_at"] =
      fmt::format("{:%Y-%m-%dT%H:%M:%S}.000Z", fmt::gmtime(std::time(nullptr)));
  EXPECT_THAT(LauncherLines(Json::array({launcher}))[2], Matches("before [0-9]{2}:[0-9]{2}$"));
}

TEST(LauncherTables, HaveAJobInEachLineWithinTheColumns) {
  const Json launcher = LauncherWith(
      {Working("1", "node-with-a-long-name-17"),
       Waiting("2", "Nodes required for job are DOWN, DRAINED or reserved for jobs", nullptr),
       JobOf("3", "ending", {{"word", "COMPLETING"}, {"why", "it had no work for 300 s"}})});
  const std::vector<std::string> wide = LauncherTables(Json::array({launcher}), 10'000, true);
  ASSERT_EQ(wide.size(), 6u);
  EXPECT_THAT(wide[1], Matches(" +JOB +STATE +NODE +START +ENDS +HOST +REASON"));
  EXPECT_THAT(wide[3],
              Matches(" +471 +working +node-with-a-long-name-17 +since Jan 0[123] 2001 +Jan 0.*"));
  EXPECT_THAT(wide[4], Matches(" +472 +waiting +– +– +– +slurm-2 +Nodes required .* jobs"));
  EXPECT_THAT(wide[5], Matches(" +473 +ending .COMPLETING. .*it had no work for 300 s"));
  for (const std::string& line : LauncherTables(Json::array({launcher}), 80, false)) {
    const auto columns =
        std::count_if(line.begin(), line.end(), [](char c) { return (c & '\xC0') != '\x80'; });
    EXPECT_LE(columns, 80) << line;
  }
}

TEST(ExcludedBy, NamesTheLaunchers) {
  Json one = LauncherWith(Json::array()), other = one;
  one["excluded"] = {{{"node", "n7"}, {"why", "it failed"}}};
  other["name"] = "big";
  EXPECT_THAT(ExcludedBy(Json::array({other, one}), "n7"), ElementsAre("slurm"));
  EXPECT_THAT(ExcludedBy(Json::array({other, one}), "n8"), IsEmpty());
}

}  // namespace
}  // namespace evald::cli
