#include "worker/server/scoring_way.h"

#include "worker/server/self_test.h"

namespace evald::server {
namespace {

class Echo : public ScoringWay {
 public:
  explicit Echo(const CompletionsStyle& style) : style_(style) {}
  const char* name() const override { return "echo"; }
  const char* path() const override { return "/v1/completions"; }
  bool Takes(const ScoreWindow&) const override { return true; }
  bool complete() const override { return true; }
  bool echoes() const override { return true; }
  Json Body(const std::vector<const ScoreWindow*>& windows) const override {
    return ScoreBody(style_, PromptOf(*windows[0]));
  }
  std::vector<std::optional<Score>> Read(const std::vector<const ScoreWindow*>& windows,
                                         std::string_view body) const override {
    const size_t end = windows[0]->tokens.size() + 1;
    const Completion completion = ParseCompletion(body);
    RequireSameModel(completion, style_);
    Score score;
    score.logprob =
        SumLogprobs(completion, end - windows[0]->targets.size(), end, &score.is_greedy);
    return {score};
  }

 private:
  CompletionsStyle style_;
};

}  // namespace

std::unique_ptr<ScoringWay> EchoWay(const CompletionsStyle& style) {
  return std::make_unique<Echo>(style);
}

std::vector<int32_t> PromptOf(const ScoreWindow& window) {
  std::vector<int32_t> prompt = window.tokens;
  prompt.push_back(window.targets.back());
  return prompt;
}

}  // namespace evald::server
