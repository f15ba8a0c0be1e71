// Server-Sent Events: order, resume, many followers.
#include "orchestrator/api/events.h"

#include <set>

#include "api_case.h"

namespace evald::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// The ids of the frames in `text`, in order.
std::vector<int> Ids(const std::string& text) {
  std::vector<int> ids;
  for (size_t at = text.find("id: "); at != std::string::npos; at = text.find("\nid: ", at + 1)) {
    ids.push_back(std::stoi(text.substr(text.find(' ', at) + 1, 10)));
  }
  return ids;
}

std::vector<int> UpTo(int last) {
  std::vector<int> ids;
  for (int i = 1; i <= last; ++i) ids.push_back(i);
  return ids;
}

class EventsTest : public ApiCase {
 protected:
  std::unique_ptr<http::test::SocketClient> Follow(const std::string& target,
                                                   const std::string& headers = "") {
    auto client = std::make_unique<http::test::SocketClient>(server_->port());
    client->Send(http::test::Ask("GET", target, headers));
    EXPECT_THAT(client->ReceiveUntil("retry: 2000\n\n"), HasSubstr("200 OK"));
    return client;
  }
};

TEST_F(EventsTest, ComeAsTheyHappen) {
  const auto client = Follow("/v1/events");
  service_.Emit("run-1", "task.done", {{"task", "sums"}});
  const std::string text = client->ReceiveUntil("\n\n");
  EXPECT_THAT(text, HasSubstr("id: 1\nevent: task.done\ndata: "
                              "{\"sequence\":1,\"run\":\"run-1\",\"type\":\"task.done\",\"data\":{"
                              "\"task\":\"sums\"}}\n"));
}

TEST_F(EventsTest, ResumeAfterTheLastOneSeen) {
  for (int i = 0; i < 5; ++i) service_.Emit("", "worker", {{"i", i}});
  const auto client = Follow("/v1/events", "Last-Event-ID: 3\r\n");
  const std::string text = client->ReceiveUntil("\"i\":4}}");
  EXPECT_THAT(text, HasSubstr("id: 4\n"));
  EXPECT_THAT(text, HasSubstr("id: 5\n"));
  EXPECT_THAT(text, Not(HasSubstr("id: 3\n")));
  const auto now = Follow("/v1/events");
  service_.Emit("", "worker", {{"i", 5}});
  EXPECT_THAT(now->ReceiveUntil("\"i\":5}}"), Not(HasSubstr("id: 5\n")));
}

TEST_F(EventsTest, OfARunComeFromItsBeginning) {
  const std::string one = Submit(), two = Submit();
  service_.Emit(one, "run.progress", {{"generated", 1}});
  const auto client = Follow("/v1/runs/" + one + "/events");
  service_.Emit(two, "run.progress", {{"generated", 2}});
  service_.Emit(one, "run.progress", {{"generated", 3}});
  const std::string text = client->ReceiveUntil("\"generated\":3}}");
  EXPECT_THAT(text, HasSubstr("\"state\":\"queued\""));
  EXPECT_THAT(text, HasSubstr("\"generated\":1"));
  EXPECT_THAT(text, Not(HasSubstr(two)));
}

TEST_F(EventsTest, RefuseOddStarts) {
  for (const char* id : {"x", "-1", "1.5", "99999999999999999999"}) {
    EXPECT_EQ(Get("/v1/events", std::string("Last-Event-ID: ") + id + "\r\n").status, 400) << id;
  }
  EXPECT_EQ(Get("/v1/events?after=x").status, 400);
  EXPECT_EQ(Get("/v1/runs/none/events").status, 404);
}

TEST_F(EventsTest, AreServedFromMemoryToManyAndNoneIsLost) {
  constexpr int kFollowers = 100, kEvents = 1000;
  std::vector<std::unique_ptr<http::test::SocketClient>> clients;
  for (int i = 0; i < kFollowers; ++i) clients.push_back(Follow("/v1/events?after=0"));
  const int asked = service_.asked_events();
  for (int i = 0; i < kEvents; ++i) service_.Emit("", "worker", {{"i", i}});
  for (const auto& client : clients) {
    std::string text;
    while (text.find(fmt::format("id: {}\n", kEvents)) == std::string::npos) {
      const std::string more = client->ReceiveUntil("\n\n");
      ASSERT_FALSE(more.empty());
      text += more;
    }
    EXPECT_EQ(Ids(text), UpTo(kEvents));
  }
  EXPECT_LT(service_.asked_events() - asked, kEvents * 3);  // not once for each follower
}

// Pulls everything that the source has.
std::string Drain(http::EventSource* source) {
  std::string all;
  for (std::string piece; !(piece = source->Next(10'000)).empty();) all += piece;
  return all;
}

TEST(EventHub, OnesThatLeftTheRingComeFromTheService) {
  const TemporaryFolder folder;
  MemoryService service(folder.path());
  api::EventHub hub(&service);
  const std::string large(10'000, 'x');
  for (int i = 0; i < 1000; ++i) service.Emit(i % 2 == 0 ? "a" : "b", "t", {{"text", large}});
  hub.Poll();
  const auto all = hub.Follow("", 0);
  const auto of_b = hub.Follow("b", 100);
  std::vector<int> even_after_100;
  for (int i = 102; i <= 1000; i += 2) even_after_100.push_back(i);
  EXPECT_EQ(Ids(Drain(all.get())), UpTo(1000));
  EXPECT_EQ(Ids(Drain(of_b.get())), even_after_100);
  service.Emit("b", "t", {});
  hub.Poll();
  EXPECT_THAT(Drain(of_b.get()), HasSubstr("id: 1001\n"));
}

TEST(EventHub, TakesALimitedNumberOfFollowers) {
  const TemporaryFolder folder;
  MemoryService service(folder.path());
  api::EventHub hub(&service);
  std::vector<std::shared_ptr<http::EventSource>> followers;
  for (size_t i = 0; i < api::EventHub::kFollowersMax; ++i) followers.push_back(hub.Follow("", 0));
  EXPECT_EQ(hub.Follow("", 0), nullptr);
  followers.pop_back();
  EXPECT_NE(hub.Follow("", 0), nullptr);
}

}  // namespace
}  // namespace evald::test
