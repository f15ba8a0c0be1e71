// Texts for people and for shells.
#include "base/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/program.h"
#include "evald/error.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;

TEST(Text, DurationsHaveUnits) {
  EXPECT_EQ(ParseSeconds("90"), 90);
  EXPECT_EQ(ParseSeconds("45 s"), 45);
  EXPECT_EQ(ParseSeconds(" 5min "), 300);
  EXPECT_EQ(ParseSeconds("1.5h"), 5400);
  EXPECT_EQ(ParseSeconds("2d"), 172800);
  for (const char* wrong : {"", "min", "5 m", "-1s", "2:00:00", "nan", "1e12"}) {
    EXPECT_THAT(CaughtText([&] { ParseSeconds(wrong); }, ErrorKind::kUsage),
                HasSubstr("expected a duration such as 30s, 5min, 2h or 1d"))
        << wrong;
  }
}

TEST(Text, AShellReadsAQuotedWordAsItWas) {
  for (const std::string word :
       {"plain", "", "it's", "a b", "$HOME", "--exclude=n[1-3]", "\\", "\n", "*", "'\"'", "ä;rm"}) {
    EXPECT_EQ(
        OutputOf("/bin/sh", {"-c", "printf %s " + ShellQuoted(word)}, std::chrono::seconds(10)),
        word);
  }
  EXPECT_EQ(ShellQuoted("--time=120"), "--time=120");
}

}  // namespace
}  // namespace evald
