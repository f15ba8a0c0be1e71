// Files and rows of the database may contain anything.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "orchestrator/service/service.h"
#include "orchestrator/service/submission.h"

namespace evald {
namespace {

using testing::HasSubstr;

TEST(Rfc3339Test, TimesWithoutADateAreNull) {
  for (const double seconds :
       {0.0, -1.0, -1e308, 1e308, 4611686018427387904.0, 253402300800.0, std::nan(""),
        std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(Rfc3339(seconds), Json()) << seconds;
  }
  EXPECT_EQ(Rfc3339(253402300799.5), "9999-12-31T23:59:59.500Z");
  EXPECT_EQ(Rfc3339(1.25), "1970-01-01T00:00:01.250Z");
}

RunRow Row(const std::string& resource) {
  RunRow row;
  row.run = "0123456789abcdef";
  row.name = "m";
  row.user = "ada";
  row.state = "done";
  row.output = "/runs/m";
  row.created = 1.25;
  row.resource = resource;
  return row;
}

TEST(StoredResourceTest, OfADamagedRowWhatCanBeToldIsAWholeRun) {
  for (const char* damaged : {"", "x", "-1", "4611686018427387904", "[]", "null", "{}",
                              R"({"id": 5})", R"({"id": "another"})", "\xff"}) {
    const Json run = StoredResource(Row(damaged));
    EXPECT_EQ(run["id"], "0123456789abcdef") << damaged;
    EXPECT_EQ(run["state"], "done");
    EXPECT_EQ(run["directory"], "/runs/m");
    EXPECT_EQ(run["created"], "1970-01-01T00:00:01.250Z");
    ASSERT_EQ(run["problems"].size(), 1u) << damaged;
    EXPECT_THAT(run["problems"][0].get<std::string>(), HasSubstr("row of this run is damaged"));
    for (const char* member :
         {"name", "user", "priority", "checkpoint", "fingerprint", "started", "ended", "progress",
          "exit_status", "scores", "groups", "title", "tags", "note", "verdict"}) {
      EXPECT_TRUE(run.contains(member)) << member;
    }
  }
}

TEST(StoredResourceTest, OfASoundRowItIsWhatTheRowSays) {
  const Json run = StoredResource(
      Row(R"({"id": "0123456789abcdef", "state": "incomplete", "problems": ["why"]})"));
  EXPECT_EQ(run["state"], "incomplete");
  EXPECT_EQ(run["problems"], Json({"why"}));
}

// Labels of a run that is taken up again lie in its row.
TEST(RunLabelsTest, AreReadBackFromAResource) {
  RunLabels labels;
  Apply({"warm-up", {{"a", "", "a", "b"}}, std::nullopt}, &labels);
  EXPECT_EQ(labels.tags, (std::vector<std::string>{"a", "b"}));
  Apply({std::nullopt, std::nullopt, "seed 2"}, &labels);
  Json resource = Json::object();
  AddLabels(labels, &resource);
  EXPECT_EQ(LabelsOf(resource), labels);
  EXPECT_EQ(labels.title, "warm-up");
  for (const char* other : {"[]", "null", R"({"title": 5, "tags": "x", "note": []})"})
    EXPECT_EQ(LabelsOf(Json::parse(other)), RunLabels()) << other;
  EXPECT_EQ(LabelsOf(Json::parse(R"({"tags": [1, "x"]})")).tags, std::vector<std::string>{"x"});
}

TEST(SubmissionTest, WhatDiffersIsNamed) {
  Submission one;
  one.yaml = "a: 1";
  one.base = "/data";
  Submission other = one;
  EXPECT_TRUE(Differing(one, other).empty());
  other.yaml = "a: 2";
  other.priority = 3;
  EXPECT_EQ(Differing(one, other), (std::vector<std::string>{"the eval.yaml", "priority"}));
  other = one;
  other.base = "/";
  other.set = {"a=1"};
  EXPECT_EQ(Differing(one, other), (std::vector<std::string>{"base", "set"}));
}

}  // namespace
}  // namespace evald
