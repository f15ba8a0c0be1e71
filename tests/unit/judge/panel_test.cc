// The calls of a judge: what is asked, how often, what is kept, and when the judge is given up.
#include "metrics/judge/panel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>

#include "base/file.h"
#include "base/jsonl.h"
#include "specs.h"
#include "tests/unit/http_client/scripted_server.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald {
namespace {

using http_client::test::Answer;
using http_client::test::Script;
using http_client::test::ScriptedServer;
using test::Rubric;
using ::testing::HasSubstr;
using ::testing::Not;

Script Says(const std::string& text, int tokens_in = 10, int tokens_out = 3) {
  const Json body = {
      {"choices",
       {{{"message", {{"role", "assistant"}, {"content", text}}}, {"finish_reason", "stop"}}}},
      {"usage", {{"prompt_tokens", tokens_in}, {"completion_tokens", tokens_out}}}};
  return Answer(200, ToLine(body));
}

Json BodyOf(const std::string& request) {
  return ParseJson(request.substr(request.find("\r\n\r\n") + 4), "request");
}

class PanelTest : public ::testing::Test {
 protected:
  // The number of the request, from 0, decides the answer.
  void Serve(const std::function<Script(int number)>& answer) {
    server_ = std::make_unique<ScriptedServer>(
        [this, answer](const std::string&) { return answer(count_++); });
    settings_.base_url = server_->url("/v1");
    settings_.model = "a-judge";
    settings_.timeout_s = 60;
    settings_.retries = 3;
  }

  std::unique_ptr<JudgePanel> Panel(const std::string& run = "r1") {
    return std::make_unique<JudgePanel>(
        settings_, JudgePanel::Place{scratch_.path() / "cache", run, "essays"});
  }

  JudgeQuestion Ask(const JudgeSpec& spec, const std::string& text = "Good?", int vote = 0) {
    return {&spec, {{{"role", "user"}, {"content", text}}}, false, vote};
  }

  // The verdict on one question, for document 5.
  JudgeVerdict VerdictOf(JudgePanel* panel, const JudgeQuestion& question) {
    panel->Begin(5);
    for (int i = 0; i < 3000; ++i) {
      if (const JudgeVerdict* verdict = panel->Verdict(question)) return *verdict;
      panel->Poll(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << "no verdict";
    return {};
  }

  std::vector<std::string> requests() const { return server_->requests(); }

  TemporaryFolder scratch_;
  JudgeSettings settings_;
  std::atomic<int> count_{0};
  std::unique_ptr<ScriptedServer> server_;
};

TEST_F(PanelTest, AsksForAChatCompletion) {
  Serve([](int) { return Says("Score: 7"); });
  const JudgeSpec spec = Rubric({{"max_tokens", 64}, {"response_format", {{"type", "text"}}}});
  const auto panel = Panel();
  const JudgeVerdict verdict = VerdictOf(panel.get(), Ask(spec, "Good?", 2));
  EXPECT_EQ(verdict.score, 7);
  EXPECT_EQ(verdict.text, "Score: 7");
  ASSERT_EQ(requests().size(), 1u);
  EXPECT_THAT(requests()[0], HasSubstr("POST /v1/chat/completions HTTP/1.1"));
  EXPECT_THAT(requests()[0], Not(HasSubstr("Authorization")));
  EXPECT_EQ(BodyOf(requests()[0]), (Json{{"model", "a-judge"},
                                         {"messages", {{{"role", "user"}, {"content", "Good?"}}}},
                                         {"max_tokens", 64},
                                         {"temperature", 0.0},
                                         {"seed", 1236},
                                         {"response_format", {{"type", "text"}}}}));
  EXPECT_EQ(panel->Usage(), (JudgeUsage{.requests = 1, .tokens_in = 10, .tokens_out = 3}));
}

TEST_F(PanelTest, AnAnswerIsKeptAndNeverAskedForAgain) {
  Serve([](int) { return Says("Score: 7"); });
  const JudgeSpec spec = Rubric();
  VerdictOf(Panel().get(), Ask(spec));
  const auto again = Panel();
  EXPECT_EQ(VerdictOf(again.get(), Ask(spec)).score, 7);
  EXPECT_EQ(again->Usage(), (JudgeUsage{.requests = 1, .tokens_in = 10, .tokens_out = 3}))
      << "the same run paid for it";
  const auto other = Panel("r2");
  EXPECT_EQ(VerdictOf(other.get(), Ask(spec)).score, 7);
  EXPECT_EQ(other->Usage(),
            (JudgeUsage{.cached = 1, .cached_tokens_in = 10, .cached_tokens_out = 3}));
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(PanelTest, ADamagedFileIsAskedForAgain) {
  Serve([](int) { return Says("Score: 7"); });
  const JudgeSpec spec = Rubric();
  VerdictOf(Panel().get(), Ask(spec));
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(scratch_.path() / "cache")) {
    if (entry.is_regular_file()) WriteFileAtomic(entry.path(), "{\"format\":1");
  }
  EXPECT_EQ(VerdictOf(Panel().get(), Ask(spec)).score, 7);
  EXPECT_EQ(requests().size(), 2u);
}

TEST_F(PanelTest, EqualQuestionsAreAskedOnce) {
  Serve([](int) { return Says("Score: 7"); });
  const JudgeSpec spec = Rubric();
  const JudgeSpec named = JudgeSpecOf(test::JudgeEntry(test::RubricArguments(), "other"));
  const auto panel = Panel();
  panel->Begin(1);
  EXPECT_EQ(panel->Verdict(Ask(spec)), nullptr);
  EXPECT_EQ(panel->Verdict(Ask(named)), nullptr);
  EXPECT_EQ(panel->TakeMissing().size(), 2u);
  EXPECT_EQ(panel->calls(), 1u);
  EXPECT_EQ(VerdictOf(panel.get(), Ask(named)).score, 7);
  EXPECT_EQ(requests().size(), 1u);
  EXPECT_EQ(panel->Usage().cached, 1) << "document 1 paid for it, and this is document 5";
}

// With the next seed of all votes.
TEST_F(PanelTest, AnswersWithoutAVerdictAreAskedForAgain) {
  Serve([](int number) {
    if (number == 0) return Says("It is quite good.");
    return number == 1 ? Says("<html>busy</html>") : Says("Score: 4");
  });
  const JudgeSpec spec = Rubric({{"votes", 3}});
  const auto panel = Panel();
  const JudgeVerdict verdict = VerdictOf(panel.get(), Ask(spec, "Good?", 1));
  EXPECT_EQ(verdict.score, 4);
  EXPECT_EQ(verdict.attempts, 3);
  ASSERT_EQ(requests().size(), 3u);
  EXPECT_EQ(BodyOf(requests()[0])["seed"], 1235);
  EXPECT_EQ(BodyOf(requests()[1])["seed"], 1238);
  EXPECT_EQ(BodyOf(requests()[2])["seed"], 1241);
  EXPECT_EQ(panel->Usage().requests, 3) << "all were paid for";
}

TEST_F(PanelTest, AfterSomeAnswersTheDocumentHasNoVerdict) {
  Serve([](int) { return Says(""); });
  const JudgeSpec spec = Rubric({{"reasks", 1}});
  const JudgeVerdict verdict = VerdictOf(Panel().get(), Ask(spec));
  EXPECT_FALSE(verdict.score);
  EXPECT_THAT(verdict.why, HasSubstr("no verdict (2 read): the answer is empty"));
  EXPECT_EQ(requests().size(), 2u);
  // Another try asks with further seeds, since the answers before are known.
  EXPECT_FALSE(VerdictOf(Panel().get(), Ask(spec)).score);
  EXPECT_EQ(requests().size(), 4u);
  EXPECT_EQ(BodyOf(requests()[3])["seed"], 1237);
}

TEST_F(PanelTest, ATaskMayScoreThem) {
  Serve([](int) { return Says("Well."); });
  const JudgeSpec spec = Rubric({{"reasks", 0}, {"unparsed", 2}});
  const auto panel = Panel();
  const JudgeVerdict verdict = VerdictOf(panel.get(), Ask(spec));
  EXPECT_EQ(verdict.score, 2);
  EXPECT_TRUE(verdict.unparsed);
  EXPECT_EQ(panel->Usage().unparsed, 1);
}

// A page of a proxy is no answer of the judge.
TEST_F(PanelTest, APageInPlaceOfACompletionNeverScores) {
  Serve([](int) { return Answer(200, "<html><body>Sign in</body></html>"); });
  const JudgeSpec spec = Rubric({{"reasks", 1}, {"unparsed", 2}});
  const JudgeVerdict verdict = VerdictOf(Panel().get(), Ask(spec));
  EXPECT_FALSE(verdict.score);
  EXPECT_THAT(verdict.why, HasSubstr("is no chat completion"));
  EXPECT_EQ(requests().size(), 2u);
}

TEST_F(PanelTest, AHugeAnswerIsCutOffAndAskedForAgain) {
  Serve([](int number) {
    return number == 0 ? Answer(200, std::string(size_t{5} << 20, 'x')) : Says("Score: 3");
  });
  const JudgeSpec spec = Rubric();
  EXPECT_EQ(VerdictOf(Panel().get(), Ask(spec)).score, 3);
}

TEST_F(PanelTest, FailuresThatMayPassAreTriedAgain) {
  Serve([](int number) -> Script {
    switch (number) {
      case 0:
        return Answer(429, "{}", "Retry-After: 0\r\n");
      case 1:
        return Answer(500, "oops");
      case 2:
        return {.bytes = "HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{", .close = true};
      default:
        return Says("Score: 6");
    }
  });
  const JudgeSpec spec = Rubric();
  EXPECT_EQ(VerdictOf(Panel().get(), Ask(spec)).score, 6);
  EXPECT_EQ(requests().size(), 4u);
  EXPECT_EQ(BodyOf(requests()[3])["seed"], 1234) << "nothing was answered";
}

TEST_F(PanelTest, AHangIsCutOffAndTriedAgain) {
  Serve([](int number) -> Script {
    if (number == 0) return {.bytes = "", .pause = std::chrono::seconds(4), .rest = "x"};
    return Says("Score: 6");
  });
  settings_.timeout_s = 0.3;
  const JudgeSpec spec = Rubric();
  EXPECT_EQ(VerdictOf(Panel().get(), Ask(spec)).score, 6);
}

TEST_F(PanelTest, ACallFailsAfterItsRetries) {
  Serve([](int) { return Answer(503, "full"); });
  settings_.retries = 1;
  const JudgeSpec spec = Rubric({{"unparsed", 2}});
  const JudgeVerdict verdict = VerdictOf(Panel().get(), Ask(spec));
  EXPECT_FALSE(verdict.score) << "a judge that fails never scores";
  EXPECT_THAT(verdict.why, HasSubstr("answered with status 503: full"));
  EXPECT_EQ(requests().size(), 2u);
}

TEST_F(PanelTest, ARefusedPromptConcernsOneDocument) {
  Serve([](int number) {
    return number == 0 ? Answer(400, R"({"error":{"message":"the prompt is too long"}})")
                       : Says("Score: 6");
  });
  const JudgeSpec spec = Rubric();
  const auto panel = Panel();
  EXPECT_THAT(VerdictOf(panel.get(), Ask(spec)).why,
              HasSubstr("status 400: the prompt is too long"));
  EXPECT_EQ(panel->stopped(), "");
  EXPECT_EQ(VerdictOf(panel.get(), Ask(spec, "Shorter?")).score, 6);
}

TEST_F(PanelTest, ARefusedKeyEndsAllAndIsNotShown) {
  Serve([](int) { return Answer(401, R"({"error":{"message":"wrong key s3cret-key"}})"); });
  ::setenv("EVALD_JUDGE_TEST_KEY", "s3cret-key", 1);
  settings_.api_key_env = "EVALD_JUDGE_TEST_KEY";
  const JudgeSpec spec = Rubric();
  const auto panel = Panel();
  const JudgeVerdict verdict = VerdictOf(panel.get(), Ask(spec));
  EXPECT_THAT(verdict.why, HasSubstr("status 401: wrong key ***"));
  EXPECT_THAT(verdict.why, Not(HasSubstr("s3cret")));
  EXPECT_THAT(panel->stopped(), HasSubstr("status 401"));
  EXPECT_FALSE(VerdictOf(panel.get(), Ask(spec, "More?")).score);
  ASSERT_EQ(requests().size(), 1u);
  EXPECT_THAT(requests()[0], HasSubstr("Authorization: Bearer s3cret-key"));
}

// A local server's dummy key may stand in any answer.
TEST_F(PanelTest, AShortKeyChangesNoAnswer) {
  for (const char* key : {"7", "a", "0", "1", "correct"}) {
    Serve([](int) { return Says("Score: 10. correct"); });
    ::setenv("EVALD_JUDGE_TEST_KEY", key, 1);
    settings_.api_key_env = "EVALD_JUDGE_TEST_KEY";
    const JudgeSpec spec = Rubric();
    EXPECT_EQ(VerdictOf(Panel().get(), Ask(spec, key)).score, 10) << key;
  }
}

TEST_F(PanelTest, AnAnswerThatQuotesTheKeyIsNotKept) {
  const std::string key = "s3cret\"key/\u00e9";
  Serve([&](int) { return Says("Score: 6 " + key); });
  ::setenv("EVALD_JUDGE_TEST_KEY", key.c_str(), 1);
  settings_.api_key_env = "EVALD_JUDGE_TEST_KEY";
  const JudgeSpec spec = Rubric();
  const JudgeVerdict verdict = VerdictOf(Panel().get(), Ask(spec));
  EXPECT_FALSE(verdict.score);
  EXPECT_THAT(verdict.why, HasSubstr("quotes the judge's key"));
}

TEST(JudgeSecret, IsHiddenAsJsonWritesIt) {
  const Secret secret("s3cret\"key/\u00e9&");
  for (const char* text :
       {"s3cret\"key/\u00e9&", "s3cret\\\"key/\u00e9&", "s3cret\\\"key\\/\u00e9&",
        "s3cret\\\"key/\\u00e9&", "s3cret\\\"key/\u00e9\\u0026"})
    EXPECT_EQ(secret.Hide(std::string("<") + text + ">"), "<***>") << text;
  EXPECT_EQ(Secret("short").Hide("a short text"), "a short text");
}

TEST_F(PanelTest, WithoutItsKeyNothingIsAsked) {
  Serve([](int) { return Says("Score: 6"); });
  ::unsetenv("EVALD_JUDGE_NO_KEY");
  settings_.api_key_env = "EVALD_JUDGE_NO_KEY";
  const JudgeSpec spec = Rubric();
  EXPECT_THAT(VerdictOf(Panel().get(), Ask(spec)).why, HasSubstr("EVALD_JUDGE_NO_KEY"));
  EXPECT_EQ(requests().size(), 0u);
}

TEST_F(PanelTest, ARedirectIsNotFollowed) {
  Serve([](int) { return Answer(302, "", "Location: http://127.0.0.1:9/\r\n"); });
  const JudgeSpec spec = Rubric();
  const auto panel = Panel();
  EXPECT_THAT(VerdictOf(panel.get(), Ask(spec)).why, HasSubstr("a redirect to http://127.0.0.1:9"));
  EXPECT_NE(panel->stopped(), "");
}

// Else each of ten thousand documents would wait for its retries.
TEST_F(PanelTest, AJudgeThatNeverAnswersIsGivenUp) {
  Serve([](int) { return Answer(500, "down"); });
  settings_.retries = 0;
  settings_.concurrency = 1;
  const JudgeSpec spec = Rubric();
  const auto panel = Panel();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(VerdictOf(panel.get(), Ask(spec, "Question " + std::to_string(i))).score);
  }
  EXPECT_THAT(panel->stopped(), HasSubstr("status 500: down"));
  EXPECT_EQ(requests().size(), 3u);
}

TEST_F(PanelTest, NoMoreCallsAreUnderWayThanTheSettingsSay) {
  std::atomic<int> now{0}, most{0};
  server_ = std::make_unique<ScriptedServer>([&](const std::string&) {
    most = std::max<int>(most, ++now);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    --now;
    return Says("Score: 7");
  });
  settings_.base_url = server_->url("/v1");
  settings_.model = "m";
  settings_.concurrency = 3;
  const JudgeSpec spec = Rubric();
  const auto panel = Panel();
  panel->Begin(0);
  for (int i = 0; i < 12; ++i) panel->Verdict(Ask(spec, "Question " + std::to_string(i)));
  EXPECT_EQ(panel->calls(), 12u);
  while (panel->calls() > 0) panel->Poll(std::chrono::milliseconds(20));
  EXPECT_LE(most, 3);
  EXPECT_GE(most, 2);
  EXPECT_EQ(panel->Usage().requests, 12);
}

}  // namespace
}  // namespace evald
