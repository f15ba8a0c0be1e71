#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "evald/request.h"
#include "worker/endpoint/call_fields.h"
#include "worker/endpoint/served_model.h"

namespace evald::endpoint {

struct Prompt {
  std::string text;  ///< for `echo`
  std::vector<int32_t> tokens;
};

/// A call for text, of /v1/completions or /v1/chat/completions, as it was read and checked.
struct Call {
  static constexpr int kNoLogprobs = -1;

  bool chat = false;
  std::vector<Prompt> prompts;  ///< at least one; each has at least one token
  int n = 1;                    ///< answers to each prompt
  /// The most tokens of an answer to each prompt, by prompt; the prompt and they fit into the
  /// context. 0: only the prompt is wanted (echo)
  std::vector<int> tokens_max;
  SamplingParams sampling;     ///< without max_gen_toks
  int64_t seed = 0;            ///< the same seed and prompt give the same answers
  int logprobs = kNoLogprobs;  ///< number of likeliest tokens besides each token
  bool echo = false;
  bool token_ids_as_names = false;  ///< tokens are named "token_id:17" (vLLM)
  bool stream = false;
  bool stream_usage = false;  ///< the stream ends with the usage

  size_t choices() const { return prompts.size() * static_cast<size_t>(n); }
};

/// Limits of one call.
inline constexpr size_t kPromptsMax = 4096;
inline constexpr size_t kChoicesMax = 4096;
inline constexpr int kTopLogprobsMax = 20;

/// Reads a body of /v1/completions (platform.openai.com/docs/api-reference/completions), with the
/// members of vLLM that docs/endpoint.md lists. Throws ApiError.
Call ReadCompletionCall(const Json& body, const ServedModel& model);

/// Reads a body of /v1/chat/completions. Throws ApiError.
Call ReadChatCall(const Json& body, const ServedModel& model);

/// The tokens of text as evald's runs give them to the engine: with special tokens, unless the text
/// begins with BOS (EncodeRequest).
std::vector<int32_t> EncodePrompt(const ServedModel& model, const std::string& text);

/// The parts of a chat call that make its prompt: `messages`, `add_generation_prompt`,
/// `continue_final_message` and `add_special_tokens`. Takes them from `fields` and renders them
/// with the checkpoint's template. Throws ApiError.
Prompt ReadChatPrompt(CallFields* fields, const ServedModel& model);

/// Takes `model`. Throws ApiError(404) if the call asks for another one.
void CheckModel(CallFields* fields, const ServedModel& model);

/// A list of token ids from 0 on. Throws ApiError.
std::vector<int32_t> ReadTokens(const Json& list, const std::string& key);

}  // namespace evald::endpoint
