#include "orchestrator/prepare/missing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

SplitFound Lacking(const std::string& dataset, const std::string& split, bool own = false) {
  SplitFound found;
  found.dataset = dataset;
  found.split = split;
  found.own = own;
  found.failure = Error(ErrorKind::kInput, "no " + split + " of " + dataset, "get it");
  return found;
}

TEST(MissingOfTasks, OneCauseOfOneTaskIsItsOwnError) {
  Missing missing;
  missing.ThrowIfAny(3);
  missing.Add("a", SplitFound());
  missing.ThrowIfAny(3);
  missing.Add("a", Lacking("x/data", "test"));
  EXPECT_EQ(CaughtText([&] { missing.ThrowIfAny(3); }), "no test of x/data; get it");
}

TEST(MissingOfTasks, EveryCauseIsNamedOnceWithItsTasks) {
  Missing missing;
  for (const char* task : {"a", "b", "c"}) missing.Add(task, Lacking("x/data", "test"));
  missing.Add("c", Lacking("x/data", "dev"));
  missing.Add("d", Lacking("./own", "test", true));
  missing.Add("d", Error(ErrorKind::kInput, "no such metric", "take another"));
  const std::string text = CaughtText([&] { missing.ThrowIfAny(9); });
  EXPECT_THAT(text, HasSubstr("4 of the run's 9 tasks cannot be prepared: "));
  EXPECT_THAT(text, HasSubstr("split 'test' of the dataset 'x/data' (3 tasks, such as 'a')"));
  EXPECT_THAT(text, HasSubstr("split 'dev' of the dataset 'x/data' (task 'c')"));
  EXPECT_THAT(text, HasSubstr("no test of ./own (task 'd'); no such metric (task 'd')"));
  EXPECT_THAT(text, HasSubstr("for the first: get it; "));
}

TEST(MissingOfTasks, AMessageHasAnEnd) {
  Missing missing;
  for (int i = 0; i < 100; ++i)
    missing.Add("t" + std::to_string(i), Lacking("d" + std::to_string(i), "test"));
  const std::string text = CaughtText([&] { missing.ThrowIfAny(100); });
  EXPECT_THAT(text, HasSubstr("100 of the run's 100 tasks"));
  EXPECT_THAT(text, HasSubstr("and 60 more causes"));
  EXPECT_THAT(text, Not(HasSubstr("'d99'")));
}

}  // namespace
}  // namespace evald
