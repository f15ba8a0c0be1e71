// TLS with a certificate of the server's own.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <filesystem>

#include "http_server/own_certificates.h"
#include "http_server/server.h"
#include "socket_client.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::http::test {
namespace {

namespace fs = std::filesystem;

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    files_ = KeepOwnCertificates(folder_.path(), {"localhost"});
    Start(ServerOptions().time.handshake);
  }

  void Start(std::chrono::milliseconds handshake) {
    ServerOptions options;
    options.certificate = files_.certificate;
    options.key = files_.key;
    options.time.handshake = handshake;
    options.tokens.Add("reader", Role::kRead, "0123456789abcdef");
    Router router;
    router.Add({"GET", "/", Role::kRead, [](const auto&, const Responder& answer) {
                  answer(JsonResponse(200, "\"private\""));
                }});
    server_ = std::make_unique<Server>(options, std::move(router));
  }

  // The answer to one request over TLS of at most `version`; "" if there is no connection.
  std::string Fetch(const std::string& request, int version) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      return "";
    SSL_CTX* context = ::SSL_CTX_new(::TLS_client_method());
    ::SSL_CTX_set_security_level(context, 0);
    ::SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    ::SSL_CTX_set_max_proto_version(context, version);
    SSL* tls = ::SSL_new(context);
    ::SSL_set_fd(tls, socket.get());
    std::string answer;
    if (::SSL_connect(tls) == 1) {
      ::SSL_write(tls, request.data(), static_cast<int>(request.size()));
      char data[4096];
      for (int count; (count = ::SSL_read(tls, data, sizeof data)) > 0;)
        answer.append(data, static_cast<size_t>(count));
    }
    ::SSL_free(tls);
    ::SSL_CTX_free(context);
    return answer;
  }

  TemporaryFolder folder_;
  OwnCertificates files_;
  std::unique_ptr<Server> server_;
};

TEST_F(TlsTest, ServesWithATokenAndNotWithout) {
  const std::string token = "Authorization: Bearer 0123456789abcdef\r\nConnection: close\r\n";
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    EXPECT_TRUE(Fetch(Ask("GET", "/", token), version).ends_with("\"private\""));
    EXPECT_TRUE(
        Fetch(Ask("GET", "/", "Connection: close\r\n"), version).starts_with("HTTP/1.1 401"));
  }
}

TEST_F(TlsTest, OldVersionsAreRefused) { EXPECT_EQ(Fetch(Ask("GET", "/"), TLS1_1_VERSION), ""); }

TEST_F(TlsTest, PlainTextGetsNothing) {
  SocketClient client(server_->port());
  client.Send(Ask("GET", "/", "Authorization: Bearer 0123456789abcdef\r\n"));
  EXPECT_EQ(client.ReceiveUntil("private", std::chrono::seconds(2)).find("private"),
            std::string::npos);
}

TEST_F(TlsTest, AHandshakeThatStallsEnds) {
  Start(std::chrono::milliseconds(300));
  SocketClient client(server_->port());
  client.Send("\x16\x03\x01");
  EXPECT_TRUE(client.EndsWithin(kPatience));
}

}  // namespace
}  // namespace evald::http::test
