#include <fmt/format.h>

#include "evald/error.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/unicode.h"

namespace evald {
namespace {

[[noreturn]] void Refuse(const Request& request, const std::string& why,
                         const std::string& remedy = "") {
  throw Error(ErrorKind::kInput,
              fmt::format("document {}, request {}: {}", request.doc_id, request.idx, why), remedy);
}

// The token that replaces an empty context: BOS, else EOS.
int32_t PrefixToken(const Tokenizer& tokenizer) {
  return tokenizer.bos_id() >= 0 ? tokenizer.bos_id() : tokenizer.eos_id();
}

// HFLM.tok_encode. Special tokens are added unless the text already begins with the prefix token.
std::vector<int32_t> EncodeScored(const Tokenizer& tokenizer, std::string_view text) {
  const int32_t prefix = PrefixToken(tokenizer);
  const bool has_prefix = prefix >= 0 && text.starts_with(tokenizer.Decode({prefix}, false));
  return tokenizer.Encode(text, !has_prefix);
}

// HFLM.tok_batch_encode for one text. Here only BOS counts, in the vocabulary's spelling.
std::vector<int32_t> EncodePrompt(const Tokenizer& tokenizer, std::string_view text) {
  const std::string bos = tokenizer.Spelling(tokenizer.bos_id());
  return tokenizer.Encode(text, bos.empty() || !text.starts_with(bos));
}

// The end of Python's context.rstrip().
size_t WithoutTrailingSpace(std::string_view context) {
  size_t end = context.size();
  while (end > 0) {
    const size_t start = tok::PreviousStart(context, end);
    size_t at = start;
    if (!tok::IsPythonWhitespace(tok::NextCodePoint(context, &at))) break;
    end = start;
  }
  return end;
}

// TemplateLM.loglikelihood for an empty context.
void EncodeWithoutContext(const Tokenizer& tokenizer, Request* request) {
  const int32_t prefix = PrefixToken(tokenizer);
  if (prefix < 0) {
    Refuse(*request, "the context is empty and the tokenizer has neither a BOS nor an EOS token",
           "name one in tokenizer_config.json");
  }
  std::vector<int32_t> tokens = tokenizer.Encode(request->continuation, false);
  if (!tokens.empty() && tokens[0] == prefix) tokens.erase(tokens.begin());
  request->context_tokens = {prefix};
  request->continuation_tokens = std::move(tokens);
}

// TemplateLM._encode_pair.
void EncodePair(const Tokenizer& tokenizer, Request* request) {
  const std::string whole = request->context + request->continuation;
  const std::string_view context =
      std::string_view(whole).substr(0, WithoutTrailingSpace(request->context));
  request->context_tokens = EncodeScored(tokenizer, context);
  const std::vector<int32_t> tokens = EncodeScored(tokenizer, whole);
  const size_t split = std::min(request->context_tokens.size(), tokens.size());
  request->continuation_tokens.assign(tokens.begin() + static_cast<ptrdiff_t>(split), tokens.end());
}

}  // namespace

void EncodeRequest(const Tokenizer& tokenizer, Request* request) {
  request->continuation_tokens.clear();
  switch (request->kind) {
    case RequestKind::kGenerateUntil:
      request->context_tokens = EncodePrompt(tokenizer, request->context);
      return;
    case RequestKind::kLoglikelihoodRolling:
      request->context_tokens = EncodeScored(tokenizer, request->context);
      return;
    case RequestKind::kLoglikelihood:
      break;
  }
  if (request->context.empty()) {
    EncodeWithoutContext(tokenizer, request);
  } else {
    EncodePair(tokenizer, request);
  }
  if (request->context_tokens.empty()) Refuse(*request, "the context has no tokens");
  if (request->continuation_tokens.empty()) {
    Refuse(*request, "the continuation has no tokens of its own, so there is nothing to score");
  }
}

}  // namespace evald
