#include "worker/endpoint/tokenizer_calls.h"

#include "worker/endpoint/api_error.h"
#include "worker/endpoint/call.h"

namespace evald::endpoint {
namespace {

Json SpellingOf(const Tokenizer& tokenizer, int32_t token) {
  return token < 0 ? Json() : Json(tokenizer.Spelling(token));
}

std::vector<int32_t> TokensOf(CallFields* fields, const ServedModel& model) {
  if (fields->Find("messages") != nullptr) return ReadChatPrompt(fields, model).tokens;
  const bool special_tokens = fields->Bool("add_special_tokens", true);
  const auto text = fields->Text("prompt");
  if (!text) throw ApiError(400, "expected prompt or messages", "prompt");
  return model.tokenizer->Encode(*text, special_tokens);
}

}  // namespace

Json Tokenize(const Json& body, const ServedModel& model) {
  CallFields fields(body);
  CheckModel(&fields, model);
  const std::vector<int32_t> tokens = TokensOf(&fields, model);
  fields.OnlyNeutral("return_token_strs", {false});
  fields.RefuseOthers();
  return {{"count", tokens.size()}, {"max_model_len", model.max_length}, {"tokens", tokens}};
}

Json Detokenize(const Json& body, const ServedModel& model) {
  CallFields fields(body);
  CheckModel(&fields, model);
  const Json* tokens = fields.Find("tokens");
  if (tokens == nullptr) throw ApiError(400, "tokens is missing", "tokens");
  const std::string text = model.tokenizer->Decode(ReadTokens(*tokens, "tokens"), false);
  fields.RefuseOthers();
  return {{"prompt", text}};
}

Json TokenizerInfo(const ServedModel& model) {
  const Tokenizer& tokenizer = *model.tokenizer;
  return {{"bos_token", SpellingOf(tokenizer, tokenizer.bos_id())},
          {"eos_token", SpellingOf(tokenizer, tokenizer.eos_id())},
          {"pad_token", nullptr},
          {"model_max_length", model.max_length},
          {"chat_template", model.chat ? Json(model.chat->text()) : Json()}};
}

}  // namespace evald::endpoint
