#include "worker/command/key_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "http_server/server.h"
#include "tests/unit/http_server/socket_client.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::command {
namespace {

using http::test::Answer;
using http::test::Ask;
using http::test::Fetch;
using http::test::SocketClient;
using ::testing::HasSubstr;

const std::string kKey = "a-key-of-sixteen-or-more";
const std::string kAuthorization = "Authorization: Bearer " + kKey + "\r\n";

TEST(CarriesKey, LooksAtTheFieldAlone) {
  EXPECT_TRUE(CarriesKey("GET / HTTP/1.1\r\nAuthorization: Bearer k", "k"));
  EXPECT_TRUE(CarriesKey("GET / HTTP/1.1\r\nauthorization:bearer  k \r\nHost: x", "k"));
  for (const char* head :
       {"GET / HTTP/1.1", "", "GET /?Authorization: Bearer k", "GET / HTTP/1.1\r\nAuthorization: k",
        "GET / HTTP/1.1\r\nAuthorization: Bearer", "GET / HTTP/1.1\r\nAuthorization: Bearer kk",
        "GET / HTTP/1.1\r\nAuthorization: Basic k", "GET / HTTP/1.1\r\nX-Authorization: Bearer k",
        "GET / HTTP/1.1\r\nAuthorization: Bearer k\r\nAuthorization: Bearer x"}) {
    EXPECT_FALSE(CarriesKey(head, "k")) << head;
  }
}

class KeyGateTest : public ::testing::Test {
 protected:
  KeyGateTest() {
    http::Router router;
    router.Add(
        {"POST", "/echo", http::Role::kNone,
         [](const std::shared_ptr<const http::Request>& request, const http::Responder& answer) {
           http::Response response = http::JsonResponse(200, request->body);
           answer(std::move(response));
         },
         64 << 20});
    http::ServerOptions options;
    options.socket = folder_ / "server";
    options.request.body_bytes_max = 64 << 20;
    server_.emplace(options, std::move(router));
    gate_.emplace(options.socket, kKey);
  }

  TemporaryFolder folder_;
  std::optional<http::Server> server_;
  std::optional<KeyGate> gate_;
};

TEST_F(KeyGateTest, PassesOnWhatCarriesTheKey) {
  const std::string body = "\"" + std::string(3 << 20, 'x') + "\"";
  const Answer answer = Fetch(gate_->port(), Ask("POST", "/echo", kAuthorization, body));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, body);
}

TEST_F(KeyGateTest, AConnectionIsUsedAgain) {
  SocketClient client(gate_->port());
  for (const char* body : {"1", "22", "333"}) {
    ASSERT_TRUE(client.Send(Ask("POST", "/echo", kAuthorization, body)));
    EXPECT_EQ(client.Receive().body, body);
  }
}

TEST_F(KeyGateTest, RefusesWhatDoesNot) {
  for (const std::string& headers :
       {std::string(), std::string("Authorization: Bearer wrong-key-of-sixteen\r\n")}) {
    const Answer answer = Fetch(gate_->port(), Ask("POST", "/echo", headers, "1"));
    EXPECT_EQ(answer.status, 401);
    EXPECT_THAT(answer.body, HasSubstr("authentication_error"));
  }
}

TEST_F(KeyGateTest, AHeadWithoutEndIsCut) {
  SocketClient client(gate_->port());
  client.Send("POST /echo HTTP/1.1\r\nX: " + std::string(100 << 10, 'x'));
  EXPECT_TRUE(client.EndsWithin(http::test::kPatience));
}

TEST_F(KeyGateTest, ManyConnectionsAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 32; ++i) {
    threads.emplace_back([&, i] {
      const std::string body = std::to_string(i);
      right += Fetch(gate_->port(), Ask("POST", "/echo", kAuthorization, body)).body == body;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 32);
}

TEST_F(KeyGateTest, AGoneServerEndsTheConnection) {
  server_.reset();
  EXPECT_EQ(Fetch(gate_->port(), Ask("POST", "/echo", kAuthorization, "1")).status, 0);
}

TEST_F(KeyGateTest, EndsWithConnectionsOpen) {
  SocketClient idle(gate_->port()), used(gate_->port());
  used.Send(Ask("POST", "/echo", kAuthorization, "1"));
  EXPECT_EQ(used.Receive().status, 200);
  gate_.reset();
  EXPECT_TRUE(used.EndsWithin(http::test::kPatience));
  EXPECT_TRUE(idle.EndsWithin(http::test::kPatience));
}

}  // namespace
}  // namespace evald::command
