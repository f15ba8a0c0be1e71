#include "worker/endpoint/reply.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/jsonl.h"
#include "base/text.h"

namespace evald::endpoint {
namespace {

// JSON has no infinity; vLLM writes this number for a probability of 0.
constexpr double kImpossible = -9999.0;

Json Number(double log_probability) {
  if (std::isnan(log_probability)) return nullptr;
  return std::max(log_probability, kImpossible);
}

Json Bytes(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

Json Head(const ReplyHead& head, const char* object) {
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

Json OrNull(const char* text) { return text == nullptr ? Json() : Json(text); }

}  // namespace

const char* FinishReasonOf(const Generation& generation) {
  return generation.finish == FinishReason::kLength ? "length" : "stop";
}

LogprobsWriter::LogprobsWriter(const Call& call, const Tokenizer& tokenizer,
                               const std::vector<int32_t>& before)
    : call_(call), texts_(tokenizer, true) {
  constexpr size_t kEnough = 16;  // more than a token's text can depend on
  for (size_t i = before.size() - std::min(before.size(), kEnough); i < before.size(); ++i)
    texts_.Append(before[i]);
  Take();
}

std::string LogprobsWriter::NameOf(int32_t token) const {
  if (!call_.token_ids_as_names) {
    const std::optional<std::string> text = texts_.TextOf(token);
    if (text && !text->empty()) return *text;
  }
  return fmt::format("token_id:{}", token);
}

void LogprobsWriter::AddFirst(int32_t token) { AddToLists(token, nullptr); }

void LogprobsWriter::Add(const TokenReport& report) {
  if (!call_.chat) return AddToLists(report.token, &report);
  Json entry = Entry({report.token, report.log_probability});
  entry["top_logprobs"] = Json::array();
  for (const TokenLogProbability& likely : report.top)
    entry["top_logprobs"].push_back(Entry(likely));
  content_.push_back(std::move(entry));
  texts_.Append(report.token);
  ++count_;
}

Json LogprobsWriter::Entry(const TokenLogProbability& likely) const {
  const std::optional<std::string> text = texts_.TextOf(likely.token);
  return {{"token", NameOf(likely.token)},
          {"logprob", Number(likely.log_probability)},
          {"bytes", text ? Bytes(*text) : Json()}};
}

// The likeliest tokens and the token itself. Of two tokens with one name the likelier one counts.
void LogprobsWriter::AddToLists(int32_t token, const TokenReport* report) {
  const std::string name = NameOf(token);
  tokens_.push_back(name);
  token_logprobs_.push_back(report == nullptr ? Json() : Number(report->log_probability));
  text_offset_.push_back(offset_);
  Json top;
  if (report != nullptr) {
    top = Json::object();
    for (const TokenLogProbability& likely : report->top)
      top.emplace(NameOf(likely.token), Number(likely.log_probability));
    top.emplace(name, Number(report->log_probability));
  }
  top_logprobs_.push_back(std::move(top));
  offset_ += CodePoints(texts_.Append(token));
  ++count_;
}

Json LogprobsWriter::Take() {
  count_ = 0;
  const auto take = [](Json* list) { return std::exchange(*list, Json::array()); };
  if (call_.chat) return {{"content", take(&content_)}};
  Json result = {{"tokens", take(&tokens_)}};
  result["token_logprobs"] = take(&token_logprobs_);
  result["top_logprobs"] = take(&top_logprobs_);
  result["text_offset"] = take(&text_offset_);
  return result;
}

Json ToJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
}

Json WholeChoice(bool chat, size_t index, const std::string& text, Json logprobs,
                 const char* finish_reason) {
  Json choice = {{"index", index}};
  if (chat) {
    choice["message"] = {{"role", "assistant"}, {"content", text}, {"refusal", nullptr}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = OrNull(finish_reason);
  return choice;
}

Json WholeReply(bool chat, const ReplyHead& head, Json choices, const Usage& usage) {
  Json reply = Head(head, chat ? "chat.completion" : "text_completion");
  reply["choices"] = std::move(choices);
  reply["usage"] = ToJson(usage);
  return reply;
}

namespace {

Json ChunkOf(bool chat, const ReplyHead& head) {
  return Head(head, chat ? "chat.completion.chunk" : "text_completion");
}

}  // namespace

Json Chunk(bool chat, const ReplyHead& head, size_t index, const std::string& text, Json logprobs,
           const char* finish_reason) {
  Json choice = {{"index", index}};
  if (chat) {
    choice["delta"] = text.empty() ? Json::object() : Json{{"content", text}};
  } else {
    choice["text"] = text;
  }
  choice["logprobs"] = std::move(logprobs);
  choice["finish_reason"] = OrNull(finish_reason);
  Json chunk = ChunkOf(chat, head);
  chunk["choices"] = Json::array({std::move(choice)});
  return chunk;
}

Json RoleChunk(const ReplyHead& head, size_t index) {
  Json chunk = Chunk(true, head, index, "", nullptr, nullptr);
  chunk["choices"][0]["delta"] = {{"role", "assistant"}, {"content", ""}};
  return chunk;
}

Json UsageChunk(bool chat, const ReplyHead& head, const Usage& usage) {
  Json chunk = ChunkOf(chat, head);
  chunk["choices"] = Json::array();
  chunk["usage"] = ToJson(usage);
  return chunk;
}

std::string Frame(const Json& chunk) { return "data: " + ToLine(chunk) + "\n\n"; }

}  // namespace evald::endpoint
