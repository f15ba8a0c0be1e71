#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/generation_config.h"
#include "evald/generation.h"
#include "evald/json.h"
#include "evald/request.h"
#include "tokenizer/tokenizer.h"
#include "worker/engine/thinking.h"

/// Requests and replies of the completions API, as OpenAI's legacy /v1/completions defines it and
/// vLLM, SGLang, llama-server and transformers serve offer it. Pure functions.
namespace evald::server {

/// The parts that all requests share.
struct CompletionsStyle {
  std::string model;
  std::string reply_model;  ///< the model that the server's first reply named; "": none
  bool tokens = false;      ///< the prompt as token ids; else as text
  size_t stops_max = 4;     ///< stop strings that the API takes; further ones are cut locally only
  bool send_seed = true;
  uint64_t seed = 0;
  GenerationConfig generation;  ///< the checkpoint's settings
  int max_length = 0;           ///< of the server's context; 0: not known
  Json extra = Json::object();  ///< members added as they are
};

/// The body of a generate_until request, with the settings that are in force: temperature, top_p,
/// top_k, min_p, repetition_penalty and min_tokens are members of these names. Throws Error(kInput)
/// naming a setting that no server takes, unless `extra` has it. max_length needs `prompt_tokens`,
/// which also keeps a checkpoint's max_new_tokens within the context; -1: not known. No stop
/// strings are sent if the request says where thinking ends: the server would find them in the
/// thinking.
Json GenerateBody(const CompletionsStyle& style, const Request& request, int prompt_tokens = -1);
/// The body that asks for the log-probabilities of the prompt `tokens` (echo), with one generated
/// token, which is ignored: several servers refuse to generate none.
Json ScoreBody(const CompletionsStyle& style, const std::vector<int32_t>& tokens);

/// One token with its log-probability.
struct ScoredToken {
  double logprob = 0;  ///< NaN for the prompt's first, which has none
  double best = 0;     ///< the highest of top_logprobs at this place; NaN when there is none
  std::vector<std::pair<std::string, double>> top;
};

/// A parsed reply.
struct Completion {
  std::string text;
  std::string finish_reason;
  bool ended_by_eos = false;  ///< the server says so by a `stop_reason` of null (vLLM)
  int prompt_tokens = -1;     ///< -1: the server does not say
  int completion_tokens = -1;
  std::vector<ScoredToken> tokens;  ///< empty: no logprobs in the reply
  /// The generated tokens, with the end token (vLLM, return_token_ids); none: it does not say
  std::optional<std::vector<int32_t>> token_ids = std::nullopt;
  std::string model = {};  ///< "": the server does not say
};

/// Parses a reply. Throws Error(kInfrastructure) if the body is no completions reply, such as a
/// proxy's page or half a body. Invalid UTF-8 and lone surrogates are replaced by U+FFFD.
Completion ParseCompletion(std::string_view body);

/// Throws Error(kInfrastructure) if the reply is of another model than the server's first reply:
/// its weights were exchanged, or a proxy asks several models.
void RequireSameModel(const Completion& completion, const CompletionsStyle& style);

/// Parses the reply to a generate_until request. Throws Error(kInfrastructure) also for a reply of
/// another model, and for one without a finish_reason, which may be cut short.
Completion ParseAnswer(std::string_view body, const CompletionsStyle& style);

/// The message in an error reply, or the start of the body; at most 300 bytes, one line.
std::string ErrorText(std::string_view body);

/// Cuts `text` at the first stop string found in it. Returns whether there was one.
bool CutAtStop(const std::vector<std::string>& stops, std::string* text);

/// The answer to a generate_until request. With `tokenizer`, the text is that of the reply's
/// tokens, if the reply has them: without special tokens and the token of `end_tokens` that ended
/// it, cut before each stop string in turn, as in the native engine. Null: the server's text. With
/// `thinking`, the thinking is split from it before.
Generation GenerationOf(const Request& request, Completion completion,
                        const Tokenizer* tokenizer = nullptr,
                        const std::vector<int32_t>& end_tokens = {},
                        const ThinkingEnd* thinking = nullptr);

}  // namespace evald::server
