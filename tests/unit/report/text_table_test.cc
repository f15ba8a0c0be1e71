#include "orchestrator/report/text_table.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(TextTable, FiguresAreFlushRightAndNamesFlushLeft) {
  EXPECT_EQ(TextTable({{"Task", "Value"}, {"sums", "7"}, {"a", "10.25"}}),
            "Task  Value\n"
            "────  ─────\n"
            "sums      7\n"
            "a     10.25\n");
}

TEST(TextTable, EachColumnAsAskedAndIndented) {
  EXPECT_EQ(TextTable({{"n", "name", "note"}, {"10", "x", ""}},
                      {.right = {true, false, false}, .indent = 2}),
            "   n  name  note\n"
            "  ──  ────  ────\n"
            "  10  x\n");
}

TEST(TextTable, WhatATerminalShowsTwiceAsWideIsCountedSo) {
  EXPECT_EQ(TextTable({{"t", "v"}, {"数学", "1"}, {"é", "2"}}),
            "t     v\n"
            "────  ─\n"
            "数学  1\n"
            "é     2\n");
}

TEST(GroupedDigits, ByThree) {
  EXPECT_EQ(GroupedDigits(0), "0");
  EXPECT_EQ(GroupedDigits(999), "999");
  EXPECT_EQ(GroupedDigits(1234567), "1,234,567");
}

TEST(TextTable, ACellDoesNotMoveTheTerminal) {
  EXPECT_EQ(TextTable({{"Task"}, {"a\x1b[2J\nb\u202e"}}),
            "Task\n─────────────────\na\\x1b[2J\\nb\\u202e\n");
}

}  // namespace
}  // namespace evald
