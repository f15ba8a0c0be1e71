#include "http_server/router.h"

#include <gtest/gtest.h>

#include "http_server/problem.h"
#include "http_server/target.h"

namespace evald::http {
namespace {

Router Sample() {
  Router router;
  for (const auto& [method, path] :
       std::vector<std::pair<std::string, std::string>>{{"GET", "/"},
                                                        {"GET", "/runs"},
                                                        {"POST", "/runs"},
                                                        {"GET", "/runs/{run}"},
                                                        {"GET", "/runs/latest"},
                                                        {"GET", "/runs/{run}/samples/{task}"},
                                                        {"GET", "/assets/{file...}"}}) {
    router.Add({method, path, Role::kRead, [](const auto&, const Responder&) {}});
  }
  return router;
}

Request AskingFor(const std::string& method, const std::string& target) {
  Request request;
  request.method = method;
  request.target = target;
  EXPECT_TRUE(ParseTarget(&request)) << target;
  return request;
}

int Refusal(const std::string& method, const std::string& target, std::string* allow = nullptr) {
  Request request = AskingFor(method, target);
  try {
    Sample().Find(&request);
  } catch (const ProblemError& error) {
    if (allow != nullptr && !error.problem().headers.empty())
      *allow = error.problem().headers[0].second;
    return error.problem().status;
  }
  return 0;
}

TEST(Router, FindsRoutesAndParameters) {
  Request request = AskingFor("GET", "/runs/a%2Fb/samples/gsm8k");
  EXPECT_EQ(Sample().Find(&request).path, "/runs/{run}/samples/{task}");
  EXPECT_EQ(request.parameters.at("run"), "a/b");
  EXPECT_EQ(request.parameters.at("task"), "gsm8k");
}

TEST(Router, FixedSegmentsWin) {
  Request request = AskingFor("GET", "/runs/latest");
  EXPECT_EQ(Sample().Find(&request).path, "/runs/latest");
  EXPECT_TRUE(request.parameters.empty());
}

TEST(Router, TakesTheRestOfThePath) {
  Request request = AskingFor("GET", "/assets/a/b.js");
  Sample().Find(&request);
  EXPECT_EQ(request.parameters.at("file"), "a/b.js");
}

TEST(Router, HeadIsGet) {
  Request request = AskingFor("HEAD", "/");
  EXPECT_EQ(Sample().Find(&request).path, "/");
}

TEST(Router, SaysWhatIsMissing) {
  std::string allow;
  EXPECT_EQ(Refusal("DELETE", "/runs", &allow), 405);
  EXPECT_EQ(allow, "GET, HEAD, POST");
  EXPECT_EQ(Refusal("GET", "/none"), 404);
  EXPECT_EQ(Refusal("GET", "/runs/"), 404);
  EXPECT_EQ(Refusal("GET", "/runs/a/samples"), 404);
  EXPECT_EQ(Refusal("GET", "/runs/a/samples//"), 404);
}

TEST(Router, RefusesTheSameRouteTwice) {
  Router router = Sample();
  EXPECT_THROW(router.Add({"GET", "/runs"}), Error);
}

}  // namespace
}  // namespace evald::http
