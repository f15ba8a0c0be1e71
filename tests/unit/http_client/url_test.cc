// URLs: read as libcurl reads them, shown without secrets.
#include "http_client/url.h"

#include <gtest/gtest.h>

#include "evald/error.h"

namespace evald::http_client::test {
namespace {

TEST(Url, HasItsParts) {
  const Url url = ParseUrl("https://Eval.Example:8642/v1");
  EXPECT_TRUE(url.tls);
  EXPECT_EQ(url.host, "eval.example");
  EXPECT_EQ(url.port, 8642);
  EXPECT_EQ(url.authority, "eval.example:8642");
  EXPECT_EQ(url.path, "/v1");
  EXPECT_FALSE(url.has_user || url.has_query);
  EXPECT_EQ(ParseUrl("https://a").port, 443);
  EXPECT_EQ(ParseUrl("http://a").port, 80);
  EXPECT_EQ(ParseUrl("http://a").authority, "a");
  EXPECT_EQ(ParseUrl("http://[::1]:7").host, "::1");
  EXPECT_EQ(ParseUrl("http://[::1]:7").authority, "[::1]:7");
  EXPECT_TRUE(ParseUrl("http://u:p@a/").has_user);
  EXPECT_TRUE(ParseUrl("http://a/?b").has_query);
}

TEST(Url, OthersAreRefused) {
  for (const char* text : {"", "a", "ftp://a", "http://", "http://:80", "http://a:0x",
                           "http://a:70000", "http://a b/", "http://a\n/", "HTTP//a", "http:/a"}) {
    EXPECT_THROW(ParseUrl(text), Error) << text;
  }
}

TEST(Url, LoopbackIsWhatIsCalled) {
  for (const char* text : {"http://127.0.0.1:1", "http://localhost/", "http://[::1]:1",
                           "http://127.1", "http://LOCALHOST", "http://127.8.9.10"}) {
    EXPECT_TRUE(IsLoopback(ParseUrl(text))) << text;
  }
  for (const char* text : {"http://127.0.0.1.evil.example", "http://localhost.evil.example",
                           "http://127.0.0.1@evil.example", "http://localhost:1@evil.example/",
                           "http://0.0.0.0", "http://10.0.0.1", "http://[::2]"}) {
    EXPECT_FALSE(IsLoopback(ParseUrl(text))) << text;
  }
}

TEST(Url, IsShownWithoutSecrets) {
  EXPECT_EQ(Shown("https://user:word@a.example:8/b?token=c#d"), "https://a.example:8/b");
  EXPECT_EQ(Shown("http://a.example/b"), "http://a.example/b");
  EXPECT_EQ(Shown("nonsense://user:word@a?token=c").find("word"), std::string::npos);
}

TEST(Url, TheSameOriginHasSchemeHostAndPort) {
  EXPECT_TRUE(IsSameOrigin("https://a.b/x", "https://A.b:443/y?z"));
  EXPECT_FALSE(IsSameOrigin("https://a.b/x", "http://a.b/x"));
  EXPECT_FALSE(IsSameOrigin("https://a.b", "https://a.b:444"));
  EXPECT_FALSE(IsSameOrigin("https://a.b", "https://a.b.c"));
  EXPECT_FALSE(IsSameOrigin("https://a.b", "https://a.b@c.d"));
}

}  // namespace
}  // namespace evald::http_client::test
