#include "worker/native/request_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "evald/error.h"

namespace evald::native {
namespace {

using Tokens = std::vector<int32_t>;

[[noreturn]] void Refuse(const Request& request, const std::string& message,
                         const std::string& remedy = "") {
  throw Error(ErrorKind::kInput, RequestName(request) + ": " + message, remedy);
}

void CheckTokens(const Request& request, const PlanLimits& limits) {
  for (const Tokens* tokens : {&request.context_tokens, &request.continuation_tokens}) {
    for (const int32_t token : *tokens) {
      if (token < 0 || token >= limits.vocab_size) {
        Refuse(request,
               fmt::format("found token {}, expected 0 to {} (vocab_size in config.json)", token,
                           limits.vocab_size - 1),
               "the tokenizer does not belong to these weights");
      }
    }
  }
}

// The number of tokens that may be generated, found like transformers' generate() from the
// harness's max_length: the checkpoint's max_new_tokens takes precedence over the request.
int TokensMax(const Request& request, const RequestPlan& plan, const PlanLimits& limits) {
  const auto prompt = static_cast<int64_t>(plan.prompt.size());
  int64_t most = request.sampling.max_gen_toks;
  if (plan.settings.max_length) most = *plan.settings.max_length - prompt;
  if (plan.settings.max_new_tokens) most = *plan.settings.max_new_tokens;
  if (most < 1) {
    Refuse(request,
           fmt::format("the prompt has {} tokens, max_length in generation_kwargs is {}", prompt,
                       *plan.settings.max_length),
           "raise max_length, or say max_gen_toks instead: tokens without the prompt");
  }
  if (limits.positions_max > 0 && prompt + most > limits.positions_max) {
    Refuse(request,
           fmt::format("{} tokens of prompt and {} to be generated go beyond "
                       "max_position_embeddings ({}), which rope scaling 'dynamic' is not served "
                       "beyond",
                       prompt, most, limits.positions_max),
           "set `generation_config: ignore` where max_new_tokens comes from there, or lower "
           "max_length");
  }
  // The last token is not computed, and the first one comes from the prompt's forward pass.
  const int64_t alike = limits.generation_positions;
  if (alike > 0 && most > 1 && prompt + most - 1 > alike) {
    Refuse(
        request,
        fmt::format("{} tokens of prompt and {} to be generated are more than {}: beyond these, "
                    "transformers' generate() drops keys that the model's attention sees "
                    "(sliding_window, attention_chunk_size and layer_types in config.json), which "
                    "is not served",
                    prompt, most, alike),
        "lower max_gen_toks or engine.max_length; or take these keys out of config.json, if the "
        "model was trained without them");
  }
  return static_cast<int>(most);
}

// HFLM.generate_until: the prompt is cut from the left to max_length - max_gen_toks.
RequestPlan PlanGeneration(const Request& request, const PlanLimits& limits) {
  const int wanted = request.sampling.max_gen_toks;
  if (wanted < 1) {
    Refuse(request, fmt::format("max_gen_toks: found {}, expected at least 1", wanted));
  }
  if (wanted >= limits.max_length) {
    Refuse(request,
           fmt::format("max_gen_toks ({}) leaves nothing of the context length ({}) for the prompt",
                       wanted, limits.max_length),
           "lower the task's max_gen_toks or use a model with a longer context");
  }
  if (request.context_tokens.empty()) Refuse(request, "the prompt has no tokens");
  const auto room = static_cast<size_t>(limits.max_length - wanted);
  const Tokens& all = request.context_tokens;
  RequestPlan plan;
  plan.prompt.assign(all.end() - static_cast<int64_t>(std::min(all.size(), room)), all.end());
  plan.tokens_in = static_cast<int>(plan.prompt.size());
  plan.truncated = static_cast<int>(all.size() - plan.prompt.size());
  try {
    plan.settings = limits.generation.For(request.sampling);
  } catch (Error& e) {
    e.AddContext(RequestName(request));
    throw;
  }
  plan.tokens_max = TokensMax(request, plan, limits);
  return plan;
}

RequestPlan PlanScoring(const Request& request, const PlanLimits& limits) {
  const Tokens& continuation = request.continuation_tokens;
  if (request.context_tokens.empty()) Refuse(request, "the context has no tokens");
  if (continuation.empty()) Refuse(request, "the continuation has no tokens");
  if (continuation.size() > static_cast<size_t>(limits.max_length)) {
    Refuse(request, fmt::format("the continuation has {} tokens, the context length is {}",
                                continuation.size(), limits.max_length));
  }
  RequestPlan plan;
  plan.windows.push_back(
      WindowOf(request.context_tokens, continuation, limits.max_length, &plan.truncated));
  plan.tokens_out = static_cast<int>(continuation.size());
  plan.tokens_in = static_cast<int>(plan.windows[0].tokens.size()) + 1 - plan.tokens_out;
  return plan;
}

RequestPlan PlanRolling(const Request& request, const PlanLimits& limits) {
  const Tokens& all = request.context_tokens;
  RequestPlan plan;
  if (all.empty()) return plan;
  if (limits.prefix_token < 0) {
    Refuse(request, "the tokenizer has neither a BOS nor an EOS token to begin with");
  }
  if (limits.prefix_token >= limits.vocab_size) {
    // A token named by the files or the tokenizer's class is added if the vocabulary lacks it.
    Refuse(request,
           fmt::format("the tokenizer's BOS (or EOS) token has the id {}, expected 0 to {} "
                       "(vocab_size in config.json)",
                       limits.prefix_token, limits.vocab_size - 1),
           "name a token of the vocabulary as bos_token in tokenizer_config.json");
  }
  plan.windows = RollingWindows(all, limits.prefix_token, limits.max_length);
  for (const ScoreWindow& window : plan.windows) plan.tokens_in += window.score_from + 1;
  plan.tokens_out = static_cast<int>(all.size());
  return plan;
}

}  // namespace

std::string RequestName(const Request& request) {
  return fmt::format("document {}, request {}", request.doc_id, request.idx);
}

RequestPlan PlanRequest(const Request& request, const PlanLimits& limits) {
  CheckTokens(request, limits);
  switch (request.kind) {
    case RequestKind::kGenerateUntil:
      return PlanGeneration(request, limits);
    case RequestKind::kLoglikelihood:
      return PlanScoring(request, limits);
    case RequestKind::kLoglikelihoodRolling:
      return PlanRolling(request, limits);
  }
  throw Error(ErrorKind::kInternal, "unknown request kind");
}

}  // namespace evald::native
