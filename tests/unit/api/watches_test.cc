// Watches over REST.
#include "api_case.h"

namespace evald::test {
namespace {

using WatchesTest = ApiCase;

TEST_F(WatchesTest, AreRegisteredListedAndRemoved) {
  const Answer made = PostJson(
      "/v1/watches", R"({"checkpoints": "/train/a", "config": {"tasks": ["sums"]}, "base": "/train",
    "set": ["name=x"], "which": "every", "every": 3, "marker": "DONE", "settle_s": 0.5, "poll_s": 1, "user": "ann", "priority": 7})");
  ASSERT_EQ(made.status, 201) << made.body;
  const Json watch = Parse(made);
  EXPECT_EQ(made.headers.at("location"), "/v1/watches/" + watch.at("id").get<std::string>());
  EXPECT_EQ(watch["every"], 3);
  EXPECT_TRUE(watch["sequence"].is_number_integer());
  const WatchDefinition last = watches_.last();
  EXPECT_EQ(last.yaml, R"({"tasks":["sums"]})");
  EXPECT_EQ(last.base, "/train");
  EXPECT_EQ(last.set, std::vector<std::string>{"name=x"});
  EXPECT_EQ(last.marker, "DONE");
  EXPECT_EQ(last.settle_s, 0.5);
  EXPECT_EQ(last.user, "ann");
  EXPECT_EQ(last.priority, 7);
  EXPECT_EQ(PostJson("/v1/watches",
                     R"({"checkpoints": "/train/a", "yaml": "tasks: [sums]", "user": "ann"})")
                .status,
            200);
  EXPECT_EQ(Parse(Get("/v1/watches"))["watches"].size(), 2u);
  const std::string path = made.headers.at("location");
  EXPECT_EQ(Parse(Get(path))["checkpoints"], "/train/a");
  const auto remove = [&](const std::string& at) {
    return http::test::Fetch(server_->port(), http::test::Ask("DELETE", at)).status;
  };
  EXPECT_EQ(remove(path), 200);
  EXPECT_EQ(remove(path), 404);
  EXPECT_EQ(Get(path).status, 404);
  EXPECT_EQ(remove("/v1/watches/watch-0"), 409) << "it stands in the configuration";
}

TEST_F(WatchesTest, AreReadStrictly) {
  for (const char* body : {R"({})", R"([])", R"({"checkpoints": "/a"})", R"({"yaml": "a: 1"})",
                           R"({"checkpoints": "a", "yaml": "a: 1"})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "config": {}})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "which": "some"})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "every": 2})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "which": "every"})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "which": "every", "every": 0})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "settle_s": -1})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "settle_s": "1"})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "poll_s": 0})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "marker": "../x"})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "priority": 101})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "base": "x"})",
                           R"({"checkpoints": "/a", "yaml": "a: 1", "polcy": "all"})"}) {
    EXPECT_EQ(PostJson("/v1/watches", body).status, 400) << body;
  }
  EXPECT_EQ(PostJson("/v1/watches", R"({"checkpoints": "/a", "yaml": "refuse"})").status, 422);
  EXPECT_EQ(Post("/v1/watches", R"({"checkpoints": "/a", "yaml": "a: 1"})").status, 415);
  EXPECT_EQ(Get("/v1/watches?x=1").status, 400);
}

}  // namespace
}  // namespace evald::test
