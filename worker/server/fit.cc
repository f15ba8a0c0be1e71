#include "worker/server/fit.h"

#include <fmt/format.h>

#include "evald/error.h"

namespace evald::server {
namespace {

[[noreturn]] void ThrowNothingLeft(const Request& request, int max_length, size_t wanted) {
  throw Error(
      ErrorKind::kInput,
      fmt::format("task '{}', document {}: nothing of the prompt is left: the context has {} "
                  "tokens, {} are to be generated or scored",
                  request.task, request.doc_id, max_length, wanted),
      "lower max_gen_toks");
}

}  // namespace

PromptFit FitPrompt(int max_length, bool tokens, const Tokenizer* tokenizer, Request* request) {
  const bool generates = request->kind == RequestKind::kGenerateUntil;
  // A scoring request generates one token too (see ScoreBody).
  const size_t wanted = generates ? static_cast<size_t>(request->sampling.max_gen_toks)
                                  : request->continuation_tokens.size() + 1;
  if (max_length == 0) return {};
  const auto limit = static_cast<size_t>(max_length);
  // A token covers at least one byte, except the special tokens in front.
  constexpr size_t kSpecialTokens = 8;
  if (!tokens && request->context.size() + wanted + kSpecialTokens <= limit) return {};
  if (!tokens && tokenizer == nullptr) return {};
  std::vector<int32_t> prompt =
      tokens ? request->context_tokens : tokenizer->Encode(request->context, true);
  if (prompt.size() + wanted <= limit) return {};
  if (wanted >= limit) ThrowNothingLeft(*request, max_length, wanted);
  const size_t dropped = prompt.size() + wanted - limit;
  prompt.erase(prompt.begin(), prompt.begin() + static_cast<int64_t>(dropped));
  if (tokens) {
    request->context_tokens = std::move(prompt);
  } else {
    request->context = tokenizer->Decode(prompt, true);
  }
  return {static_cast<int>(dropped)};
}

}  // namespace evald::server
