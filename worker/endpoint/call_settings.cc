#include "worker/endpoint/call_settings.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/random_id.h"
#include "worker/endpoint/api_error.h"

namespace evald::endpoint {
namespace {

constexpr size_t kStopsMax = 64;
constexpr size_t kStopBytesMax = 1024;
constexpr int kAnswersMax = 128;
constexpr int64_t kTopKMax = 1 << 24;

// Temperature 0 is greedy. A setting that the call does not name has the checkpoint's value, else
// OpenAI's: temperature 1, top_p 1, no top_k.
void ReadSampling(CallFields* fields, const ServedModel& model, Call* call) {
  const auto temperature = fields->Number("temperature", 0, 100);
  const auto top_p = fields->Number("top_p", 0, 1);
  const auto top_k = fields->Integer("top_k", -1, kTopKMax);
  const auto min_p = fields->Number("min_p", 0, 1);
  const auto penalty = fields->Number("repetition_penalty", 0.01, 100);
  const auto least = fields->Integer("min_tokens", 0, INT32_MAX);
  SamplingParams& sampling = call->sampling;
  sampling.do_sample = !temperature || *temperature > 0;
  Json& settings = sampling.settings;
  settings["max_new_tokens"] = nullptr;  // the call's max_tokens holds, not the checkpoint's
  settings["max_length"] = nullptr;
  if (sampling.do_sample) {
    if (temperature) settings["temperature"] = *temperature;
    if (top_p) settings["top_p"] = *top_p;
    if (min_p) settings["min_p"] = *min_p;
    if (top_k || !model.has_top_k) settings["top_k"] = top_k && *top_k > 0 ? *top_k : 0;
  }
  if (penalty) settings["repetition_penalty"] = *penalty;
  if (least && *least > 0) settings["min_new_tokens"] = *least;
}

void RefuseUnserved(CallFields* fields) {
  fields->OnlyNeutral("logit_bias", {Json::object()});
  fields->OnlyNeutral("frequency_penalty", {0, 0.0});
  fields->OnlyNeutral("presence_penalty", {0, 0.0});
  fields->OnlyNeutral("ignore_eos", {false});
  fields->OnlyNeutral("include_stop_str_in_output", {false});
  fields->OnlyNeutral("skip_special_tokens", {true});
  fields->OnlyNeutral("spaces_between_special_tokens", {true});
  fields->OnlyNeutral("stop_token_ids", {Json::array()});
  fields->OnlyNeutral("response_format", {Json::object({{"type", "text"}})});
  fields->OnlyNeutral("use_beam_search", {false});
  fields->OnlyNeutral("prompt_logprobs", {});
  fields->Ignore({"user", "metadata", "store", "service_tier", "safety_identifier",
                  "prompt_cache_key", "priority", "request_id"});
}

void ReadStream(CallFields* fields, Call* call) {
  call->stream = fields->Bool("stream", false);
  const Json* options = fields->Find("stream_options");
  if (options == nullptr) return;
  if (!call->stream) throw ApiError(400, "stream_options needs stream: true", "stream_options");
  CallFields inner(*options);
  call->stream_usage = inner.Bool("include_usage", false);
  inner.Ignore({"include_obfuscation"});
  inner.OnlyNeutral("continuous_usage_stats", {false});
  inner.RefuseOthers();
}

}  // namespace

void ReadCommonSettings(CallFields* fields, const ServedModel& model, Call* call) {
  CheckModel(fields, model);
  ReadSampling(fields, model, call);
  RefuseUnserved(fields);
  ReadStream(fields, call);
  call->sampling.until = fields->Texts("stop", kStopsMax, kStopBytesMax);
  call->n = static_cast<int>(fields->Integer("n", 1, kAnswersMax).value_or(1));
  const auto seed = fields->Integer("seed", INT64_MIN, INT64_MAX);
  call->seed = seed ? *seed : static_cast<int64_t>(std::stoull(RandomId(2), nullptr, 16));
  call->token_ids_as_names = fields->Bool("return_tokens_as_token_ids", false);
}

void SetTokensMax(const ServedModel& model, std::optional<int64_t> asked,
                  std::optional<int64_t> fallback, const std::string& key, Call* call) {
  for (const Prompt& prompt : call->prompts) {
    const auto length = static_cast<int64_t>(prompt.tokens.size());
    const int64_t room = model.max_length - length;
    const int64_t wanted = asked ? *asked : fallback.value_or(std::max<int64_t>(room, 1));
    if (wanted > room) {
      throw ApiError(400,
                     fmt::format("the prompt has {} tokens and {} is {}, together {}: expected at "
                                 "most {}, the context length",
                                 length, key, wanted, length + wanted, model.max_length),
                     key, "context_length_exceeded");
    }
    call->tokens_max.push_back(static_cast<int>(wanted));
  }
}

void CheckModel(CallFields* fields, const ServedModel& model) {
  const auto asked = fields->Text("model");
  if (!asked || model.Answers(*asked)) return;
  throw ApiError(
      404, fmt::format("model '{}' is not served; this endpoint serves '{}'", *asked, model.name),
      "model", "model_not_found");
}

}  // namespace evald::endpoint
