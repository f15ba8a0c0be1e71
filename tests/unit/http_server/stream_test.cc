// Event streams over real sockets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "http_server/event_stream.h"
#include "http_server/server.h"
#include "socket_client.h"

namespace evald::http::test {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// A source of given texts. Everything runs on the server's thread.
class Words : public EventSource {
 public:
  std::string Next(size_t) override {
    ++asked;
    if (endless) return std::string(60'000, 'x');
    return std::exchange(text, "");
  }
  void OnMore(std::function<void()> wake) override { wake_ = std::move(wake); }
  void Say(const std::string& more) {
    text += more;
    if (wake_) wake_();
  }
  bool over() const override { return ends && text.empty(); }
  std::string text;
  bool endless = false;
  bool ends = false;
  int asked = 0;

 private:
  std::function<void()> wake_;
};

class StreamTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options) {
    Router router;
    router.Add({"GET", "/events", Role::kRead, [this](const auto&, const Responder& answer) {
                  Response response;
                  response.events = words_;
                  answer(std::move(response));
                }});
    server_ = std::make_unique<Server>(options, std::move(router));
  }
  void Say(const std::string& text) {
    server_->Post([=, this] { words_->Say(text); });
  }
  Statistics Count() {
    std::promise<Statistics> promise;
    server_->Post([&] { promise.set_value(server_->statistics()); });
    return promise.get_future().get();
  }
  std::shared_ptr<Words> words_ = std::make_shared<Words>();
  std::unique_ptr<Server> server_;
};

TEST_F(StreamTest, SendsWhatComes) {
  Start({});
  SocketClient client(server_->port());
  client.Send(Ask("GET", "/events"));
  const std::string head = client.ReceiveUntil("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked"));
  Say("id: 1\ndata: a\n\n");
  EXPECT_EQ(client.ReceiveUntil("a\n\n\r\n"), "f\r\nid: 1\ndata: a\n\n\r\n");
  Say("id: 2\ndata: b\n\n");
  EXPECT_THAT(client.ReceiveUntil("b\n\n\r\n"), HasSubstr("data: b"));
  EXPECT_EQ(Count().event_streams, 1u);
}

TEST_F(StreamTest, IsNotChunkedForHttp10) {
  Start({});
  SocketClient client(server_->port());
  client.Send("GET /events HTTP/1.0\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(client.ReceiveUntil("\r\n\r\n"), ::testing::Not(HasSubstr("chunked")));
  Say("data: a\n\n");
  EXPECT_EQ(client.ReceiveUntil("\n\n"), "data: a\n\n");
}

TEST_F(StreamTest, EndsIfItsSourceDoes) {
  Start({});
  SocketClient client(server_->port());
  client.Send(Ask("GET", "/events"));
  client.ReceiveUntil("\r\n\r\n");
  server_->Post([this] {
    words_->ends = true;
    words_->Say("data: last\n\n");
  });
  EXPECT_EQ(client.ReceiveUntil("0\r\n\r\n"), "c\r\ndata: last\n\n\r\n0\r\n\r\n");
  EXPECT_TRUE(client.EndsWithin(kPatience));
}

TEST_F(StreamTest, SaysThatItLives) {
  ServerOptions options;
  options.time.keep_alive = milliseconds(50);
  Start(options);
  SocketClient client(server_->port());
  client.Send(Ask("GET", "/events"));
  EXPECT_THAT(client.ReceiveUntil(": still here\n\n"), HasSubstr(": still here"));
  EXPECT_THAT(client.ReceiveUntil(": still here\n\n"), HasSubstr(": still here"));
}

TEST_F(StreamTest, NoticesThatAFollowerLeft) {
  Start({});
  {
    SocketClient client(server_->port());
    client.Send(Ask("GET", "/events"));
    client.ReceiveUntil("\r\n\r\n");
  }
  for (int i = 0; i < 6000 && Count().connections > 0; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(Count().event_streams, 0u);
  EXPECT_EQ(Count().connections, 0u);
}

TEST_F(StreamTest, AFollowerWhoDoesNotReadIsDroppedAndAsksForNoMore) {
  words_->endless = true;
  ServerOptions options;
  options.time.write = milliseconds(300);
  Start(options);
  SocketClient client(server_->port());
  client.ShrinkReceiveBuffer();
  client.Send(Ask("GET", "/events"));
  for (int i = 0; i < 6000 && Count().timeouts_total == 0; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(Count().timeouts_total, 1u);
  EXPECT_LT(words_->asked, 100);  // as much as the kernel's buffers hold
}

TEST_F(StreamTest, EndsWithTheServer) {
  Start({});
  SocketClient client(server_->port());
  client.Send(Ask("GET", "/events"));
  client.ReceiveUntil("\r\n\r\n");
  const auto begun = std::chrono::steady_clock::now();
  server_->Stop(std::chrono::seconds(600));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kPatience) << "it waited for a follower";
  EXPECT_TRUE(client.EndsWithin(kPatience));
}

// Streams of users with tokens. Each connection stays open.
class BoundedStreams : public StreamTest {
 protected:
  void StartWith(ServerOptions options) {
    options.tokens.Add("ada", Role::kRead, "the-token-of-ada");
    options.tokens.Add("bob", Role::kRead, "the-token-of-bob");
    Start(std::move(options));
  }
  // The answer's status and header.
  std::string Follow(const std::string& user) {
    clients_.push_back(std::make_unique<SocketClient>(server_->port()));
    clients_.back()->Send(
        Ask("GET", "/events", "Authorization: Bearer the-token-of-" + user + "\r\n"));
    return clients_.back()->ReceiveUntil("\r\n\r\n");
  }
  std::string FollowInTheEnd(const std::string& user) {
    std::string answer;
    for (int i = 0; i < 600 && answer.find(" 200 ") == std::string::npos; ++i) {
      answer = Follow(user);
      std::this_thread::sleep_for(milliseconds(10));
    }
    return answer;
  }
  std::vector<std::unique_ptr<SocketClient>> clients_;
};

TEST_F(BoundedStreams, OneTokenHasSoManyAndAnotherItsOwn) {
  ServerOptions options;
  options.streams_per_token_max = 2;
  StartWith(options);
  EXPECT_THAT(Follow("ada"), HasSubstr(" 200 "));
  EXPECT_THAT(Follow("ada"), HasSubstr(" 200 "));
  const std::string refused = Follow("ada");
  EXPECT_THAT(refused, HasSubstr(" 429 "));
  EXPECT_THAT(refused, HasSubstr("Retry-After: 1"));
  EXPECT_THAT(Follow("bob"), HasSubstr(" 200 "));
  for (int i = 0; i < 600 && Count().event_streams != 3; ++i)
    std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(Count().event_streams, 3u);
  clients_.erase(clients_.begin());
  EXPECT_THAT(FollowInTheEnd("ada"), HasSubstr(" 200 ")) << "one that ended still counts";
}

TEST_F(BoundedStreams, SomeConnectionsOfAnAddressAreLeftToRequests) {
  ServerOptions options;
  options.connections_per_client_max = 6;  // three of them are left
  StartWith(options);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Follow(i % 2 ? "ada" : "bob"), HasSubstr(" 200 ")) << i;
  EXPECT_THAT(Follow("ada"), HasSubstr(" 429 "));
  EXPECT_THAT(Follow("bob"), HasSubstr(" 429 "));
}

TEST_F(BoundedStreams, SomeConnectionsOfAllAreLeftToRequests) {
  ServerOptions options;
  options.connections_max = 4;
  StartWith(options);
  EXPECT_THAT(Follow("ada"), HasSubstr(" 200 "));
  EXPECT_THAT(Follow("bob"), HasSubstr(" 200 "));
  EXPECT_THAT(Follow("bob"), HasSubstr(" 429 "));
}

TEST(EventFrame, HoldsNoStrayLines) {
  EXPECT_EQ(EventFrame(7, "run.state", "{}"), "id: 7\nevent: run.state\ndata: {}\n\n");
  EXPECT_EQ(EventFrame(7, "a\nid: 9", "b\r\nc\n"),
            "id: 7\nevent: a id: 9\ndata: b\ndata: c\ndata: \n\n");
}

}  // namespace
}  // namespace evald::http::test
