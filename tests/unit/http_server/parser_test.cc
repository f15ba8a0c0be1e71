// Bytes to requests, without a socket.
#include <gtest/gtest.h>

#include "http_server/problem.h"
#include "http_server/request_parser.h"
#include "http_server/target.h"

namespace evald::http {
namespace {

// The status of the problem in `bytes`, fed `step` bytes at a time; 0 if they make a request.
int StatusOf(const std::string& bytes, size_t step, const RequestLimits& limits = {}) {
  RequestParser parser(limits);
  try {
    for (size_t at = 0; at < bytes.size(); at += step) {
      parser.Feed(std::string_view(bytes).substr(at, step));
      if (parser.ReadHead() && parser.ReadBody()) return 0;
    }
  } catch (const ProblemError& error) {
    EXPECT_TRUE(parser.broken());
    return error.problem().status;
  }
  return -1;
}

TEST(RequestParser, ReadsTheSameWhereverBytesAreCut) {
  const std::string bytes =
      "\r\nPOST /v1/a%2Fb/c?x=1&y=a+b HTTP/1.1\r\nhOST: here\r\nContent-Length: 5\r\n\r\nhello"
      "GET / HTTP/1.1\r\nHost: here\r\n\r\n";
  for (size_t step = 1; step <= bytes.size(); ++step) {
    RequestParser parser({});
    std::vector<Request> requests;
    for (size_t at = 0; at < bytes.size(); at += step) {
      parser.Feed(std::string_view(bytes).substr(at, step));
      while (parser.ReadHead() && parser.ReadBody()) requests.push_back(parser.Take());
    }
    ASSERT_EQ(requests.size(), 2u) << step;
    EXPECT_EQ(requests[0].method, "POST");
    EXPECT_EQ(requests[0].path, (std::vector<std::string>{"v1", "a/b", "c"}));
    EXPECT_EQ(requests[0].query[1].second, "a b");
    EXPECT_EQ(requests[0].headers.Get("Host"), "here");
    EXPECT_EQ(requests[0].body, "hello");
    EXPECT_TRUE(requests[1].path.empty());
    EXPECT_FALSE(parser.begun());
  }
}

TEST(RequestParser, ReadsChunks) {
  RequestParser parser({});
  parser.Feed(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
      "chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  ASSERT_TRUE(parser.ReadHead());
  ASSERT_TRUE(parser.ReadBody());
  EXPECT_EQ(parser.Take().body, "abcde");
}

TEST(RequestParser, RefusesWhatIsNoRequest) {
  const std::pair<const char*, int> cases[] = {
      {"\x16\x03\x01\x02\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /%00 HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /%ff HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /a/../b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET /a/%2e%2e/b HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET a HTTP/1.1\r\nHost: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nExpect: a-miracle\r\n\r\n", 417},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400},
      {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: "
       "chunked\r\n\r\n0\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: "
       "4\r\n\r\n0\r\n\r\n",
       400},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tc: d\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n \r\n\r\n", 400},
  };
  for (const auto& [bytes, status] : cases) {
    EXPECT_EQ(StatusOf(bytes, 1), status) << bytes;
    EXPECT_EQ(StatusOf(bytes, 4096), status) << bytes;
  }
}

TEST(RequestParser, LimitsHeaderBodyAndChunkLines) {
  const RequestLimits limits{1024, 100};
  const std::string start = "POST / HTTP/1.1\r\nHost: h\r\n";
  EXPECT_EQ(StatusOf(start + "A: " + std::string(2000, 'a') + "\r\n\r\n", 10, limits), 431);
  EXPECT_EQ(StatusOf("GET /" + std::string(1 << 20, 'a'), 4096, limits), 431);
  EXPECT_EQ(StatusOf(start + "Content-Length: 101\r\n\r\n", 10, limits), 413);
  EXPECT_EQ(StatusOf(start + "Content-Length: 100\r\n\r\n" + std::string(100, 'x'), 10, limits), 0);
  const std::string chunk = "32\r\n" + std::string(50, 'x') + "\r\n";
  const std::string chunked = start + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(StatusOf(chunked + chunk + chunk + "0\r\n\r\n", 10, limits), 0);
  EXPECT_EQ(StatusOf(chunked + chunk + chunk + chunk, 10, limits), 413);
  EXPECT_EQ(StatusOf(chunked + "1;" + std::string(1 << 20, 'e'), 4096, limits), 400);
  EXPECT_EQ(StatusOf(chunked + "0\r\nA: " + std::string(1 << 20, 'e'), 4096, limits), 400);
}

TEST(RequestParser, ARouteMayTakeLess) {
  RequestParser parser({});
  parser.Feed("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\n");
  ASSERT_TRUE(parser.ReadHead());
  try {
    parser.LimitBody(10);
    FAIL();
  } catch (const ProblemError& error) {
    EXPECT_EQ(error.problem().status, 413);
  }
  EXPECT_TRUE(parser.broken());
}

TEST(Target, EncodesAndDecodes) {
  EXPECT_EQ(PercentEncode("a b/ü~"), "a%20b%2F%C3%BC~");
  EXPECT_EQ(PercentDecode("a%20b%2F%C3%BC~"), "a b/ü~");
  EXPECT_EQ(PercentDecode("a+b"), "a+b");
  for (const char* bad : {"%", "%4", "a%4", "%g0", "%00"}) EXPECT_FALSE(PercentDecode(bad)) << bad;
  EXPECT_EQ(PercentDecode("%41"), "A");
}

TEST(Target, TakesAbsoluteForm) {
  Request request;
  request.target = "http://host:1/a?b=c";
  ASSERT_TRUE(ParseTarget(&request));
  EXPECT_EQ(request.path, std::vector<std::string>{"a"});
  EXPECT_EQ(request.query[0].second, "c");
}

}  // namespace
}  // namespace evald::http
