#include "orchestrator/report/progress.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace evald {
namespace {

ProgressSnapshot Snapshot() {
  ProgressSnapshot snapshot;
  snapshot.elapsed_s = 75;
  snapshot.remaining_s = 200;
  snapshot.phases = {{"stage", 512, 1024, true, ""},
                     {"generate", 30, 120, false, "8.0 documents/s"}};
  for (int i = 0; i < 57; ++i)
    snapshot.tasks.push_back({"mmlu_" + std::to_string(i), 10,
                              i < 3    ? 10
                              : i == 3 ? 4
                                       : 0,
                              i < 3 ? 10 : 0, ""});
  return snapshot;
}

TEST(Progress, ShowsPhasesActiveTasksAndACountOfTheRest) {
  const auto lines = RenderProgress(Snapshot(), 120, 16);
  const std::string text = Join(lines, "\n");
  EXPECT_NE(text.find("512 B of 1.0 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("30 of 120"), std::string::npos);
  EXPECT_NE(text.find("mmlu_3 "), std::string::npos);
  EXPECT_NE(text.find("3 done, 1 under way, 53 waiting"), std::string::npos) << text;
  EXPECT_NE(text.find("about 3 min 20 s left"), std::string::npos) << text;
}

TEST(Progress, ARunThatIsToStopSaysSoInPlaceOfTheTimeLeft) {
  ProgressSnapshot snapshot = Snapshot();
  for (TaskProgress& task : snapshot.tasks) task.generated = 5;
  snapshot.notice = "waiting for trials of w0; Ctrl-C again stops at once";
  const auto lines = RenderProgress(snapshot, 120, 10);
  EXPECT_LE(lines.size(), 10u);
  EXPECT_EQ(lines.back(), "  stopping: " + snapshot.notice);
  EXPECT_EQ(Join(lines, "\n").find("left"), std::string::npos);
}

TEST(Progress, ARemarkIsShownAsItIs) {
  ProgressSnapshot snapshot;
  snapshot.remark = "http://hub: status 429; waiting 5 s";
  EXPECT_EQ(RenderProgress(snapshot, 80, 24).back(), "  " + snapshot.remark);
}

TEST(Progress, FitsTheTerminal) {
  ProgressSnapshot snapshot = Snapshot();
  for (TaskProgress& task : snapshot.tasks) task.generated = 5;
  for (const int columns : {20, 40, 80}) {
    const auto lines = RenderProgress(snapshot, columns, 10);
    EXPECT_LE(lines.size(), 10u);
    for (const std::string& line : lines)
      EXPECT_LE(CodePoints(line), static_cast<size_t>(columns)) << line;
  }
}

TEST(Progress, NothingIsCutOnATerminalOf80Columns) {
  ProgressSnapshot snapshot = Snapshot();
  snapshot.tasks[3] = {"mmlu_high_school_psych", 12345, 1234, 999, ""};
  snapshot.notice =
      "waiting for 1234 leased documents and scores of w0, w1, which have at most 10 min "
      "00 s if nothing comes; Ctrl-C again stops at once";
  snapshot.notice_s = 61;
  const std::string text = Join(RenderProgress(snapshot, 80, 16), "\n");
  EXPECT_EQ(text.find("…"), std::string::npos) << text;
  EXPECT_NE(text.find("1234 generated   999 scored of 12345"), std::string::npos) << text;
  EXPECT_NE(text.find("  stopping in about 1 min 01 s: waiting for 1234"), std::string::npos)
      << text;
}

TEST(Countdown, GoesDownWithTheClockUnlessTheEstimateIsQuiteAnother) {
  Countdown countdown;
  EXPECT_EQ(countdown.Left(-1, 5), -1);
  EXPECT_EQ(countdown.Left(20, 10), 20);
  EXPECT_EQ(countdown.Left(20, 13), 17) << "nothing was reported meanwhile";
  EXPECT_EQ(countdown.Left(21, 15), 15);
  EXPECT_EQ(countdown.Left(60, 15), 60);
  EXPECT_EQ(countdown.Left(3, 20), 3);
  EXPECT_EQ(countdown.Left(1, 40), 0);
}

TEST(Progress, ANameDoesNotMoveTheCursor) {
  ProgressSnapshot snapshot = Snapshot();
  snapshot.tasks[3].name = "a\x1b[2J\n";
  snapshot.tasks[3].headline = "acc\r 0.5";
  const std::string text = Join(RenderProgress(snapshot, 120, 16), "|");
  EXPECT_EQ(text.find_first_of("\x1b\n\r"), std::string::npos);
  EXPECT_NE(text.find("a\\x1b[2J\\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace evald
