// Reads calls of /v1/chat/completions.
#include <fmt/format.h>

#include <set>

#include "evald/error.h"
#include "worker/endpoint/api_error.h"
#include "worker/endpoint/call.h"
#include "worker/endpoint/call_settings.h"

namespace evald::endpoint {
namespace {

[[noreturn]] void RefusePart(const std::string& where, const std::string& type) {
  throw ApiError(400, fmt::format("{}: content of type '{}' is not served, only text", where, type),
                 "messages", "unsupported_content");
}

// A text, or a list of parts of type "text", which are joined by line feeds.
std::string ContentOf(const Json& content, const std::string& where) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    CallFields::Expected(where, content, "a text, or a list of parts of type text");
  std::string text;
  for (const Json& part : content) {
    if (!part.is_object() || !part.contains("type") || !part.at("type").is_string())
      CallFields::Expected(where, part, "an object with a type");
    const auto type = part.at("type").get<std::string>();
    if (type != "text" && type != "input_text") RefusePart(where, type);
    if (!part.contains("text") || !part.at("text").is_string())
      CallFields::Expected(where, part, "a text");
    if (&part != &content.front()) text += "\n";
    text += part.at("text").get<std::string>();
  }
  return text;
}

Json ReadMessage(const Json& message, const std::string& where) {
  static const std::set<std::string> roles = {"system", "developer", "user", "assistant"};
  if (!message.is_object()) CallFields::Expected(where, message, "an object with role and content");
  Json read = Json::object();
  for (const auto& [key, value] : message.items()) {
    if (value.is_null() || (value.is_array() && value.empty())) continue;
    if (key == "role" && value.is_string()) {
      read["role"] = value;
    } else if (key == "content") {
      read["content"] = ContentOf(value, where + ".content");
    } else if (key == "name" && value.is_string()) {
      read["name"] = value;
    } else {
      throw ApiError(400, fmt::format("{}.{} is not served", where, key), "messages",
                     "unsupported_parameter");
    }
  }
  if (!read.contains("role") || !roles.contains(read.at("role").get<std::string>())) {
    throw ApiError(400,
                   fmt::format("{}.role: expected system, developer, user or assistant", where),
                   "messages", "invalid_value");
  }
  if (!read.contains("content"))
    throw ApiError(400, fmt::format("{}.content is missing", where), "messages", "invalid_value");
  return read;
}

Json ReadMessages(CallFields* fields) {
  const Json* found = fields->Find("messages");
  if (found == nullptr)
    throw ApiError(400, "messages is missing, expected a list of messages", "messages");
  if (!found->is_array() || found->empty())
    CallFields::Expected("messages", *found, "a list of at least one message");
  Json messages = Json::array();
  for (const Json& message : *found)
    messages.push_back(ReadMessage(message, fmt::format("messages[{}]", messages.size())));
  return messages;
}

void RefuseUnservedOfChat(CallFields* fields) {
  fields->OnlyNeutral("tools", {Json::array()});
  fields->OnlyNeutral("functions", {Json::array()});
  fields->OnlyNeutral("tool_choice", {"none", "auto"});
  fields->OnlyNeutral("function_call", {"none", "auto"});
  fields->OnlyNeutral("modalities", {Json::array({"text"})});
  fields->OnlyNeutral("chat_template_kwargs", {Json::object()});
  fields->OnlyNeutral("documents", {Json::array()});
  fields->Ignore({"parallel_tool_calls"});
}

// `logprobs` and `top_logprobs`.
int ReadLogprobs(CallFields* fields, const ServedModel& model) {
  const bool wanted = fields->Bool("logprobs", false);
  const auto top = fields->Integer("top_logprobs", 0, kTopLogprobsMax);
  if (top && *top > 0 && !wanted)
    throw ApiError(400, "top_logprobs needs logprobs: true", "top_logprobs");
  if (!wanted) return Call::kNoLogprobs;
  if (!model.reports_tokens)
    throw ApiError(400, "this engine gives no log-probabilities", "logprobs",
                   "unsupported_parameter");
  return static_cast<int>(top.value_or(0));
}

}  // namespace

Prompt ReadChatPrompt(CallFields* fields, const ServedModel& model) {
  const Json messages = ReadMessages(fields);
  const bool special_tokens = fields->Bool("add_special_tokens", true);
  const bool goes_on = fields->Bool("continue_final_message", false);
  const bool opens = fields->Bool("add_generation_prompt", !goes_on);
  if (opens == goes_on) {
    throw ApiError(400,
                   "expected one of add_generation_prompt and continue_final_message to be "
                   "true",
                   "add_generation_prompt");
  }
  if (!model.chat) {
    throw ApiError(400, "the checkpoint has no chat template that is served: " + model.no_chat,
                   "messages", "no_chat_template");
  }
  Prompt prompt;
  try {
    prompt.text = model.chat->Render(messages, opens);
  } catch (const Error& e) {
    throw ApiError(400, std::string("the chat template: ") + e.what(), "messages", "chat_template");
  }
  prompt.tokens = special_tokens ? EncodePrompt(model, prompt.text)
                                 : model.tokenizer->Encode(prompt.text, false);
  if (prompt.tokens.empty())
    throw ApiError(400, "messages: the chat template makes no tokens of them", "messages");
  return prompt;
}

Call ReadChatCall(const Json& body, const ServedModel& model) {
  CallFields fields(body);
  Call call;
  call.chat = true;
  ReadCommonSettings(&fields, model, &call);
  RefuseUnservedOfChat(&fields);
  call.logprobs = ReadLogprobs(&fields, model);
  call.echo = fields.Bool("echo", false);
  if (call.echo) throw ApiError(400, "echo is not served for chats", "echo");
  const auto newer = fields.Integer("max_completion_tokens", 1, INT32_MAX);
  const auto older = fields.Integer("max_tokens", 1, INT32_MAX);
  call.prompts.push_back(ReadChatPrompt(&fields, model));
  fields.RefuseOthers();
  SetTokensMax(model, newer ? newer : older, std::nullopt,
               newer ? "max_completion_tokens" : "max_tokens", &call);
  return call;
}

}  // namespace evald::endpoint
