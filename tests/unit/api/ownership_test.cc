// Tokens, and the owners of runs.
#include <fmt/format.h>

#include "api_case.h"

namespace evald::test {
namespace {

class OwnershipTest : public ApiCase {
 protected:
  void SetUp() override {
    ApiOptions options;
    options.http.tokens.Add("ada", http::Role::kSubmit, "the-token-of-ada");
    options.http.tokens.Add("bob", http::Role::kSubmit, "the-token-of-bob");
    options.http.tokens.Add("eve", http::Role::kRead, "the-token-of-eve");
    options.http.tokens.Add("root", http::Role::kAdmin, "the-token-of-root");
    options.http.tokens.Add("host", http::Role::kWorker, "the-token-of-host");
    Start(std::move(options));
  }
  static std::string By(const std::string& name) {
    return "Authorization: Bearer the-token-of-" + name + "\r\nContent-Type: application/json\r\n";
  }
};

TEST_F(OwnershipTest, RunsBelongToTheTokenThatSubmittedThem) {
  const Answer answer = Post("/v1/runs", R"({"yaml": "a: 1"})", By("ada"));
  ASSERT_EQ(answer.status, 201);
  EXPECT_EQ(Parse(answer)["user"], "ada");
  EXPECT_EQ(Post("/v1/runs", R"({"yaml": "a: 1", "user": "bob"})", By("ada")).status, 403);
  EXPECT_EQ(Parse(Post("/v1/runs", R"({"yaml": "a: 1", "user": "bob"})", By("root")))["user"],
            "bob");
  const std::string run = "/v1/runs/" + Parse(answer)["id"].get<std::string>();
  EXPECT_EQ(Post(run + "/pause", "", By("bob")).status, 403);
  const auto patch = [&](const std::string& who, int priority) {
    return http::test::Fetch(server_->port(),
                             http::test::Ask("PATCH", run, By(who),
                                             fmt::format(R"({{"priority": {}}})", priority)))
        .status;
  };
  EXPECT_EQ(patch("bob", 1), 403);
  EXPECT_EQ(patch("ada", 50), 200);
  EXPECT_EQ(patch("ada", 51), 403);
  EXPECT_EQ(patch("root", 100), 200);
  EXPECT_EQ(Post(run + "/pause", "", By("ada")).status, 200);
  EXPECT_EQ(Post(run + "/cancel", "", By("root")).status, 200);
}

// The highest priorities are for admins, so that no other user goes before everyone.
TEST_F(OwnershipTest, TheRoleSubmitAsksForNoMoreThanItsPriority) {
  const Answer refused = Post("/v1/runs", R"({"yaml": "a: 1", "priority": 51})", By("ada"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(Parse(refused)["type"], "urn:evald:problem:priority");
  EXPECT_EQ(Post("/v1/runs?priority=100", R"({"yaml": "a: 1"})", By("ada")).status, 403);
  EXPECT_EQ(Post("/v1/runs", R"({"yaml": "a: 1", "priority": 50})", By("ada")).status, 201);
  EXPECT_EQ(Post("/v1/runs", R"({"yaml": "a: 1", "priority": 100})", By("root")).status, 201);
  const std::string watch = R"({"checkpoints": "/train/p", "yaml": "a: 1", "priority": 51})";
  EXPECT_EQ(Post("/v1/watches", watch, By("ada")).status, 403);
  EXPECT_EQ(Post("/v1/watches", watch, By("root")).status, 201);
}

// A look at a folder costs time of the service's host.
TEST_F(OwnershipTest, TheRoleSubmitHasAFolderLookedAtNotTooOften) {
  const auto add = [&](const char* poll, const std::string& who) {
    return Post("/v1/watches",
                fmt::format(R"({{"checkpoints": "/train/{0}{1}", "yaml": "a: 1", "poll_s": {0}}})",
                            poll, who),
                By(who));
  };
  const Answer refused = add("0.9", "ada");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(Parse(refused)["errors"][0]["pointer"], "/poll_s");
  EXPECT_EQ(add("1", "ada").status, 201);
  EXPECT_EQ(add("0.1", "root").status, 201);
}

TEST_F(OwnershipTest, ARunThatIsOneTooManyIsRefusedUntilOthersAreOver) {
  service_.refuse_submissions = "the user 'ada' has 1000 runs";
  const Answer answer = Post("/v1/runs", R"({"yaml": "a: 1"})", By("ada"));
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "60");
  EXPECT_EQ(Parse(answer)["detail"], "the user 'ada' has 1000 runs");
}

TEST_F(OwnershipTest, SoDoWatches) {
  const std::string body = R"({"checkpoints": "/train/a", "yaml": "a: 1")";
  const Answer answer = Post("/v1/watches", body + "}", By("ada"));
  ASSERT_EQ(answer.status, 201) << answer.body;
  EXPECT_EQ(Parse(answer)["user"], "ada");
  EXPECT_EQ(Post("/v1/watches", body + R"(, "user": "ada"})", By("bob")).status, 403);
  EXPECT_EQ(Post("/v1/watches", body + "}", By("eve")).status, 403);
  const auto remove = [&](const std::string& who) {
    return http::test::Fetch(server_->port(),
                             http::test::Ask("DELETE", answer.headers.at("location"), By(who)))
        .status;
  };
  EXPECT_EQ(remove("bob"), 403);
  EXPECT_EQ(remove("eve"), 403);
  EXPECT_EQ(remove("ada"), 200);
  EXPECT_EQ(remove("root"), 404);
}

TEST_F(OwnershipTest, RolesLimitWhatATokenMayDo) {
  EXPECT_EQ(Get("/v1/runs", By("eve")).status, 200);
  EXPECT_EQ(Post("/v1/runs", R"({"yaml": "a: 1"})", By("eve")).status, 403);
  EXPECT_EQ(Post("/v1/checkpoints", R"({"path": "/a"})", By("eve")).status, 403);
  EXPECT_EQ(Get("/v1/launchers", By("eve")).status, 200);
  EXPECT_EQ(Post("/v1/launchers/slurm/nodes/n1/release", "", By("ada")).status, 403);
  EXPECT_EQ(Post("/v1/launchers/slurm/nodes/n1/release", "", By("root")).status, 200);
  EXPECT_EQ(Get("/v1/runs", By("host")).status, 403);
  EXPECT_EQ(Get("/v1/runs").status, 401);
  EXPECT_EQ(Get("/metrics").status, 401);
  EXPECT_EQ(Get("/healthz").status, 200);
  EXPECT_EQ(Get("/v1/openapi.json").status, 200);
}

}  // namespace
}  // namespace evald::test
