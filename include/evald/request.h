#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"

namespace evald {

/// One kind of work of an engine, under the names of lm-evaluation-harness.
enum class RequestKind {
  kGenerateUntil,         ///< continue `context` until a stop string, EOS or max_gen_toks
  kLoglikelihood,         ///< log P(continuation | context), and whether it is the greedy one
  kLoglikelihoodRolling,  ///< log P(context), in disjoint windows of the context length
};

std::string_view ToString(RequestKind kind);
/// Throws Error(kInput) for an unknown name.
RequestKind RequestKindFromString(std::string_view name);

/// The end of a model's thinking, behind which its answer begins: a text, or the id of a token
/// (eval.yaml's think_end_token, as lm-evaluation-harness 0.4.13 has it). Default: neither, for a
/// model whose whole text is the answer.
struct ThinkEnd {
  std::string text;    ///< "" if the id is given
  int32_t token = -1;  ///< -1 if the text is given

  bool given() const { return token >= 0 || !text.empty(); }
  bool operator==(const ThinkEnd&) const = default;
  auto operator<=>(const ThinkEnd&) const = default;
};

/// The form of a ThinkEnd, for messages.
inline constexpr const char* kThinkEndForm =
    "a text such as \"</think>\", or the id of a token from 0 to 2147483647";

/// Reads an id, a text, or a text of digits, which is an id as in the harness. Nothing for any
/// other value.
std::optional<ThinkEnd> ParseThinkEnd(const Json& json);
/// The text or the id; null for neither.
Json ToJson(const ThinkEnd& end);

/// A task's settings of a generation. The engine adds the checkpoint's settings
/// (checkpoint/generation_config.h). The defaults are greedy.
struct SamplingParams {
  /// Stop strings. The generation is cut before the first one found. An empty stop string ends
  /// every generation after its first token.
  std::vector<std::string> until;
  int max_gen_toks = 256;  ///< tokens; lm-evaluation-harness's default
  bool do_sample = false;  ///< false: greedy
  /// Other settings of the task, under the names of transformers' GenerationConfig: {"temperature":
  /// 0.7, "top_k": null}. A null switches a setting off. If a setting is absent, the checkpoint's
  /// value holds.
  Json settings = Json::object();
  /// If given, the text up to the last such end is the model's thinking, and stop strings count
  /// only behind it. So no stop string ends the generation: the model could go on to think.
  ThinkEnd think_end;
};

/// One request. (doc_id, idx, repeat) is its key within its task.
struct Request {
  std::string task;    ///< the task's name; filled in by the worker
  int64_t doc_id = 0;  ///< row of the evaluated split, from 0
  int idx = 0;         ///< number of the request within its document (multiple choice: the choice)
  int repeat = 0;      ///< number of the repeat, from 0
  RequestKind kind = RequestKind::kGenerateUntil;
  std::string context;
  std::string continuation;  ///< kLoglikelihood only
  SamplingParams sampling;   ///< kGenerateUntil only
  /// Tokens of context and continuation under the checkpoint's tokenizer, encoded as the harness's
  /// Hugging Face backend does. Empty if the prepared task has no tokens (see PreparedTask).
  std::vector<int32_t> context_tokens;
  std::vector<int32_t> continuation_tokens;
};

Json ToJson(const SamplingParams& sampling);
/// Throws Error(kInput) "<where>: ..." for an unknown key or a wrong type.
SamplingParams SamplingFromJson(const Json& json, const std::string& where);

}  // namespace evald
