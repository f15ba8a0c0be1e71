// A judge as a metric of a document.
#include "metrics/judge/metric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/jsonl.h"
#include "specs.h"
#include "tests/unit/http_client/scripted_server.h"
#include "tests/unit/support/caught.h"

namespace evald {
namespace {

using http_client::test::Answer;
using http_client::test::ScriptedServer;
using test::JudgeEntry;
using test::PairArguments;
using test::RubricArguments;
using ::testing::HasSubstr;

PreparedDocument Essay() {
  PreparedDocument document;
  document.doc_id = 3;
  document.doc = {{"question", "Why?"}, {"other", "Because."}};
  document.target = "So.";
  return document;
}

std::string Completed(const std::string& text) {
  return ToLine({{"choices", {{{"message", {{"content", text}}}}}}});
}

// The score of a response by a judge that answers by the body of the call.
std::optional<double> Judged(const Json& arguments, const std::string& response, Json* detail,
                             const std::function<std::string(const std::string& body)>& answer,
                             std::vector<std::string>* bodies = nullptr) {
  ScriptedServer server([&](const std::string& request) {
    return Answer(200, Completed(answer(request.substr(request.find("\r\n\r\n") + 4))));
  });
  JudgeSettings settings;
  settings.base_url = server.url("/v1");
  settings.model = "m";
  JudgePanel panel(settings, {"", "run", "essays"});
  const JudgeMetric metric(JudgeEntry(arguments), &panel);
  std::optional<double> score;
  for (int i = 0; i < 3000 && !score; ++i) {
    panel.Begin(3);
    *detail = nullptr;
    score = metric.Score(Essay(), Essay().target, response, detail);
    if (!score) panel.Poll(std::chrono::milliseconds(20));
  }
  if (bodies != nullptr) *bodies = server.requests();
  return score;
}

TEST(JudgeMetric, RendersTheDocumentAndTheResponse) {
  const Json arguments =
      RubricArguments({{"prompt", "{{question}} {{response}} {{target}} {{doc.other}}"}});
  std::vector<std::string> bodies;
  Json detail;
  EXPECT_EQ(
      Judged(
          arguments, "Since.", &detail, [](const std::string&) { return "Score: 8"; }, &bodies),
      8);
  ASSERT_EQ(bodies.size(), 1u);
  EXPECT_THAT(bodies[0], HasSubstr("Why? Since. So. Because."));
  EXPECT_EQ(detail,
            (Json{{{"judge", "judge"},
                   {"answers", {{{"score", 8.0}, {"answer", "Score: 8"}, {"attempts", 1}}}}}}));
}

// A judge that always prefers the first answer is no judge: both orders are asked.
TEST(JudgeMetric, APairIsAskedInBothOrders) {
  const auto first = [](const std::string&) { return "Better: A"; };
  const auto honest = [](const std::string& body) {
    return body.find("A: Since.") != std::string::npos ? "Better: A" : "Better: B";
  };
  Json detail;
  std::vector<std::string> bodies;
  EXPECT_EQ(Judged(PairArguments(), "Since.", &detail, first, &bodies), 0.5);
  EXPECT_EQ(bodies.size(), 2u);
  EXPECT_EQ(detail[0]["answers"][1]["response_is"], "B");
  EXPECT_EQ(Judged(PairArguments(), "Since.", &detail, honest), 1);
  EXPECT_EQ(Judged(PairArguments({{"disagreement", "tie"}}), "Since.", &detail,
                   [](const std::string& body) {
                     return body.find("A: Since.") != std::string::npos ? "Better: A" : "Better: C";
                   }),
            0.5);
}

TEST(JudgeMetric, VotesHaveSeedsOfTheirOwn) {
  Json detail;
  const auto by_seed = [](const std::string& body) {
    return fmt::format("Score: {}", 1 + ParseJson(body, "body")["seed"].get<int>() % 4);
  };
  const Json arguments = RubricArguments({{"votes", 3}, {"temperature", 1}});
  EXPECT_EQ(Judged(arguments, "x", &detail, by_seed), (3 + 4 + 1) / 3.0);  // 1234, 1235, 1236
  EXPECT_EQ(detail[0]["answers"].size(), 3u);
}

TEST(JudgeMetric, DocumentsAreCheckedBeforeTheyAreAnswered) {
  const auto refusal = [](const Json& arguments) {
    return RefusalOf([&] { JudgeMetric(JudgeEntry(arguments), nullptr).Check(Essay()); });
  };
  EXPECT_EQ(refusal(RubricArguments()), "");
  EXPECT_THAT(refusal(RubricArguments({{"prompt", "{{qestion}} {{response}}"}})),
              HasSubstr("'qestion' is undefined"));
  EXPECT_THAT(refusal(RubricArguments({{"prompt", "{{qestion}} {{response}}"}})),
              HasSubstr("the document's fields: question, other"));
  EXPECT_THAT(refusal(RubricArguments({{"prompt", "{{answer_a}}"}})), HasSubstr("answer_a"));
  EXPECT_EQ(refusal(PairArguments()), "");
  EXPECT_THAT(refusal(PairArguments({{"prompt", "{{response}}"}})), HasSubstr("response"));
  EXPECT_THAT(refusal(PairArguments({{"reference", "gold"}})),
              HasSubstr("the document's field 'gold' is absent"));
}

TEST(JudgeMetric, VotesOfAGreedyJudgeAreRefused) {
  JudgeSettings settings;
  const auto refusal = [&](const Json& changes) {
    return RefusalOf([&] { CheckJudge(test::Rubric(changes), settings); });
  };
  EXPECT_EQ(refusal({{"votes", 1}}), "");
  EXPECT_EQ(refusal({{"votes", 3}, {"temperature", 0.5}}), "");
  EXPECT_THAT(refusal({{"votes", 3}}), HasSubstr("3 votes would be one and the same"));
  settings.temperature = 0.7;
  EXPECT_EQ(refusal({{"votes", 3}}), "");
}

TEST(JudgeMetric, AResponseThatIsTooLongForAPromptIsAnInputError) {
  JudgeSettings settings;
  settings.base_url = "http://127.0.0.1:9/v1";
  settings.model = "m";
  JudgePanel panel(settings, {"", "run", "essays"});
  const JudgeMetric metric(JudgeEntry(RubricArguments()), &panel);
  panel.Begin(3);
  Json detail;
  EXPECT_THAT(
      RefusalOf([&] { metric.Score(Essay(), "x", std::string(size_t{2} << 20, 'x'), &detail); }),
      HasSubstr("ask for shorter answers (max_gen_toks)"));
  EXPECT_EQ(panel.calls(), 0u);
}

}  // namespace
}  // namespace evald
