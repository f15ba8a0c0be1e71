// The text of `evald status`.
#include "orchestrator/cli/run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace evald::cli {
namespace {

Json RunOf(const std::string& id, const std::string& state) {
  return {{"id", id},
          {"name", "step-1"},
          {"user", "ada"},
          {"priority", 3},
          {"state", state},
          {"checkpoint", "/models/a"},
          {"created", "2026-01-02T10:15:00.000Z"},
          {"progress",
           {{"documents", 200},
            {"generated", 100},
            {"scored", 50},
            {"remaining_seconds", 65.0},
            {"elapsed_seconds", 30.5},
            {"phases", Json::array()},
            {"tasks",
             {{{"task", "sums"},
               {"documents", 200},
               {"generated", 100},
               {"scored", 50},
               {"headline", nullptr}}}}}},
          {"exit_status", nullptr},
          {"problems", {"disk full"}},
          {"scores", {{"sums", {{"metric", "acc"}, {"value", 0.25}, {"stderr", nullptr}}}}},
          {"verdict", nullptr}};
}

TEST(RunTable, AlignsAndCuts) {
  const Json runs = {RunOf("a", "running"), RunOf("a-long-one", "queued")};
  const std::vector<std::string> lines = RunTable(runs, 200);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "RUN         NAME    STATE    SCORED  LEFT        PRIO  USER  SCORES");
  EXPECT_EQ(lines[1], "a           step-1  running  25 %    1 min 05 s  3     ada   sums 0.2500");
  for (const std::string& line : RunTable(runs, 20)) EXPECT_LE(line.size(), 20u + 2);
}

TEST(RunTable, NothingThatAServiceSaysMovesTheCursor) {
  Json run = RunOf("a", "running");
  run["name"] = "\x1b[2Jstep\r\n" + std::string(1000, 'x');
  run["user"] = "\x07";
  for (const std::string& line : RunTable(Json::array({run}), 10'000)) {
    EXPECT_LT(line.size(), 200u);
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
  }
  run["problems"] = {"a\x1b]0;b"};
  for (const std::string& line : RunDetails(run)) EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_EQ(ForTerminal("a\tb\n\x1b", true), "a\tb\n\\x1b");
  EXPECT_EQ(ForTerminal("\xc2\x9b"
                        "2J \xc3\xbc\n"),
            "\\u009b2J \xc3\xbc\\n");
}

TEST(RunDetails, SayWhatWentWrong) {
  const std::vector<std::string> lines = RunDetails(RunOf("a", "failed"));
  EXPECT_THAT(lines, ::testing::Contains(::testing::HasSubstr("disk full")));
  EXPECT_THAT(lines[0], ::testing::HasSubstr("failed"));
}

TEST(StatusOfRun, IsIncompleteUnlessTheRunSaysOtherwise) {
  Json run = RunOf("a", "cancelled");
  EXPECT_EQ(StatusOfRun(run), ExitStatus::kIncomplete);
  run["exit_status"] = 1;
  EXPECT_EQ(StatusOfRun(run), ExitStatus::kGateFailed);
  run["exit_status"] = 77;
  EXPECT_EQ(StatusOfRun(run), ExitStatus::kIncomplete);
}

TEST(SnapshotOf, TakesWhatTheDisplayShows) {
  const ProgressSnapshot snapshot = SnapshotOf(RunOf("a", "running")["progress"]);
  EXPECT_EQ(snapshot.remaining_s, 65);
  EXPECT_EQ(snapshot.elapsed_s, 30.5);
  EXPECT_EQ(snapshot.tasks.at(0).generated, 100);
}

}  // namespace
}  // namespace evald::cli
