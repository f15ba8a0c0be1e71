#include "orchestrator/run/causes.h"

#include <gtest/gtest.h>

namespace evald {
namespace {

TEST(Causes, OneCauseOfManyPartsIsOneLine) {
  const std::string full = ": write: No space left on device; free some space";
  const std::vector<std::string> lines =
      ByCause({{"task a, documents 0 to 12: scoring", "/r/scores/a/0.1-0.jsonl.part" + full},
               {"task a, documents 13 to 20: scoring", "/r/scores/a/1.1-13.jsonl.part" + full},
               {"task b", "the metric fails"},
               {"task a, documents 21 to 30: scoring", "/r/scores/a/2.1-21.jsonl.part" + full}});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            "task a, documents 0 to 12: scoring, and 2 more parts: "
            "/r/scores/a/0.1-0.jsonl.part" +
                full);
  EXPECT_EQ(lines[1], "task b: the metric fails");
}

}  // namespace
}  // namespace evald
