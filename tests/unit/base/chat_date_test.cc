#include "base/chat_date.h"

#include <gtest/gtest.h>

#include "evald/error.h"

namespace evald {
namespace {

TEST(ChatDate, IsADayOrAMoment) {
  EXPECT_EQ(ReadChatDate("2026-01-31"), (ChatDate{1769817600, false}));
  EXPECT_EQ(ReadChatDate("2026-01-31T00:00:00"), (ChatDate{1769817600, true}));
  EXPECT_EQ(ReadChatDate("2026-01-31 14:05:09"), (ChatDate{1769868309, true}));
}

TEST(ChatDate, OtherTextsAreNone) {
  for (const char* text :
       {"", "2026-1-31", "2026-06-31", "2026-01-31T14:05", "2026-01-31T14:05:60",
        "2026-01-31x14:05:09", "2026-01-31T14:05:9 ", "2026-01-31T25:00:00", "today"}) {
    EXPECT_EQ(ReadChatDate(text), std::nullopt) << text;
  }
}

// Keys of prepared tasks and resumed runs hold a day in the same form as before times of day
// existed.
TEST(ChatDate, ItsJsonTellsADayFromItsMidnight) {
  EXPECT_EQ(ToJson(ReadChatDate("2026-01-31")), 1769817600);
  EXPECT_EQ(ToJson(ReadChatDate("2026-01-31 14:05:09")), "2026-01-31T14:05:09");
  for (const char* text : {"2026-01-31", "2026-01-31T00:00:00", "2026-01-31T14:05:09", "none"}) {
    EXPECT_EQ(ChatDateFromJson(ToJson(ReadChatDate(text))), ReadChatDate(text)) << text;
  }
  EXPECT_THROW(ChatDateFromJson("2026"), Error);
}

}  // namespace
}  // namespace evald
