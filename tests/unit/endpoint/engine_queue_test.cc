// Requests on their way to an engine and back.
#include "worker/endpoint/engine_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "scripted_engine.h"

namespace evald::endpoint::test {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

class EngineQueueTest : public ::testing::Test {
 protected:
  // A request of `tokens` tokens that may generate as many.
  EngineWork Work(int tokens, std::promise<Finished>* answer) {
    EngineWork work;
    work.request.doc_id = 5;
    work.request.context_tokens.assign(static_cast<size_t>(tokens), 1);
    work.request.sampling.max_gen_toks = tokens;
    work.wanted = [this] { return wanted_.load(); };
    work.done = [answer](Finished finished) { answer->set_value(std::move(finished)); };
    return work;
  }
  bool Add(EngineQueue* queue, int tokens, std::promise<Finished>* answer) {
    std::vector<EngineWork> works;
    works.push_back(Work(tokens, answer));
    return queue->Add(std::move(works));
  }
  static Finished Get(std::promise<Finished>* answer) {
    auto future = answer->get_future();
    if (future.wait_for(kPatience) != std::future_status::ready)
      throw std::runtime_error("the queue has not answered");
    return future.get();
  }
  // Waits until the engine holds `count` requests: a request waits for the end of a step first.
  bool EngineHolds(size_t count) const {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (engine_.pending() != count && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return engine_.pending() == count;
  }
  // Waits until nothing is under way.
  static bool Empties(const EngineQueue& queue) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (queue.under_way() > 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return queue.under_way() == 0;
  }

  ScriptedEngine engine_;
  std::atomic<bool> wanted_{true};
  std::atomic<int> broken_{0};
};

TEST_F(EngineQueueTest, AnswersComeBack) {
  engine_.AnswerFromNowOn();
  EngineQueue queue(&engine_, {}, [&] { ++broken_; });
  std::promise<Finished> first, second;
  ASSERT_TRUE(Add(&queue, 3, &first));
  ASSERT_TRUE(Add(&queue, 3, &second));
  EXPECT_EQ(Get(&first).generation.text, "answer");
  EXPECT_EQ(Get(&second).generation.text, "answer");
  EXPECT_TRUE(Empties(queue));
  EXPECT_EQ(broken_, 0);
}

TEST_F(EngineQueueTest, TooManyRequestsOrTokensAreNotTaken) {
  EngineQueue queue(&engine_, {2, 100}, [] {});
  std::promise<Finished> first, second, third;
  EXPECT_TRUE(Add(&queue, 40, &first));
  EXPECT_FALSE(Add(&queue, 11, &third));  // 80 + 22 tokens
  EXPECT_TRUE(Add(&queue, 10, &second));
  EXPECT_FALSE(Add(&queue, 0, &third));  // the third request
  engine_.AnswerFromNowOn();
  Get(&first);
  Get(&second);
  ASSERT_TRUE(Empties(queue));
  EXPECT_TRUE(Add(&queue, 50, &third));
  Get(&third);
}

TEST_F(EngineQueueTest, SeveralAreTakenAllOrNone) {
  EngineQueue queue(&engine_, {2, 100}, [] {});
  std::promise<Finished> answers[3];
  std::vector<EngineWork> works;
  for (auto& answer : answers) works.push_back(Work(1, &answer));
  EXPECT_FALSE(queue.Add(std::move(works)));
  EXPECT_EQ(queue.under_way(), 0u);
}

TEST_F(EngineQueueTest, UnwantedRequestsAreForgotten) {
  EngineQueue queue(&engine_, {}, [] {});
  std::promise<Finished> answer;
  ASSERT_TRUE(Add(&queue, 3, &answer));
  wanted_ = false;
  EXPECT_THAT(Get(&answer).refused->what(), HasSubstr("the client has ended"));
  EXPECT_TRUE(Empties(queue));
  EXPECT_EQ(engine_.pending(), 0u);
}

TEST_F(EngineQueueTest, AnEngineThatCannotForgetAnswersInVain) {
  engine_.CannotCancel();
  EngineQueue queue(&engine_, {}, [] {});
  std::promise<Finished> answer;
  ASSERT_TRUE(Add(&queue, 3, &answer));
  wanted_ = false;
  EXPECT_TRUE(Get(&answer).refused);
  EXPECT_EQ(queue.under_way(), 1u);  // it counts for as long as the engine has it
  engine_.AnswerFromNowOn();         // a second call of `done` would throw
  EXPECT_TRUE(Empties(queue));
}

TEST_F(EngineQueueTest, ARefusalDoesNotNameADocument) {
  engine_.RefuseFromNowOn();
  EngineQueue queue(&engine_, {}, [] {});
  std::promise<Finished> answer;
  ASSERT_TRUE(Add(&queue, 3, &answer));
  EXPECT_STREQ(Get(&answer).refused->what(), "too odd");
}

TEST_F(EngineQueueTest, AFailureEndsAllRequestsAndLaterOnesAreServed) {
  EngineQueue queue(&engine_, {}, [&] { ++broken_; });
  std::promise<Finished> first, second, third;
  ASSERT_TRUE(Add(&queue, 3, &first));
  ASSERT_TRUE(Add(&queue, 3, &second));
  ASSERT_TRUE(EngineHolds(2));
  engine_.Fail(Error(ErrorKind::kInfrastructure, "no memory"));
  EXPECT_THAT(Get(&first).refused->what(), HasSubstr("no memory"));
  EXPECT_THAT(Get(&second).refused->what(), HasSubstr("no memory"));
  engine_.AnswerFromNowOn();
  ASSERT_TRUE(Add(&queue, 3, &third));
  EXPECT_EQ(Get(&third).generation.text, "answer");
  EXPECT_EQ(broken_, 0);
}

TEST_F(EngineQueueTest, ABrokenEngineEndsAllAndTakesNoMore) {
  EngineQueue queue(&engine_, {}, [&] { ++broken_; });
  std::promise<Finished> first, second;
  engine_.Break();
  ASSERT_TRUE(Add(&queue, 3, &first));
  EXPECT_TRUE(Get(&first).refused);
  EXPECT_FALSE(Add(&queue, 3, &second));
  EXPECT_EQ(broken_, 1);
}

TEST_F(EngineQueueTest, StoppingEndsAllRequests) {
  EngineQueue queue(&engine_, {}, [] {});
  std::promise<Finished> answer;
  ASSERT_TRUE(Add(&queue, 3, &answer));
  queue.Stop();
  EXPECT_THAT(Get(&answer).refused->what(), HasSubstr("the endpoint ends"));
  EXPECT_EQ(queue.under_way(), 0u);
}

}  // namespace
}  // namespace evald::endpoint::test
