// Reads calls of /v1/completions.
#include <fmt/format.h>

#include "base/text.h"
#include "worker/endpoint/api_error.h"
#include "worker/endpoint/call.h"
#include "worker/endpoint/call_settings.h"

namespace evald::endpoint {
namespace {

constexpr const char* kPromptForms =
    "a text, a list of texts, a list of token ids, or a list of such lists";
constexpr int64_t kTokensDefault = 16;  // OpenAI's

Prompt PromptOfText(const Json& text, bool special_tokens, const ServedModel& model) {
  Prompt prompt;
  prompt.text = text.get<std::string>();
  prompt.tokens = special_tokens ? EncodePrompt(model, prompt.text)
                                 : model.tokenizer->Encode(prompt.text, false);
  return prompt;
}

Prompt PromptOfTokens(const Json& list, const ServedModel& model) {
  Prompt prompt;
  prompt.tokens = ReadTokens(list, "prompt");
  prompt.text = model.tokenizer->Decode(prompt.tokens, false);
  return prompt;
}

std::vector<Prompt> ReadPrompts(CallFields* fields, const ServedModel& model) {
  const bool special_tokens = fields->Bool("add_special_tokens", true);
  const Json* found = fields->Find("prompt");
  if (found == nullptr)
    throw ApiError(400, fmt::format("prompt is missing, expected {}", kPromptForms), "prompt");
  const bool one =
      found->is_string() || (found->is_array() && !found->empty() && found->front().is_number());
  const Json list = one ? Json::array({*found}) : *found;
  if (!list.is_array() || list.empty() || list.size() > kPromptsMax)
    CallFields::Expected("prompt", *found, fmt::format("{} of 1 to {}", kPromptForms, kPromptsMax));
  std::vector<Prompt> prompts;
  for (const Json& item : list) {
    if (!item.is_string() && !item.is_array()) CallFields::Expected("prompt", item, kPromptForms);
    prompts.push_back(item.is_string() ? PromptOfText(item, special_tokens, model)
                                       : PromptOfTokens(item, model));
    if (prompts.back().tokens.empty())
      throw ApiError(400, "prompt: found no tokens, expected at least one", "prompt");
  }
  return prompts;
}

}  // namespace

std::vector<int32_t> ReadTokens(const Json& list, const std::string& key) {
  if (!list.is_array()) CallFields::Expected(key, list, "a list of token ids");
  std::vector<int32_t> tokens;
  tokens.reserve(list.size());
  for (const Json& token : list) {
    const bool fits =
        token.is_number_integer() && token.get<int64_t>() >= 0 && token.get<int64_t>() <= INT32_MAX;
    if (!fits) CallFields::Expected(key, token, "token ids, integers from 0 on");
    tokens.push_back(token.get<int32_t>());
  }
  return tokens;
}

std::vector<int32_t> EncodePrompt(const ServedModel& model, const std::string& text) {
  Request request;
  request.context = text;
  EncodeRequest(*model.tokenizer, &request);
  return std::move(request.context_tokens);
}

Call ReadCompletionCall(const Json& body, const ServedModel& model) {
  CallFields fields(body);
  Call call;
  ReadCommonSettings(&fields, model, &call);
  call.prompts = ReadPrompts(&fields, model);
  call.echo = fields.Bool("echo", false);
  call.logprobs =
      static_cast<int>(fields.Integer("logprobs", 0, kTopLogprobsMax).value_or(Call::kNoLogprobs));
  const auto best_of = fields.Integer("best_of", 1, INT32_MAX);
  if (best_of && *best_of != call.n)
    CallFields::Expected("best_of", *best_of, fmt::format("n, which is {}", call.n));
  fields.OnlyNeutral("suffix", {""});
  const auto most = fields.Integer("max_tokens", 0, INT32_MAX);
  fields.RefuseOthers();
  if (call.choices() > kChoicesMax) {
    throw ApiError(
        400,
        fmt::format("prompts times n: found {}, expected at most {}", call.choices(), kChoicesMax),
        "n");
  }
  if (call.logprobs >= 0 && !model.reports_tokens)
    throw ApiError(400, "this engine gives no log-probabilities", "logprobs",
                   "unsupported_parameter");
  SetTokensMax(model, most, kTokensDefault, "max_tokens", &call);
  return call;
}

}  // namespace evald::endpoint
