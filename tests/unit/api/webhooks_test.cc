// Webhooks: the queue without a clock, and deliveries to a receiver on loopback.
#include "orchestrator/api/webhooks.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/hmac.h>
#include <sys/socket.h>

#include <condition_variable>
#include <thread>

#include "api_case.h"
#include "base/file.h"
#include "http_server/server.h"
#include "orchestrator/api/webhook_queue.h"

namespace evald::test {
namespace {

using api::WebhookQueue;
using Outcome = WebhookQueue::Outcome;

WebhookQueue::Call Call(const std::string& id, bool ends_a_run = false) {
  return {id, "t", "{}", 0, ends_a_run};
}

// The ids of all calls that wait, in the order in which they are made.
std::vector<std::string> Drained(WebhookQueue* queue) {
  std::vector<std::string> ids;
  while (const auto call = queue->Next(0)) {
    ids.push_back(call->id);
    queue->Ended(Outcome::kDelivered, 0, 0);
  }
  return ids;
}

TEST(WebhookQueue, DelaysGrowToALimitAndThenItGivesUp) {
  WebhookQueue queue({10, 6, 1000, 5000});
  queue.Add("u", Call("a"));
  queue.Add("u", Call("b"));
  int64_t now_us = 0;
  const int64_t longest[] = {1000, 2000, 4000, 5000, 5000};
  for (const int64_t delay_us : longest) {
    ASSERT_EQ(queue.Next(now_us)->id, "a");
    EXPECT_FALSE(queue.Next(now_us));  // one at a time
    EXPECT_EQ(queue.DueAt(), -1);
    queue.Ended(Outcome::kTryAgain, now_us, 0.5);
    EXPECT_EQ(queue.DueAt(), now_us + delay_us * 3 / 4);
    EXPECT_FALSE(queue.Next(queue.DueAt() - 1));
    now_us = queue.DueAt();
  }
  EXPECT_EQ(queue.Next(now_us)->attempt, 6);
  queue.Ended(Outcome::kTryAgain, now_us, 0);
  EXPECT_EQ(queue.failed(), 1u);
  EXPECT_EQ(queue.Next(now_us)->id, "b");
  queue.Ended(Outcome::kDelivered, now_us, 0);
  EXPECT_EQ(queue.delivered(), 1u);
  EXPECT_EQ(queue.DueAt(), -1);
}

TEST(WebhookQueue, DropsTheOldestThatIsNotUnderWay) {
  WebhookQueue queue({3, 5, 1, 1});
  queue.Add("u", Call("a"));
  ASSERT_EQ(queue.Next(0)->id, "a");
  for (const char* id : {"b", "c", "d"}) queue.Add("u", Call(id));
  EXPECT_EQ(queue.dropped(), 1u);
  queue.Ended(Outcome::kDelivered, 0, 0);
  EXPECT_EQ(queue.Next(0)->id, "c");
}

TEST(WebhookQueue, ACallThatFailedIsNotDropped) {
  WebhookQueue queue({3, 5, 1, 1});
  queue.Add("u", Call("a"));
  ASSERT_EQ(queue.Next(0)->id, "a");
  queue.Ended(Outcome::kTryAgain, 0, 0);
  for (const char* id : {"b", "c", "d"}) queue.Add("u", Call(id));
  EXPECT_EQ(queue.dropped(), 1u);
  EXPECT_EQ(queue.Next(queue.DueAt())->id, "a");
  queue.Ended(Outcome::kDelivered, 0, 0);
  EXPECT_EQ(queue.Next(0)->id, "c");
}

TEST(WebhookQueue, AFloodDropsOnlyCallsOfItsOwnUser) {
  WebhookQueue queue({10, 5, 1, 1});
  queue.Add("ann", Call("a1"));
  queue.Add("ann", Call("a2"));
  for (int i = 0; i < 1000; ++i) queue.Add("bob", Call("b" + std::to_string(i)));
  queue.Add("", Call("w"));
  EXPECT_EQ(queue.waiting(), 10u);
  EXPECT_EQ(queue.dropped(), 993u);
  const std::vector<std::string> made = Drained(&queue);
  EXPECT_EQ(std::vector<std::string>(made.begin(), made.begin() + 5),
            (std::vector<std::string>{"a1", "b993", "w", "a2", "b994"}));
  EXPECT_EQ(queue.waiting(), 0u);
  EXPECT_EQ(queue.DueAt(), -1);
}

TEST(WebhookQueue, TheEndOfARunIsDroppedLast) {
  WebhookQueue queue({3, 5, 1, 1});
  queue.Add("u", Call("done", true));
  for (const char* id : {"paused", "queued", "running"}) queue.Add("u", Call(id));
  for (const char* id : {"failed", "cancelled"}) queue.Add("u", Call(id, true));
  queue.Add("u", Call("late"));
  EXPECT_EQ(queue.dropped(), 4u);
  EXPECT_EQ(Drained(&queue), (std::vector<std::string>{"done", "failed", "cancelled"}));
}

TEST(WebhookQueue, ACallThatFailedGoesFirstAfterwards) {
  WebhookQueue queue({10, 5, 1000, 1000});
  queue.Add("ann", Call("a"));
  queue.Add("bob", Call("b"));
  ASSERT_EQ(queue.Next(0)->id, "a");
  queue.Ended(Outcome::kTryAgain, 0, 0.5);
  EXPECT_FALSE(queue.Next(0));
  EXPECT_EQ(queue.Next(queue.DueAt())->id, "a");
}

http_client::Response Answered(int status) {
  http_client::Response response;
  response.status = status;
  return response;
}

TEST(WebhookQueue, ReadsAnswers) {
  for (const int status : {200, 202, 204})
    EXPECT_EQ(api::OutcomeOf(Answered(status)), Outcome::kDelivered);
  for (const int status : {408, 425, 429, 500, 503})
    EXPECT_EQ(api::OutcomeOf(Answered(status)), Outcome::kTryAgain);
  for (const int status : {301, 400, 401, 404, 410})
    EXPECT_EQ(api::OutcomeOf(Answered(status)), Outcome::kGiveUp);
  http_client::Response cut = Answered(200);
  cut.outcome = http_client::Outcome::kBroken;
  EXPECT_EQ(api::OutcomeOf(cut), Outcome::kTryAgain);
  cut.outcome = http_client::Outcome::kTooLong;
  EXPECT_EQ(api::OutcomeOf(cut), Outcome::kDelivered);
}

TEST(WebhookQueue, WaitsAsLongAsTheReceiverAsks) {
  WebhookQueue queue({10, 6, 1000, 5'000'000});
  queue.Add("u", Call("a"));
  ASSERT_TRUE(queue.Next(0));
  queue.Ended(Outcome::kTryAgain, 0, 0.5, 2);
  EXPECT_EQ(queue.DueAt(), 2'000'000);
  ASSERT_TRUE(queue.Next(queue.DueAt()));
  queue.Ended(Outcome::kTryAgain, 0, 0.5, 3600);
  EXPECT_EQ(queue.DueAt(), 5'000'000);
}

TEST(Webhooks, SignatureIsHmacOfTimeAndBody) {
  // RFC 4231's test case 2 has no place for the time. The expected value is an independent
  // computation of this text.
  const std::string text = "1700000000.{\"a\":1}";
  unsigned char digest[32];
  unsigned int bytes = 0;
  ::HMAC(::EVP_sha256(), "key", 3, reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest, &bytes);
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  EXPECT_EQ(WebhookSignature("key", 1700000000, "{\"a\":1}"), "t=1700000000,v1=" + hex);
}

TEST(Webhooks, ChoosesEvents) {
  EXPECT_TRUE(Wants({}, "run.state"));
  EXPECT_FALSE(Wants({}, "run.progress"));
  EXPECT_TRUE(Wants({"u", "", {"run."}}, "run.progress"));
  EXPECT_FALSE(Wants({"u", "", {"run.state"}}, "run.states"));
}

// A receiver that fails as often as the test says.
class Receiver {
 public:
  explicit Receiver(int failures) : failures_(failures) {
    http::Router router;
    router.Add({"POST", "/hook", http::Role::kNone,
                [this](const std::shared_ptr<const http::Request>& request,
                       const http::Responder& answer) {
                  const std::lock_guard lock(mutex_);
                  calls_.push_back(*request);
                  http::Response response;
                  response.status = failures_-- > 0 ? 503 : 204;
                  answer(std::move(response));
                  came_.notify_all();
                },
                1 << 20});
    server_ = std::make_unique<http::Server>(http::ServerOptions{}, std::move(router));
  }
  std::vector<http::Request> WaitFor(size_t count) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, std::chrono::seconds(60), [&] { return calls_.size() >= count; });
    return calls_;
  }
  std::string url() const { return server_->url() + "/hook"; }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  int failures_;
  std::vector<http::Request> calls_;
  std::unique_ptr<http::Server> server_;
};

TEST(Webhooks, AreDeliveredInOrderSignedAndRetried) {
  const TemporaryFolder folder;
  MemoryService service(folder.path());
  Receiver receiver(2);
  service.Emit("", "before", {});
  WebhookTarget target{receiver.url(), "secret"};
  target.first_delay = std::chrono::milliseconds(10);
  Webhooks webhooks(&service, {target});
  service.Emit("run-1", "run.progress", {{"generated", 1}});
  service.Emit("run-1", "run.state", {{"state", "done"}});
  service.Emit("run-2", "run.state", {{"state", "failed"}});
  const std::vector<http::Request> calls = receiver.WaitFor(4);
  ASSERT_EQ(calls.size(), 4u);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(calls[static_cast<size_t>(i)].headers.Get("Evald-Delivery"), "3");
  EXPECT_EQ(calls[3].headers.Get("Evald-Delivery"), "4");
  EXPECT_EQ(calls[3].headers.Get("Evald-Event"), "run.state");
  EXPECT_EQ(ParseJson(calls[3].body, "call")["data"]["state"], "failed");
  const std::string signature = calls[3].headers.Get("Evald-Signature");
  const int64_t seconds = std::stoll(signature.substr(2));
  EXPECT_EQ(signature, WebhookSignature("secret", seconds, calls[3].body));
  for (int i = 0; i < 6000 && webhooks.statistics().delivered < 2; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(webhooks.statistics().delivered, 2u);
  EXPECT_EQ(webhooks.statistics().waiting, 0u);
}

std::string SubmitFor(MemoryService* service, const std::string& user) {
  Submission submission;
  submission.yaml = "name: m";
  submission.user = user;
  std::string id;
  service->Submit(submission, [&](Answer<Submitted> answer) {
    id = std::get<Submitted>(answer).run.at("id").get<std::string>();
  });
  return id;
}

// The first call fails, so that 1,500 calls about bob's run come to wait before that about ann's.
TEST(Webhooks, ACallAboutAnotherUsersRunIsSecondInTurn) {
  const TemporaryFolder folder;
  MemoryService service(folder.path());
  const std::string bobs = SubmitFor(&service, "bob");
  const std::string anns = SubmitFor(&service, "ann");
  Receiver receiver(1);
  WebhookTarget target{receiver.url(), ""};
  target.first_delay = std::chrono::seconds(4);
  Webhooks webhooks(&service, {target});
  for (int i = 0; i < 1500; ++i) service.Emit(bobs, "run.state", {{"state", "paused"}});
  service.Emit(anns, "run.state", {{"state", "done"}});
  const std::vector<http::Request> calls = receiver.WaitFor(3);
  ASSERT_GE(calls.size(), 3u);
  EXPECT_EQ(calls[0].headers.Get("Evald-Delivery"), calls[1].headers.Get("Evald-Delivery"));
  EXPECT_EQ(ParseJson(calls[1].body, "call")["run"], bobs);
  EXPECT_EQ(ParseJson(calls[2].body, "call")["run"], anns);
  EXPECT_GE(webhooks.statistics().dropped, 500u);
}

TEST(Webhooks, AReceiverThatIsAwayHoldsNothingUp) {
  const TemporaryFolder folder;
  MemoryService service(folder.path());
  WebhookTarget target{"http://127.0.0.1:1/hook", ""};
  target.first_delay = std::chrono::milliseconds(1);
  target.attempts_max = 2;
  Webhooks webhooks(&service, {target});
  for (int i = 0; i < 5; ++i) service.Emit("", "worker", {});
  for (int i = 0; i < 6000 && webhooks.statistics().failed < 5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(webhooks.statistics().failed, 5u);
}

// The silent receiver is the first of the list, and never answers.
TEST(Webhooks, AReceiverThatDoesNotAnswerDelaysNoOther) {
  const TemporaryFolder folder;
  MemoryService service(folder.path());
  const UniqueFd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(silent.get(), name, bytes), 0);
  ASSERT_EQ(::listen(silent.get(), 8), 0);
  ASSERT_EQ(::getsockname(silent.get(), name, &bytes), 0);
  WebhookTarget first{fmt::format("http://127.0.0.1:{}/hook", ntohs(address.sin_port)), ""};
  first.timeout = std::chrono::minutes(10);
  Receiver receiver(0);
  Webhooks webhooks(&service, {first, {receiver.url(), ""}});
  for (int i = 0; i < 3; ++i) service.Emit("", "worker", {});
  EXPECT_EQ(receiver.WaitFor(3).size(), 3u);
  for (int i = 0; i < 6000 && webhooks.statistics().waiting == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(webhooks.statistics().waiting, 1u) << "the call to the silent one is under way";
}

TEST(Webhooks, RefuseOtherSchemes) {
  const TemporaryFolder folder;
  MemoryService service(folder.path());
  EXPECT_THROW(Webhooks(&service, {{"file:///etc/passwd"}}), Error);
}

}  // namespace
}  // namespace evald::test
