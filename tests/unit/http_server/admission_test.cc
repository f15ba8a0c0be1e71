// Admission: permissions decided from a request's header.
#include "http_server/admission.h"

#include <gtest/gtest.h>

#include "http_server/problem.h"
#include "http_server/target.h"

namespace evald::http {
namespace {

const std::string kReader = "token-of-the-reader", kAdmin = "token-of-the-admin!";

Router Routes() {
  Router router;
  const Handler none = [](const auto&, const Responder&) {};
  router.Add({"GET", "/open", Role::kNone, none});
  router.Add({"GET", "/read", Role::kRead, none});
  router.Add({"POST", "/change", Role::kSubmit, none});
  return router;
}

Admission::Rules WithTokens() {
  Admission::Rules rules;
  rules.tokens.Add("reader", Role::kRead, kReader);
  rules.tokens.Add("admin", Role::kAdmin, kAdmin);
  return rules;
}

Request Asking(const std::string& method, const std::string& path, const std::string& token = "") {
  Request request;
  request.method = method;
  request.path = {path};
  request.client = "127.0.0.1";
  request.headers.Add("Host", "localhost:80");
  if (!token.empty()) request.headers.Add("Authorization", "Bearer " + token);
  return request;
}

Problem Refusal(Admission* admission, Request request, int64_t now_us = 0) {
  try {
    admission->Admit(&request, now_us);
  } catch (const ProblemError& error) {
    return error.problem();
  }
  return {0};
}

TEST(Admission, TokensDecide) {
  Admission admission(WithTokens(), Routes());
  EXPECT_EQ(Refusal(&admission, Asking("GET", "open")).status, 0);
  const Problem missing = Refusal(&admission, Asking("GET", "read"));
  EXPECT_EQ(missing.status, 401);
  EXPECT_EQ(missing.headers.at(0).first, "WWW-Authenticate");
  EXPECT_EQ(Refusal(&admission, Asking("GET", "read", "some-other-token-here")).status, 401);
  EXPECT_EQ(Refusal(&admission, Asking("GET", "open", "some-other-token-here")).status, 401);
  EXPECT_EQ(Refusal(&admission, Asking("GET", "read", kReader)).status, 0);
  EXPECT_EQ(Refusal(&admission, Asking("POST", "change", kReader)).status, 403);
  EXPECT_EQ(Refusal(&admission, Asking("POST", "change", kAdmin)).status, 0);
  Request request = Asking("GET", "read", kReader);
  admission.Admit(&request, 0);
  EXPECT_EQ(request.principal.name, "reader");
}

TEST(Admission, WithoutTokensOnlyOwnNamesAreServed) {
  Admission::Rules rules;
  rules.hosts = {"box.lan"};
  Admission admission(rules, Routes());
  Request rebound = Asking("GET", "read");
  for (const char* name : {"evil.example", "evil.example:80", "127.0.0.1.evil.example", ""}) {
    rebound.headers.Set("Host", name);
    EXPECT_EQ(Refusal(&admission, rebound).status, 421) << name;
  }
  for (const char* name :
       {"localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]:8080", "box.lan:1"}) {
    rebound.headers.Set("Host", name);
    EXPECT_EQ(Refusal(&admission, rebound).status, 0) << name;
  }
}

TEST(Admission, TheNameInATargetCountsMoreThanTheHostField) {
  Admission admission({}, Routes());
  const auto refusal = [&](const std::string& target, const std::string& host) {
    Request request;
    request.method = "GET";
    request.target = target;
    request.headers.Add("Host", host);
    EXPECT_TRUE(ParseTarget(&request)) << target;
    return Refusal(&admission, request).status;
  };
  EXPECT_EQ(refusal("http://evil.example/read", "127.0.0.1"), 421);
  EXPECT_EQ(refusal("HTTPS://evil.example:80/read", "127.0.0.1"), 421);
  EXPECT_EQ(refusal("http://127.0.0.1@evil.example/read", "127.0.0.1"), 421);
  EXPECT_EQ(refusal("http:///read", "127.0.0.1"), 421);
  EXPECT_EQ(refusal("http://localhost:8642/read", "127.0.0.1"), 0);
  EXPECT_EQ(refusal("/read", "127.0.0.1"), 0);
}

TEST(Admission, CallersWithoutATokenDoNotUseUpTheRateOfThoseWhoHaveOne) {
  Admission::Rules rules = WithTokens();
  rules.requests_per_second = rules.requests_burst = 2;
  Admission admission(rules, Routes());
  const auto status = [&](const std::string& token) {
    return Refusal(&admission, Asking("GET", "read", token)).status;
  };
  for (const int expected : {401, 401, 429, 429}) EXPECT_EQ(status("unknown-token-1234"), expected);
  EXPECT_EQ(status(""), 429);
  for (const int expected : {0, 0, 429}) EXPECT_EQ(status(kReader), expected);
}

TEST(Admission, OtherPagesMayNotChangeAnything) {
  Admission admission({}, Routes());
  Request request = Asking("POST", "change");
  request.headers.Add("Origin", "http://evil.example");
  EXPECT_EQ(Refusal(&admission, request).status, 403);
  for (const char* origin : {"null", "", "http://localhost:3000", "http://localhost",
                             "http://localhost:80.evil.example"}) {
    // a page from another port of this machine is a foreign page too
    request.headers.Set("Origin", origin);
    EXPECT_EQ(Refusal(&admission, request).status, 403) << origin;
  }
  request.headers.Set("Origin", "http://localhost:80");
  EXPECT_EQ(Refusal(&admission, request).status, 0);
}

TEST(Admission, LimitsTheRateOfEachClient) {
  Admission::Rules rules;
  rules.requests_per_second = 10;
  rules.requests_burst = 3;
  Admission admission(rules, Routes());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Refusal(&admission, Asking("GET", "open")).status, 0);
  const Problem over = Refusal(&admission, Asking("GET", "open"));
  EXPECT_EQ(over.status, 429);
  EXPECT_EQ(over.headers.at(0), (std::pair<std::string, std::string>("Retry-After", "1")));
  Request other = Asking("GET", "open");
  other.client = "127.0.0.2";
  EXPECT_EQ(Refusal(&admission, other).status, 0);
  EXPECT_EQ(Refusal(&admission, Asking("GET", "open"), 101'000).status, 0);
  EXPECT_EQ(Refusal(&admission, Asking("GET", "open"), 101'000).status, 429);
}

TEST(RateLimit, ForgetsClientsRatherThanGrow) {
  RateLimit limit(1, 2, 100);
  for (int i = 0; i < 1000; ++i) limit.Take("client " + std::to_string(i), i);
  EXPECT_EQ(limit.Take("client 999", 1000), 0);
}

}  // namespace
}  // namespace evald::http
