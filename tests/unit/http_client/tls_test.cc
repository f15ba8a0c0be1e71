// Whom a call over TLS trusts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "evald/error.h"
#include "http_client/client.h"
#include "http_client/failure.h"
#include "http_server/own_certificates.h"
#include "http_server/server.h"
#include "scripted_server.h"
#include "tests/unit/checkpoint/checkpoint_files.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::http_client::test {
namespace {

using ::testing::HasSubstr;

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    files_ = http::KeepOwnCertificates(folder_.path(), {"localhost"});
    http::ServerOptions options;
    options.certificate = files_.certificate;
    options.key = files_.key;
    http::Router router;
    router.Add({"GET", "/", http::Role::kRead, [](const auto&, const http::Responder& answer) {
                  answer(http::JsonResponse(200, "\"private\""));
                }});
    server_ = std::make_unique<http::Server>(options, std::move(router));
  }

  Request Ask(const std::string& host) {
    Request request;
    request.url = "https://" + host + ":" + std::to_string(server_->port()) + "/";
    request.ca_file = files_.authority;
    request.limits.total = kPatience;
    return request;
  }

  TemporaryFolder folder_;
  http::OwnCertificates files_;
  std::unique_ptr<http::Server> server_;
};

TEST_F(TlsTest, ACertificateOfTheFileIsTrusted) {
  const Response response = Client().Perform(Ask("localhost"));
  EXPECT_TRUE(response.ok()) << response.error;
  EXPECT_EQ(response.body, "\"private\"");
}

TEST_F(TlsTest, AnUnknownIssuerIsNotTrusted) {
  Request request = Ask("localhost");
  request.ca_file.clear();
  request.bearer_token = "secret";
  const Response response = Client().Perform(request, RetryPolicy{});
  EXPECT_EQ(response.outcome, Outcome::kUntrusted);
  EXPECT_EQ(response.attempts, 1);
  EXPECT_THAT(FailureOf(request, response).what(), HasSubstr("certificate"));
}

// The tarball's libcurl looks where Debian keeps certificates.
TEST_F(TlsTest, TheFileOfTheEnvironmentIsTrusted) {
  Request request = Ask("localhost");
  const std::string file = request.ca_file;
  request.ca_file.clear();
  ::setenv("SSL_CERT_FILE", file.c_str(), 1);
  const Response response = Client().Perform(request);
  ::unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(response.ok()) << response.error;
}

TEST_F(TlsTest, ACertificateOfAnotherNameIsNotTrusted) {
  const Response response = Client().Perform(Ask("127.0.0.1"));
  EXPECT_EQ(response.outcome, Outcome::kUntrusted);
  EXPECT_THAT(response.error, HasSubstr("127.0.0.1"));
}

TEST_F(TlsTest, AFileOfCertificatesThatCannotBeReadIsNamed) {
  Request request = Ask("localhost");
  request.ca_file = folder_.path() / "none.pem";
  const Response response = Client().Perform(request);
  EXPECT_EQ(response.outcome, Outcome::kUntrusted);
  EXPECT_THAT(response.error, HasSubstr("none.pem"));
}

TEST_F(TlsTest, AServerWithoutTlsIsNotTrusted) {
  ScriptedServer plain([](const std::string&) { return Answer(200, "plain"); });
  Request request;
  request.url = "https" + plain.url().substr(4);
  request.limits.total = std::chrono::seconds(2);
  const Response response = Client().Perform(request);
  EXPECT_NE(response.outcome, Outcome::kAnswered);
  EXPECT_EQ(response.body, "");
}

}  // namespace
}  // namespace evald::http_client::test
