#include "worker/server/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"
#include "worker/server/fit.h"

namespace evald::server {
namespace {

constexpr int kNoLimit = 1 << 30;

std::string NameOf(const Request& request) {
  return fmt::format("task '{}', document {}", request.task, request.doc_id);
}

int WindowLength(int max_length) { return max_length > 0 ? std::max(max_length - 2, 1) : kNoLimit; }

// -1: not known, or not needed.
int PromptTokens(const PlanSetup& setup, const Request& request) {
  const Json in_force = setup.style.generation.InForce(request.sampling);
  if (!in_force.contains("max_length") && !in_force.contains("max_new_tokens")) return -1;
  if (setup.style.tokens) return static_cast<int>(request.context_tokens.size());
  return setup.tokenizer != nullptr
             ? static_cast<int>(setup.tokenizer->Encode(request.context, true).size())
             : -1;
}

// Finds where thinking ends. Texts of servers have no special tokens, unless the server is asked
// for them; tokens show every end.
void PlanThinking(const PlanSetup& setup, Plan* plan, Json* body) {
  const Request& request = plan->request;
  if (!request.sampling.think_end.given()) return;
  try {
    plan->thinking.emplace(request.sampling.think_end, setup.tokenizer);
  } catch (Error& e) {
    throw e.AddContext(NameOf(request));
  }
  const auto says = [&](const char* key, bool value) {
    return body->contains(key) && (*body)[key] == value;
  };
  const bool shown = (says("return_token_ids", true) && setup.tokenizer != nullptr) ||
                     says("skip_special_tokens", false);
  if (!plan->thinking->special() || shown) return;
  if (!setup.shows_special) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: think_end_token is {}, a special token, which servers leave out "
                            "of texts",
                            NameOf(request), ToLine(ToJson(request.sampling.think_end))),
                "if the server knows the key, set engine.extra_body: {skip_special_tokens: false}");
  }
  (*body)["skip_special_tokens"] = false;
}

void PlanText(const PlanSetup& setup, Plan* plan) {
  Request& request = plan->request;
  plan->truncated =
      FitPrompt(setup.style.max_length, setup.style.tokens, setup.tokenizer, &request).dropped;
  Json body = GenerateBody(setup.style, request, PromptTokens(setup, request));
  for (const auto& [key, value] : setup.extra.items()) {
    if (!body.contains(key)) body[key] = value;
  }
  PlanThinking(setup, plan, &body);
  // A token has rarely over 100 bytes; its id and those of the prompt are sent back as well.
  const size_t tokens = static_cast<size_t>(body["max_tokens"].get<int>()) +
                        request.context_tokens.size() + request.context.size() / 8;
  plan->answer_bytes_max = std::min(kAnswerBytesMax, (size_t{256} << 10) + 1024 * tokens);
  plan->body = ToLine(body);
  plan->end_tokens = setup.style.generation.For(request.sampling).eos_ids;
}

void PlanScores(const PlanSetup& setup, Plan* plan) {
  const Request& request = plan->request;
  const std::vector<int32_t>& continuation = request.continuation_tokens;
  const int length = WindowLength(setup.style.max_length);
  if (request.context_tokens.empty() || continuation.empty()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: the {} has no tokens", NameOf(request),
                                               continuation.empty() ? "continuation" : "context"));
  }
  if (continuation.size() > static_cast<size_t>(length)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: the continuation has {} tokens, the server's context has {}",
                            NameOf(request), continuation.size(), setup.style.max_length));
  }
  plan->windows = {WindowOf(request.context_tokens, continuation, length, &plan->truncated)};
  plan->tokens_out = static_cast<int>(continuation.size());
}

void PlanRolling(const PlanSetup& setup, Plan* plan) {
  const Request& request = plan->request;
  const Tokenizer* tokenizer = setup.tokenizer;
  const int32_t prefix = tokenizer == nullptr       ? -1
                         : tokenizer->bos_id() >= 0 ? tokenizer->bos_id()
                                                    : tokenizer->eos_id();
  if (prefix < 0) {
    throw Error(
        ErrorKind::kInput,
        NameOf(request) + ": the tokenizer has neither a BOS nor an EOS token to begin with");
  }
  plan->windows =
      RollingWindows(request.context_tokens, prefix, WindowLength(setup.style.max_length));
  plan->tokens_out = static_cast<int>(request.context_tokens.size());
}

}  // namespace

size_t AnswerBytesMax(const ScoreWindow& window) {
  // vLLM's echo of a token has 280 bytes.
  return std::min(kAnswerBytesMax, (size_t{64} << 10) + 1024 * (window.tokens.size() + 1));
}

Plan PlanFor(const PlanSetup& setup, Request request) {
  Plan plan;
  plan.request = std::move(request);
  switch (plan.request.kind) {
    case RequestKind::kGenerateUntil:
      PlanText(setup, &plan);
      break;
    case RequestKind::kLoglikelihood:
      PlanScores(setup, &plan);
      break;
    case RequestKind::kLoglikelihoodRolling:
      PlanRolling(setup, &plan);
      break;
  }
  for (const ScoreWindow& window : plan.windows) plan.tokens_in += window.score_from + 1;
  return plan;
}

}  // namespace evald::server
