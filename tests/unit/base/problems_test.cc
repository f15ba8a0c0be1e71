#include "base/problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evald/error.h"

namespace evald {
namespace {

Error Wrong(const std::string& text) { return Error(ErrorKind::kUsage, text, "mend it"); }

TEST(Problems, OneErrorStaysWhatItIs) {
  ProblemList list;
  list.ThrowIfAny();
  EXPECT_FALSE(list.Try([] { throw Wrong("a"); }));
  EXPECT_TRUE(list.Try([] {}));
  try {
    list.ThrowIfAny();
    FAIL();
  } catch (const Problems&) {
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "a; mend it");
  }
}

TEST(Problems, SeveralAreThrownTogetherAndEachOnce) {
  ProblemList list;
  list.Add(Wrong("a"));
  list.Add(Wrong("b"));
  list.Add(Wrong("a"));
  try {
    list.ThrowIfAny();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "2 problems: (1) a; mend it, (2) b; mend it");
    EXPECT_EQ(EachOf(error).size(), 2u);
    ProblemList more;
    more.Add(Wrong("b"));
    more.Add(error);
    EXPECT_EQ(more.size(), 2u);
  }
}

TEST(Problems, AnErrorOfTheHostIsThrownAtOnce) {
  ProblemList list;
  list.Add(Wrong("a"));
  EXPECT_THROW(list.Add(Error(ErrorKind::kInfrastructure, "the disk is full")), Error);
}

}  // namespace
}  // namespace evald
