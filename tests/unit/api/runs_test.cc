// Submitting, listing and changing runs.
#include "api_case.h"

namespace evald::test {
namespace {

using ::testing::HasSubstr;

using RunsTest = ApiCase;

TEST_F(RunsTest, TakesYaml) {
  const Answer answer =
      Post("/v1/runs?base=/data/a%20b&user=me&priority=-3&set=a.b=1&set=c%3D2", "tasks: [sums]\n",
           "Content-Type: application/yaml; charset=utf-8\r\n");
  ASSERT_EQ(answer.status, 201) << answer.body;
  const Json run = Parse(answer);
  EXPECT_EQ(answer.headers.at("location"), "/v1/runs/" + run["id"].get<std::string>());
  const Submission submission = service_.last_submission();
  EXPECT_EQ(submission.yaml, "tasks: [sums]\n");
  EXPECT_EQ(submission.base, "/data/a b");
  EXPECT_EQ(submission.user, "me");
  EXPECT_EQ(submission.priority, -3);
  EXPECT_EQ(submission.set, (std::vector<std::string>{"a.b=1", "c=2"}));
}

TEST_F(RunsTest, TakesJsonAsAnObjectOrAsText) {
  EXPECT_EQ(
      PostJson("/v1/runs", R"({"config": {"tasks": ["sums"]}, "set": ["a=1"], "priority": 7})")
          .status,
      201);
  EXPECT_EQ(service_.last_submission().yaml, R"({"tasks":["sums"]})");
  EXPECT_EQ(service_.last_submission().priority, 7);
  EXPECT_EQ(PostJson("/v1/runs", R"({"yaml": "tasks: [sums]\n"})").status, 201);
  EXPECT_EQ(service_.last_submission().yaml, "tasks: [sums]\n");
}

TEST_F(RunsTest, ARetryUnderTheSameKeyIsHarmless) {
  const std::string key = "Idempotency-Key: step-3000\r\n";
  const Answer first = PostJson("/v1/runs", R"({"yaml": "a: 1"})", key);
  const Answer second = PostJson("/v1/runs", R"({"yaml": "a: 1"})", key);
  EXPECT_EQ(first.status, 201);
  EXPECT_EQ(second.status, 200);
  EXPECT_EQ(Parse(first)["id"], Parse(second)["id"]);
  EXPECT_EQ(second.headers.at("location"), first.headers.at("location"));
  EXPECT_EQ(Parse(Get("/v1/runs"))["runs"].size(), 1u);
  EXPECT_EQ(PostJson("/v1/runs", R"({"yaml": "a: 1"})", "Idempotency-Key: a b\r\n").status, 400);
  EXPECT_EQ(PostJson("/v1/runs", R"({"yaml": "a: 1"})",
                     "Idempotency-Key: " + std::string(201, 'k') + "\r\n")
                .status,
            400);
}

TEST_F(RunsTest, RefusesWhatItDoesNotKnow) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"yaml": "a: 1", "priorty": 1})", "did you mean 'priority'"},
      {R"({"yaml": "a: 1", "priority": "1"})", "/priority"},
      {R"({"yaml": "a: 1", "priority": 101})", "-100 to 100"},
      {R"({"yaml": "a: 1", "priority": 1.5})", "-100 to 100"},
      {R"({"yaml": "a: 1", "priority": 1e300})", "-100 to 100"},
      {R"({"yaml": "a: 1", "set": "x"})", "/set"},
      {R"({"yaml": "a: 1", "set": [1]})", "/set/0"},
      {R"({"yaml": "a: 1", "base": "relative"})", "absolute"},
      {R"({"yaml": "a: 1", "user": "\u0000"})", "control"},
      {R"({"yaml": "a: 1", "config": {}})", "not both"},
      {R"({})", "not both"},
      {R"({"config": []})", "expected an object"},
      {R"([])", "expected an object"},
      {R"({"yaml": )", "not JSON"},
      {"{\"yaml\": \"\xff\"}", "not JSON"},
      {R"({"yaml": "\ud800"})", "not JSON"},
  };
  for (const auto& [body, words] : cases) {
    const Answer answer = PostJson("/v1/runs", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(answer.headers.at("content-type"), "application/problem+json");
    EXPECT_THAT(answer.body, HasSubstr(words)) << body;
  }
  for (const char* target : {"/v1/runs?limit=0", "/v1/runs?limit=201", "/v1/runs?limit=1&limit=2",
                             "/v1/runs?limit=", "/v1/runs?state=finished", "/v1/runs?cursor=x",
                             "/v1/runs?cursor=-1", "/v1/runs?usr=a"}) {
    EXPECT_EQ(Get(target).status, 400) << target;
  }
  EXPECT_THAT(Get("/v1/runs?usr=a").body, HasSubstr("did you mean 'user'"));
  EXPECT_EQ(Post("/v1/runs", "tasks: []", "Content-Type: text/plain\r\n").status, 415);
  EXPECT_EQ(Post("/v1/runs", "tasks: []").status, 415);
}

TEST_F(RunsTest, RefusesDeepAndLargeBodies) {
  std::string deep = R"({"config": )";
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  const Answer answer = PostJson("/v1/runs", deep);
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("nested deeper"));
  EXPECT_EQ(PostJson("/v1/runs", "{\"yaml\": \"" + std::string(2'000'000, 'a') + "\"}").status,
            413);
}

TEST_F(RunsTest, RefusesDenseBodies) {
  std::string dense = R"({"config": {"a": [0)";
  for (int i = 0; i < 10'000; ++i) dense += ",0";
  const Answer answer = PostJson("/v1/runs", dense + "]}}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("more than 10000 values"));
}

TEST_F(RunsTest, WhatTheServiceRefusesIsUnprocessable) {
  const Answer answer = PostJson("/v1/runs", R"({"yaml": "refuse: 1"})");
  EXPECT_EQ(answer.status, 422);
  EXPECT_EQ(Parse(answer)["remedy"], "leave it out");
}

TEST_F(RunsTest, ListsByPageAndFilter) {
  for (int i = 0; i < 5; ++i) Submit(i % 2 == 0 ? "even" : "odd");
  Json page = Parse(Get("/v1/runs?limit=2"));
  std::vector<std::string> seen;
  for (;;) {
    for (const Json& run : page["runs"]) seen.push_back(run["id"]);
    if (page["next"].is_null()) break;
    page = Parse(Get("/v1/runs?limit=2&cursor=" + page["next"].get<std::string>()));
  }
  EXPECT_THAT(seen, ::testing::ElementsAre("run-5", "run-4", "run-3", "run-2", "run-1"));
  EXPECT_EQ(Parse(Get("/v1/runs?user=odd"))["runs"].size(), 2u);
  EXPECT_EQ(Parse(Get("/v1/runs?state=done"))["runs"].size(), 0u);
}

TEST_F(RunsTest, ChangesRuns) {
  const std::string run = "/v1/runs/" + Submit();
  EXPECT_EQ(Parse(Post(run + "/pause"))["state"], "paused");
  EXPECT_EQ(Parse(PostJson(run + "/resume", " { }\r\n"))["state"], "queued");
  for (const char* body : {"{\"force\": true}", "[]", "{", "}", "null"})
    EXPECT_EQ(PostJson(run + "/cancel", body).status, 400) << body;
  const std::string request = http::test::Ask(
      "PATCH", run, "Content-Type: application/merge-patch+json\r\n", R"({"priority": 9})");
  EXPECT_EQ(Parse(http::test::Fetch(server_->port(), request))["priority"], 9);
  EXPECT_EQ(
      http::test::Fetch(server_->port(),
                        http::test::Ask("PATCH", run, "Content-Type: application/json\r\n", "{}"))
          .status,
      400);
  EXPECT_EQ(Parse(PostJson(run + "/cancel", "{}"))["state"], "cancelled");
  const auto patch = [&](const char* body) {
    return http::test::Fetch(
        server_->port(), http::test::Ask("PATCH", run, "Content-Type: application/json\r\n", body));
  };
  const Json labelled =
      Parse(patch(R"({"title": "warm-up", "tags": ["lr 3e-4", "", "lr 3e-4"], "priority": 4})"));
  EXPECT_EQ(labelled["title"], "warm-up");
  EXPECT_EQ(labelled["tags"], Json({"lr 3e-4"}));
  EXPECT_EQ(labelled["priority"], 4);
  EXPECT_EQ(Parse(patch(R"({"note": "seed 2"})"))["title"], "warm-up") << "absent ones stay";
  EXPECT_EQ(patch(R"({"tags": "one"})").status, 400);
  EXPECT_EQ(patch(R"({"note": "two\nlines"})").status, 400);
  const Answer again = Post(run + "/cancel");
  EXPECT_EQ(again.status, 409);
  EXPECT_THAT(again.body, HasSubstr("over"));
  EXPECT_EQ(Post("/v1/runs/none/cancel").status, 404);
  EXPECT_EQ(Get("/v1/runs/none").status, 404);
  EXPECT_EQ(Post(run + "/explode").status, 404);
  EXPECT_EQ(http::test::Fetch(server_->port(), http::test::Ask("DELETE", run)).headers.at("allow"),
            "GET, HEAD, PATCH");
}

TEST_F(RunsTest, AnUnchangedRunIsNotSentAgain) {
  const std::string run = "/v1/runs/" + Submit();
  const Answer first = Get(run);
  const Answer second = Get(run, "If-None-Match: " + first.headers.at("etag") + "\r\n");
  EXPECT_EQ(second.status, 304);
  Post(run + "/pause");
  EXPECT_EQ(Get(run, "If-None-Match: " + first.headers.at("etag") + "\r\n").status, 200);
}

}  // namespace
}  // namespace evald::test
