#include "worker/server/completions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/hash.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::server {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr const char* kWhere = "the server's reply";

// A seed for this request alone, below 2^31, which every server accepts.
int64_t SeedOf(uint64_t seed, const Request& request) {
  const std::string hash = HashHex(fmt::format("{}\n{}\n{} {} {}", seed, request.task,
                                               request.doc_id, request.idx, request.repeat));
  return static_cast<int64_t>(std::stoull(hash.substr(0, 8), nullptr, 16) & 0x7fffffff);
}

Json Base(const CompletionsStyle& style) {
  Json body = Json::object();
  body["model"] = style.model;
  return body;
}

void AddExtra(const CompletionsStyle& style, Json* body) {
  for (const auto& [key, value] : style.extra.items()) (*body)[key] = value;
}

std::vector<std::string> UsableStops(const std::vector<std::string>& until) {
  std::vector<std::string> stops;
  std::copy_if(until.begin(), until.end(), std::back_inserter(stops),
               [](const std::string& stop) { return !stop.empty(); });
  return stops;
}

// Throws for a setting that is in force and that the server cannot be told of.
void CheckPassedOn(const CompletionsStyle& style, const Request& request) {
  static const std::set<std::string> kPassedOn = {
      "do_sample",          "temperature",    "top_k",      "top_p",         "min_p",
      "repetition_penalty", "min_new_tokens", "max_length", "max_new_tokens"};
  const Json in_force = style.generation.InForce(request.sampling);
  for (const auto& [key, value] : in_force.items()) {
    if (kPassedOn.count(key) > 0 || style.extra.contains(key)) continue;
    // A server that loaded the checkpoint knows its end tokens.
    if (key == "eos_token_id" && !request.sampling.settings.contains(key)) continue;
    if (key == "remove_invalid_values") continue;  // invalid numbers are the server's own affair
    throw Error(
        ErrorKind::kInput,
        fmt::format("task '{}': {}: {} is in force, which the completions API has no name for",
                    request.task, key, ToLine(value)),
        "set it to null in generation_kwargs, or `generation_config: ignore` where it is the "
        "checkpoint's, or name it in engine.extra_body as the server does");
  }
}

// The same as in the native engine, except that a server ends at its context's end.
int MaxTokens(const CompletionsStyle& style, const Request& request,
              const GenerationSettings& settings, int prompt_tokens) {
  int most = request.sampling.max_gen_toks;
  if (settings.max_new_tokens) {
    most = *settings.max_new_tokens;
    if (style.max_length > 0 && prompt_tokens >= 0) {
      most =
          std::min(most, std::max(style.max_length - prompt_tokens, request.sampling.max_gen_toks));
    }
  } else if (settings.max_length) {
    if (prompt_tokens < 0) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("task '{}': max_length counts the prompt's tokens, which are not known",
                      request.task),
          "say max_gen_toks instead");
    }
    most = *settings.max_length - prompt_tokens;
    if (most < 1) {
      throw Error(ErrorKind::kInput,
                  fmt::format("task '{}', document {}: the prompt has {} tokens, max_length in "
                              "generation_kwargs is {}",
                              request.task, request.doc_id, prompt_tokens, *settings.max_length),
                  "raise max_length, or say max_gen_toks instead: tokens without the prompt");
    }
  }
  const auto& until = request.sampling.until;
  const bool ends_at_once = std::find(until.begin(), until.end(), "") != until.end();
  return ends_at_once && !request.sampling.think_end.given() ? 1 : most;
}

int HexValue(std::string_view digits) {
  int value = 0;
  for (const char c : digits) {
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return digits.size() == 4 ? value : -1;
}

// Python servers write lone surrogates as \uD8xx, which JSON parsers refuse.
std::string ReplaceLoneSurrogates(std::string_view json) {
  std::string fixed;
  fixed.reserve(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    if (json[i] != '\\' || i + 1 >= json.size() || json[i + 1] != 'u') {
      fixed += json[i];
      if (json[i] == '\\' && i + 1 < json.size()) fixed += json[++i];
      continue;
    }
    const int unit = HexValue(json.substr(i + 2, 4));
    const bool high = unit >= 0xD800 && unit <= 0xDBFF;
    const bool low = unit >= 0xDC00 && unit <= 0xDFFF;
    const int next = high && json.substr(i + 6, 2) == "\\u" ? HexValue(json.substr(i + 8, 4)) : -1;
    const bool pair = next >= 0xDC00 && next <= 0xDFFF;
    const size_t length = pair ? 12 : 6;
    if ((high && !pair) || low) {
      fixed += "\\ufffd";
    } else {
      fixed += json.substr(i, length);
    }
    i += length - 1;
  }
  return fixed;
}

Json ParseReply(std::string_view body) {
  const std::string text = IsUtf8(body) ? std::string(body) : ReplaceInvalidUtf8(body);
  try {
    return ParseJson(text, kWhere);
  } catch (const Error&) {
    return ParseJson(ReplaceLoneSurrogates(text), kWhere);
  }
}

double NumberOr(const Json& value, double otherwise) {
  return value.is_number() ? value.get<double>() : otherwise;
}

// logprobs: {"token_logprobs": [null, -1.2, ...], "top_logprobs": [null, {" a": -1.2}, ...]}
std::vector<ScoredToken> ParseLogprobs(const Json& logprobs) {
  std::vector<ScoredToken> tokens;
  const auto values = Field<std::vector<Json>>(logprobs, "token_logprobs", kWhere);
  const auto tops = FieldOr<std::vector<Json>>(logprobs, "top_logprobs", {}, kWhere);
  for (size_t i = 0; i < values.size(); ++i) {
    ScoredToken token{NumberOr(values[i], kNone), kNone, {}};
    if (i < tops.size() && tops[i].is_object()) {
      for (const auto& [text, value] : tops[i].items()) {
        const double logprob = NumberOr(value, kNone);
        if (!(logprob <= token.best)) token.best = logprob;
        token.top.emplace_back(text, logprob);
      }
    }
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// The reason for which an answer ended; "" if the server gives none. An answer that ended for
// another reason than that it is complete is no answer: vLLM and SGLang answer with "abort", and
// status 200, if they give a request up.
std::string FinishReasonOf(const Json& choice) {
  if (!choice.contains("finish_reason")) return "";
  static const std::set<std::string> kComplete = {"stop", "length",  // OpenAI, vLLM, SGLang
                                                  "eos_token", "stop_sequence"};  // TGI
  const Json& found = choice["finish_reason"];
  if (found.is_string() && kComplete.contains(found.get<std::string>())) return found;
  throw Error(ErrorKind::kInput,
              fmt::format("the server did not complete the answer: its finish_reason is {}",
                          Shortened(ToLine(found), 100)),
              "the server's log may say why");
}

Completion ParseWhole(std::string_view body) {
  const Json json = ParseReply(body);
  if (json.is_object() && json.contains("error") && !json["error"].is_null()) {
    throw Error(ErrorKind::kInput, "the server's reply has an error: " + ErrorText(body));
  }
  const auto choices = Field<std::vector<Json>>(json, "choices", kWhere);
  const int64_t index = choices.size() == 1 ? FieldOr<int64_t>(choices[0], "index", 0, kWhere) : -1;
  if (index != 0) {
    throw Error(ErrorKind::kInput,
                fmt::format("the server's reply has {} choices{}, expected one", choices.size(),
                            choices.size() == 1 ? fmt::format(" with index {}", index) : ""));
  }
  const Json& choice = choices[0];
  Completion completion;
  const Json model = FieldOr<Json>(json, "model", Json(), kWhere);
  if (model.is_string()) completion.model = model;
  completion.text = Field<std::string>(choice, "text", kWhere);
  completion.finish_reason = FinishReasonOf(choice);
  completion.ended_by_eos = choice.contains("stop_reason") && choice["stop_reason"].is_null();
  const Json logprobs = FieldOr<Json>(choice, "logprobs", Json(), kWhere);
  if (logprobs.is_object()) completion.tokens = ParseLogprobs(logprobs);
  if (const Json ids = FieldOr<Json>(choice, "token_ids", Json(), kWhere); ids.is_array())
    completion.token_ids = Field<std::vector<int32_t>>(choice, "token_ids", kWhere);
  const Json usage = FieldOr<Json>(json, "usage", Json(), kWhere);
  if (usage.is_object()) {
    completion.prompt_tokens = FieldOr(usage, "prompt_tokens", -1, kWhere);
    completion.completion_tokens = FieldOr(usage, "completion_tokens", -1, kWhere);
  }
  return completion;
}

// The generated tokens without the one of `end_tokens` that ended them.
std::vector<int32_t> TokensOfText(const std::vector<int32_t>& end_tokens, Completion* completion) {
  std::vector<int32_t> ids = *completion->token_ids;
  if (completion->finish_reason == "stop" && !ids.empty()) {
    const bool listed = std::count(end_tokens.begin(), end_tokens.end(), ids.back()) > 0;
    completion->ended_by_eos = completion->ended_by_eos || listed;
    if (completion->ended_by_eos) ids.pop_back();
  }
  return ids;
}

std::string EosText(const Tokenizer* tokenizer) {
  const bool known = tokenizer != nullptr && tokenizer->eos_id() >= 0;
  return known ? tokenizer->Decode({tokenizer->eos_id()}, false) : "";
}

FinishReason ReasonOf(const Completion& completion) {
  if (completion.finish_reason == "length") return FinishReason::kLength;
  return completion.ended_by_eos ? FinishReason::kEos : FinishReason::kStop;
}

// lm_eval's postprocess_generated_text: the text is cut at each stop string in turn, the end
// token's text among them.
void TakeTextOfTokens(const Tokenizer& tokenizer, const std::vector<int32_t>& end_tokens,
                      std::vector<std::string> until, Completion* completion) {
  const std::vector<int32_t> ids = TokensOfText(end_tokens, completion);
  if (tokenizer.eos_id() >= 0) until.push_back(EosText(&tokenizer));
  std::string text = tokenizer.Decode(ids, true);
  bool cut = false;
  for (const std::string& stop : UsableStops(until)) {
    const size_t at = text.find(stop);
    if (at == std::string::npos) continue;
    text.resize(at);
    cut = true;
  }
  if (cut) {
    completion->finish_reason = "stop";
    completion->ended_by_eos = false;
  }
  completion->text = std::move(text);
}

}  // namespace

Json GenerateBody(const CompletionsStyle& style, const Request& request, int prompt_tokens) {
  const SamplingParams& sampling = request.sampling;
  CheckPassedOn(style, request);
  const GenerationSettings settings = style.generation.For(sampling);
  Json body = Base(style);
  body["prompt"] = style.tokens ? Json(request.context_tokens) : Json(request.context);
  body["max_tokens"] = MaxTokens(style, request, settings, prompt_tokens);
  body["temperature"] = sampling.do_sample ? settings.temperature : 0.0;
  if (sampling.do_sample) {
    body["top_p"] = settings.top_p;
    if (settings.top_k > 0) body["top_k"] = settings.top_k;
    if (settings.min_p > 0) body["min_p"] = settings.min_p;
  }
  if (settings.repetition_penalty != 1) body["repetition_penalty"] = settings.repetition_penalty;
  if (settings.min_new_tokens > 0) body["min_tokens"] = settings.min_new_tokens;
  if (style.send_seed) body["seed"] = SeedOf(style.seed, request);
  std::vector<std::string> stops;
  if (!sampling.think_end.given()) stops = UsableStops(sampling.until);
  if (stops.size() > style.stops_max) stops.resize(style.stops_max);
  if (!stops.empty()) body["stop"] = stops;
  AddExtra(style, &body);
  return body;
}

Json ScoreBody(const CompletionsStyle& style, const std::vector<int32_t>& tokens) {
  Json body = Base(style);
  body["prompt"] = tokens;
  body["max_tokens"] = 1;
  body["temperature"] = 0.0;
  body["logprobs"] = 1;
  body["echo"] = true;
  AddExtra(style, &body);
  return body;
}

Completion ParseCompletion(std::string_view body) {
  try {
    return ParseWhole(body);
  } catch (const Error& e) {
    throw Error(ErrorKind::kInfrastructure, e.message(), e.remedy());
  }
}

void RequireSameModel(const Completion& completion, const CompletionsStyle& style) {
  const std::string& model = completion.model;
  if (model.empty() || style.reply_model.empty() || model == style.reply_model) return;
  constexpr size_t kNameBytesMax = 200;
  throw Error(ErrorKind::kInfrastructure,
              fmt::format("the server's reply is of the model '{}', its first reply was of '{}'",
                          Shortened(PrintableLine(model), kNameBytesMax),
                          Shortened(PrintableLine(style.reply_model), kNameBytesMax)),
              "evaluate one model at a time: see who exchanged the server's model");
}

Completion ParseAnswer(std::string_view body, const CompletionsStyle& style) {
  Completion completion = ParseCompletion(body);
  RequireSameModel(completion, style);
  if (completion.finish_reason.empty()) {
    throw Error(ErrorKind::kInfrastructure,
                "the server's reply has no finish_reason, so the answer may be cut short",
                "expected \"stop\" or \"length\" in choices[0].finish_reason");
  }
  return completion;
}

std::string ErrorText(std::string_view body) {
  constexpr size_t kBytesMax = 300;
  std::string text(body.substr(0, 64 * 1024));
  try {
    const Json json = ParseReply(body);
    // {"error": {"message": ...}}, {"error": "..."}, {"message": ...} and {"detail": ...} occur.
    const Json inner = json.is_object() && json.contains("error") ? json["error"] : json;
    for (const char* key : {"message", "detail"}) {
      if (inner.is_object() && inner.contains(key)) {
        text = inner[key].is_string() ? inner[key].get<std::string>() : ToLine(inner[key]);
        break;
      }
    }
    if (inner.is_string()) text = inner.get<std::string>();
  } catch (const Error&) {  // shown unchanged
  }
  text = ReplaceInvalidUtf8(text.substr(0, kBytesMax));
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

bool CutAtStop(const std::vector<std::string>& stops, std::string* text) {
  size_t cut = std::string::npos;
  for (const std::string& stop : UsableStops(stops)) cut = std::min(cut, text->find(stop));
  if (cut == std::string::npos) return false;
  text->resize(cut);
  return true;
}

Generation GenerationOf(const Request& request, Completion completion, const Tokenizer* tokenizer,
                        const std::vector<int32_t>& end_tokens, const ThinkingEnd* thinking) {
  const bool own_text = tokenizer != nullptr && completion.token_ids.has_value();
  const std::vector<std::string>& until = request.sampling.until;
  Generation generation;
  if (thinking != nullptr) {
    SplitText split = own_text ? thinking->OfTokens(TokensOfText(end_tokens, &completion))
                               : thinking->OfText(completion.text);
    SetAnswer(std::move(split), until, EosText(tokenizer), ReasonOf(completion), &generation);
  } else {
    if (own_text) TakeTextOfTokens(*tokenizer, end_tokens, until, &completion);
    generation.text = std::move(completion.text);
    const bool cut = CutAtStop(until, &generation.text);
    generation.finish = cut ? FinishReason::kStop : ReasonOf(completion);
  }
  generation.tokens_in = completion.prompt_tokens >= 0
                             ? completion.prompt_tokens
                             : static_cast<int>(request.context_tokens.size());
  generation.tokens_out = own_text ? static_cast<int>(completion.token_ids->size())
                                   : std::max(completion.completion_tokens, 0);
  return generation;
}

}  // namespace evald::server
