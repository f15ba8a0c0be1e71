// The text of `evald status`.
#include "orchestrator/cli/run_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

namespace evald::cli {
namespace {

// A text in which this regular expression is found.
auto Like(const std::string& pattern) {
  return ::testing::Truly(
      [pattern](const std::string& text) { return std::regex_search(text, std::regex(pattern)); });
}

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

// 57 subjects in two groups of one, and three tasks.
Json ManyTasks() {
  Json run = RunOf("pico-muon-step-06500-20260102-101500", "running");
  run["name"] = "pico-muon-step-06500";
  run["checkpoint"] = "/train/" + std::string(90, 'x') + "/step-06500";
  Json tasks = Json::array();
  for (int i = 0; i < 60; ++i) {
    const std::string name =
        i < 57 ? "mmlu_subject_of_a_long_name_" + std::to_string(i) : "other_" + std::to_string(i);
    tasks.push_back({{"task", name},
                     {"documents", 100},
                     {"generated", 50},
                     {"scored", i},
                     {"headline", nullptr}});
    if (i < 57) run["groups"][i < 30 ? "mmlu_one" : "mmlu_two"].push_back(name);
    run["scores"][name] = {{"metric", "acc"}, {"value", 0.5}, {"stderr", nullptr}};
  }
  run["groups"]["mmlu"] = {"mmlu_one", "mmlu_two"};
  run["scores"]["mmlu"] = {{"metric", "acc"}, {"value", 0.25}, {"stderr", nullptr}};
  run["progress"]["tasks"] = std::move(tasks);
  return run;
}

TEST(RunTable, FitsInto80ColumnsAndKeepsIdAndScores) {
  const Json run = ManyTasks();
  for (const std::string& line : RunTable(Json::array({run}), 80))
    EXPECT_LE(line.size(), 80u) << line;
  const std::vector<std::string> lines = RunTable(Json::array({run}), 80);
  EXPECT_THAT(lines[1], ::testing::HasSubstr("pico-muon-step-06500-20260102-101500"));
  EXPECT_THAT(lines[1], Like("[0-9]+ (scores|more)$"));
  EXPECT_THAT(RunTable(Json::array({run}), 1000)[1], ::testing::HasSubstr("mmlu 0.2500"));
  EXPECT_EQ(RunTable(Json::array({run}), 1000)[1].find("mmlu_subject"), std::string::npos);
}

TEST(RunDetails, AGroupStandsForItsTasksUnlessAllAreAskedFor) {
  const Json run = ManyTasks();
  const std::vector<std::string> few = RunDetails(run, {.whole_words = false});
  EXPECT_LT(few.size(), 20u);
  EXPECT_THAT(few, ::testing::Contains(Like("^  mmlu +1596/5700  acc 0.2500$")));
  EXPECT_THAT(few, ::testing::Contains(::testing::HasSubstr("--all")));
  const std::vector<std::string> all = RunDetails(run, {.all = true, .whole_words = false});
  EXPECT_THAT(all, ::testing::Contains(Like("^    mmlu_two +1161/2700$")));
  EXPECT_THAT(all, ::testing::Contains(Like("^      mmlu_subject_of_a_long_name_56 +56/100$")));
  for (const auto& lines : {few, all}) {
    for (const std::string& line : lines) EXPECT_LE(line.size(), 80u) << line;
  }
  EXPECT_THAT(RunDetails(run),
              ::testing::Contains(::testing::HasSubstr(run["checkpoint"].get<std::string>())))
      << "a path stays whole where no terminal breaks";
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
