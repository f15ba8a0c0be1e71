#include "worker/server/determinism_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/jsonl.h"
#include "evald/error.h"
#include "http_client/transfers.h"
#include "worker/parity/texts.h"

namespace evald::server {
namespace {

constexpr const char* kPath = "/v1/completions";
constexpr int kTokens = 16;
constexpr size_t kAnswerBytes = 1 << 20;
constexpr std::chrono::milliseconds kTimeout{120'000}, kPoll{100};

// A text several times, so that prompts have many lengths.
std::vector<std::string> Prompts() {
  std::vector<std::string> prompts = parity::Texts();
  const size_t texts = prompts.size();
  for (size_t i = 0; i < texts; ++i) {
    std::string longer;
    for (size_t times = 0; times <= 2 * i; ++times) longer += prompts[i] + "\n";
    prompts.push_back(std::move(longer));
  }
  return prompts;
}

std::string Body(const CompletionsStyle& style, const Tokenizer* tokenizer,
                 const std::string& prompt) {
  Json body = style.extra;
  body["model"] = style.model;
  body["prompt"] = prompt;
  if (style.tokens && tokenizer != nullptr) body["prompt"] = tokenizer->Encode(prompt, true);
  body["max_tokens"] = kTokens;
  body["temperature"] = 0.0;
  body["logprobs"] = 1;
  return ToLine(body);
}

// The part of a reply that only the model decides.
std::string AnswerIn(const http_client::Response& reply) {
  if (!reply.ok()) throw Error(ErrorKind::kInfrastructure, WhyNot(reply));
  const Json choice =
      Field<std::vector<Json>>(ParseJson(reply.body, kPath), "choices", kPath).at(0);
  return ToLine({choice.value("text", Json()), choice.value("logprobs", Json())});
}

class Probe {
 public:
  Probe(Server* server, const CompletionsStyle& style, const Tokenizer* tokenizer)
      : server_(server) {
    for (const std::string& prompt : Prompts()) bodies_.push_back(Body(style, tokenizer, prompt));
  }

  std::vector<std::string> Alone() {
    std::vector<std::string> answers;
    for (const std::string& body : bodies_)
      answers.push_back(AnswerIn(server_->Ask(kPath, ParseJson(body, "a request"), kTimeout)));
    return answers;
  }

  std::vector<std::string> Together(bool reversed) {
    http_client::Transfers calls;
    for (size_t i = 0; i < bodies_.size(); ++i) {
      const size_t id = reversed ? bodies_.size() - 1 - i : i;
      calls.Start(id, server_->Post(kPath, bodies_[id], kTimeout, kAnswerBytes));
    }
    std::vector<std::string> answers(bodies_.size());
    while (calls.pending() > 0) {
      for (const auto& ended : calls.Poll(kPoll)) answers[ended.id] = AnswerIn(ended.response);
    }
    return answers;
  }

 private:
  Server* server_;
  std::vector<std::string> bodies_;
};

// "" if the answers are those of the first round.
std::string Differs(const std::vector<std::string>& first, const std::vector<std::string>& again,
                    const char* round) {
  const auto at = std::mismatch(first.begin(), first.end(), again.begin());
  if (at.first == first.end()) return "";
  return fmt::format("text {} of {} has another answer {}", at.first - first.begin() + 1,
                     first.size(), round);
}

}  // namespace

Determinism ProbeDeterminism(Server* server, const CompletionsStyle& style,
                             const Tokenizer* tokenizer) {
  try {
    Probe probe(server, style, tokenizer);
    const std::vector<std::string> first = probe.Alone();
    std::string reason = Differs(first, probe.Together(false), "among others");
    if (reason.empty()) reason = Differs(first, probe.Together(true), "in reverse");
    const bool emptied = reason.empty() && server->EmptyCache();
    if (emptied) reason = Differs(first, probe.Alone(), "after a reset of the cache");
    if (!reason.empty()) return {false, reason};
    return {true, fmt::format("{} texts have the same bits alone, together, in reverse{}",
                              first.size(), emptied ? " and after a reset of the cache" : "")};
  } catch (const std::exception& e) {
    return {false, fmt::format("the probe failed: {}", e.what())};
  }
}

}  // namespace evald::server
