// Clients that ask for too much, too slowly or too often.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "evald/error.h"
#include "http_server/server.h"
#include "socket_client.h"

namespace evald::http::test {
namespace {

using std::chrono::milliseconds;

Router Routes() {
  Router router;
  router.Add({"POST", "/take", Role::kSubmit,
              [](const auto&, const Responder& answer) { answer(JsonResponse(200, "{}")); }, 1000});
  router.Add({"GET", "/large", Role::kRead, [](const auto&, const Responder& answer) {
                answer(JsonResponse(200, std::string(20'000'000, ' ')));
              }});
  router.Add({"GET", "/", Role::kRead,
              [](const auto&, const Responder& answer) { answer(JsonResponse(200, "{}")); }});
  router.Add({"GET", "/never", Role::kRead, [](const auto&, Responder answer) {
                static std::vector<Responder> kept;
                kept.push_back(std::move(answer));
              }});
  return router;
}

ServerOptions Quick() {
  ServerOptions options;
  options.time.idle = milliseconds(400);
  options.time.header = milliseconds(300);
  options.time.body = milliseconds(300);
  options.time.answer = milliseconds(300);
  options.time.write = milliseconds(300);
  return options;
}

TEST(Limits, ARouteTakesNoLongerBodiesThanTheServer) {
  ServerOptions options;
  options.request.body_bytes_max = 999;
  EXPECT_THROW(Server(options, Routes()), Error);
  options.request.body_bytes_max = 1000;
  EXPECT_NO_THROW(Server(options, Routes()));
}

TEST(Limits, ASlowHeaderEndsTheConnection) {
  Server server(Quick(), Routes());
  SocketClient client(server.port());
  client.Send("GET / HTTP/1.1\r\n");
  const auto begun = std::chrono::steady_clock::now();
  // A byte now and then does not move the deadline.
  while (!client.EndsWithin(milliseconds(50)) &&
         std::chrono::steady_clock::now() - begun < kPatience) {
    client.Send("A");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience);
}

TEST(Limits, ABodyThatDoesNotComeEndsTheConnection) {
  Server server(Quick(), Routes());
  SocketClient client(server.port());
  client.Send("POST /take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc");
  EXPECT_TRUE(client.EndsWithin(kPatience));
  SocketClient chunked(server.port());
  chunked.Send("POST /take HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
  const auto begun = std::chrono::steady_clock::now();
  while (!chunked.EndsWithin(milliseconds(50)) &&
         std::chrono::steady_clock::now() - begun < kPatience) {
    chunked.Send("1\r\nx\r\n");
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience);
}

TEST(Limits, ASilentConnectionEnds) {
  Server server(Quick(), Routes());
  SocketClient never(server.port());
  EXPECT_TRUE(never.EndsWithin(kPatience));
  // A client that was too slow tries again.
  const auto begun = std::chrono::steady_clock::now();
  for (int status = 0; status != 200;) {
    ASSERT_LT(std::chrono::steady_clock::now() - begun, kPatience);
    SocketClient after(server.port());
    after.Send(Ask("GET", "/"));
    status = after.Receive().status;
    EXPECT_TRUE(after.EndsWithin(kPatience));
  }
}

TEST(Limits, AClientThatDoesNotReadIsDropped) {
  Server server(Quick(), Routes());
  SocketClient client(server.port());
  client.ShrinkReceiveBuffer();
  client.Send(Ask("GET", "/large"));
  Statistics statistics;
  for (int i = 0; i < 6000 && (statistics.timeouts_total == 0 || statistics.connections > 0); ++i) {
    std::this_thread::sleep_for(milliseconds(10));
    std::promise<Statistics> promise;
    server.Post([&] { promise.set_value(server.statistics()); });
    statistics = promise.get_future().get();
  }
  EXPECT_EQ(statistics.connections, 0u);
  EXPECT_EQ(statistics.timeouts_total, 1u);
}

TEST(Limits, AHandlerThatNeverAnswersEndsTheConnection) {
  Server server(Quick(), Routes());
  SocketClient client(server.port());
  client.Send(Ask("GET", "/never"));
  EXPECT_TRUE(client.EndsWithin(kPatience));
}

TEST(Limits, AHalfClosedClientStillGetsItsAnswer) {
  Server server({}, Routes());
  SocketClient client(server.port());
  client.Send(Ask("GET", "/"));
  client.EndSending();
  EXPECT_EQ(client.Receive().status, 200);
  EXPECT_TRUE(client.EndsWithin(kPatience));
}

TEST(Limits, ABodyOverTheRoutesLimitIsRefusedBeforeItIsRead) {
  Server server({}, Routes());
  SocketClient client(server.port());
  client.Send("POST /take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n");
  const Answer answer = client.Receive();
  EXPECT_EQ(answer.status, 413);
  EXPECT_EQ(answer.headers.at("connection"), "close");
  // A client that sends regardless can still read its answer.
  EXPECT_EQ(Fetch(server.port(), Ask("POST", "/take", "", std::string(500'000, 'x'))).status, 413);
  EXPECT_EQ(Fetch(server.port(), Ask("GET", "/", "", "a body")).status, 413);
}

TEST(Limits, HeadersOverTheLimitAreRefused) {
  Server server({}, Routes());
  EXPECT_EQ(Fetch(server.port(), Ask("GET", "/", "A: " + std::string(20'000, 'a') + "\r\n")).status,
            431);
}

TEST(Limits, ConnectionsOverTheLimitAreTurnedAway) {
  ServerOptions options;
  options.connections_per_client_max = 3;
  Server server(options, Routes());
  std::vector<std::unique_ptr<SocketClient>> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(std::make_unique<SocketClient>(server.port()));
    held.back()->Send(Ask("GET", "/"));
    EXPECT_EQ(held.back()->Receive().status, 200);
  }
  SocketClient more(server.port());
  EXPECT_EQ(more.Receive().status, 503);
  held.pop_back();
  Answer answer;
  const auto begun = std::chrono::steady_clock::now();
  while (answer.status != 200 && std::chrono::steady_clock::now() - begun < kPatience) {
    std::this_thread::sleep_for(milliseconds(10));
    answer = Fetch(server.port(), Ask("GET", "/"));
  }
  EXPECT_EQ(answer.status, 200);
}

// A client at another loopback address of this machine.
struct From {
  From(const char* address, uint16_t port) : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in own{}, server{};
    own.sin_family = server.sin_family = AF_INET;
    ::inet_pton(AF_INET, address, &own.sin_addr);
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.sin_port = htons(port);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&server), sizeof server), 0);
  }
  UniqueFd socket;
};

// 1,030 silent connections from three addresses once shut out everyone.
TEST(Limits, SilentConnectionsGiveWayAndThoseWithATokenStay) {
  ServerOptions options;
  options.tokens.Add("reader", Role::kRead, "token-of-the-reader");
  options.connections_max = 8;
  options.connections_per_client_max = 5;
  options.time.header = std::chrono::minutes(10);  // does not end the connections in this test
  Server server(options, Routes());
  const std::string ask = Ask("GET", "/", "Authorization: Bearer token-of-the-reader\r\n");
  SocketClient reader(server.port());
  reader.Send(ask);
  EXPECT_EQ(reader.Receive().status, 200);
  std::vector<From> silent;
  for (int i = 0; i < 30; ++i) {
    for (const char* address : {"127.0.0.2", "127.0.0.3", "127.0.0.4"})
      silent.emplace_back(address, server.port());
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Fetch(server.port(), ask).status, 200) << i;
  reader.Send(ask);
  EXPECT_EQ(reader.Receive().status, 200) << "it was known, and stayed";
}

// There is room for two connections. Both are known: one is between requests, and one is being
// answered. A third connection takes the place of the first.
void ExpectTheIdleOneGivesWay(uint16_t port) {
  SocketClient busy(port), idle(port);
  idle.Send(Ask("GET", "/"));
  EXPECT_EQ(idle.Receive().status, 200);
  busy.Send(Ask("GET", "/"));
  EXPECT_EQ(busy.Receive().status, 200);
  busy.Send(Ask("GET", "/never"));
  Answer answer;
  const auto begun = std::chrono::steady_clock::now();
  while (answer.status != 200 && std::chrono::steady_clock::now() - begun < kPatience) {
    answer = Fetch(port, Ask("GET", "/"));
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(idle.EndsWithin(kPatience));
  EXPECT_FALSE(busy.EndsWithin(milliseconds(100)));
}

// If all connections are known, one between requests gives way. One that is being answered does
// not.
TEST(Limits, AConnectionBetweenRequestsGivesWayInTheEnd) {
  ServerOptions options;
  options.connections_max = 2;
  Server server(options, Routes());
  ExpectTheIdleOneGivesWay(server.port());
}

// Otherwise followers and idle clients of one address, such as a tunnel's, would shut out all
// others of that address.
TEST(Limits, WhereAnAddressIsFullItsIdleConnectionGivesWayAndNoOtherAddresss) {
  ServerOptions options;
  options.connections_per_client_max = 2;
  Server server(options, Routes());
  From elsewhere("127.0.0.2", server.port());
  ExpectTheIdleOneGivesWay(server.port());
  pollfd ended{elsewhere.socket.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, 0), 0) << "another address's connection gave way";
}

TEST(Limits, RequestsOverTheRateAreRefused) {
  ServerOptions options;
  options.requests_per_second = 0.001;  // no request is granted again during this test
  options.requests_burst = 2;
  Server server(options, Routes());
  EXPECT_EQ(Fetch(server.port(), Ask("GET", "/")).status, 200);
  EXPECT_EQ(Fetch(server.port(), Ask("GET", "/")).status, 200);
  const Answer over = Fetch(server.port(), Ask("GET", "/"));
  EXPECT_EQ(over.status, 429);
  const int seconds = std::stoi(over.headers.at("retry-after"));
  EXPECT_GT(seconds, 0);
  EXPECT_LE(seconds, 1000);
}

TEST(Limits, GarbageIsRefusedAndTheServerGoesOn) {
  ServerOptions options;
  options.time.idle = std::chrono::minutes(10);  // does not end the connections in this test
  Server server(options, Routes());
  std::string noise;
  for (int i = 0; i < 4096; ++i) noise += static_cast<char>(i * 7919 % 251);
  for (const std::string& bytes :
       {noise, std::string("\0\0\0\0\r\n\r\n", 8), std::string("GET  / HTTP/1.1\r\n\r\n"),
        std::string("\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n")}) {
    SocketClient client(server.port());
    client.Send(bytes + "\r\n\r\n");
    EXPECT_EQ(client.Receive().status, 400);
    EXPECT_TRUE(client.EndsWithin(kPatience));
  }
  EXPECT_EQ(Fetch(server.port(), Ask("GET", "/")).status, 200);
}

}  // namespace
}  // namespace evald::http::test
