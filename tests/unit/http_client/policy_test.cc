// Which way a call takes, and what it refuses to send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "evald/error.h"
#include "http_client/client.h"
#include "scripted_server.h"

namespace evald::http_client::test {
namespace {

using testing::HasSubstr;

// A server, and another one that the environment names as the proxy.
class ProxyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::setenv("http_proxy", proxy_.url("").c_str(), 1);
    ::unsetenv("no_proxy");
    ::unsetenv("NO_PROXY");
  }
  void TearDown() override {
    ::unsetenv("http_proxy");
    ::unsetenv("no_proxy");
  }

  std::string Ask(const std::string& host, Proxy proxy = Proxy::kEnvironment) {
    Request request;
    request.url = server_.Url(host, "/x");
    request.proxy = proxy;
    request.limits.total = kPatience;
    return Client().Perform(request).body;
  }

  ScriptedServer server_{[](const std::string&) { return Answer(200, "direct"); }};
  ScriptedServer proxy_{[](const std::string&) { return Answer(200, "by the proxy"); }};
};

// 0.0.0.0 is this machine too, but not by a name that says so.
TEST_F(ProxyTest, TheEnvironmentsIsUsed) {
  EXPECT_EQ(Ask("0.0.0.0"), "by the proxy");
  EXPECT_THAT(proxy_.requests().at(0), HasSubstr("GET http://0.0.0.0:"));
}

TEST_F(ProxyTest, NotForLoopback) {
  for (const char* host : {"127.0.0.1", "localhost", "127.1"}) EXPECT_EQ(Ask(host), "direct");
}

TEST_F(ProxyTest, NotForHostsThatTheEnvironmentExcepts) {
  ::setenv("no_proxy", "0.0.0.0", 1);
  EXPECT_EQ(Ask("0.0.0.0"), "direct");
}

TEST_F(ProxyTest, NotForCallsThatUseNone) { EXPECT_EQ(Ask("0.0.0.0", Proxy::kNone), "direct"); }

TEST(Policy, OtherSchemesAreNotCalled) {
  for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "http://", "", "127.0.0.1"}) {
    Request request;
    request.url = url;
    EXPECT_THROW(Client().Perform(request), Error) << url;
  }
}

TEST(Policy, HeaderFieldsWithLineBreaksAreNotSent) {
  ScriptedServer server([](const std::string&) { return Answer(200, ""); });
  const std::pair<std::string, std::string> fields[] = {
      {"A", "b\r\nC: d"}, {"A\nB", "c"}, {"A", std::string("b\0c", 3)}, {"", "a"}, {"A:", "b"}};
  for (const auto& field : fields) {
    Request request;
    request.url = server.url();
    request.headers = {field};
    EXPECT_THROW(Client().Perform(request), Error) << field.first;
  }
  Request request;
  request.url = server.url();
  request.bearer_token = "a\nb";
  EXPECT_THROW(Client().Perform(request), Error);
  EXPECT_TRUE(server.requests().empty());
}

}  // namespace
}  // namespace evald::http_client::test
