#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"

namespace evald {

/// One kind of thing an engine can do, under the names of lm-evaluation-harness.
enum class RequestKind {
  kGenerateUntil,         ///< continue `context` until a stop string, EOS or max_gen_toks
  kLoglikelihood,         ///< log P(continuation | context), and whether it is the greedy one
  kLoglikelihoodRolling,  ///< log P(context), in disjoint windows of the context length
};

std::string_view ToString(RequestKind kind);
/// Throws Error(kInput) for an unknown name.
RequestKind RequestKindFromString(std::string_view name);

/// What a task asks of a generation. The engine adds what the checkpoint sets
/// (checkpoint/generation_config.h). The defaults are greedy.
struct SamplingParams {
  /// Stop strings; the generation is cut before the first found. An empty one ends every generation
  /// after its first token.
  std::vector<std::string> until;
  int max_gen_toks = 256;  ///< tokens; lm-evaluation-harness's default
  bool do_sample = false;  ///< false: greedy
  /// The further settings that the task gives, under the names of transformers' GenerationConfig:
  /// {"temperature": 0.7, "top_k": null}. A null switches a setting off; what is absent is the
  /// checkpoint's.
  Json settings = Json::object();
};

/// One request: (doc_id, idx, repeat) is its key within its task.
struct Request {
  std::string task;    ///< the task's name; filled in by the worker
  int64_t doc_id = 0;  ///< row of the evaluated split, from 0
  int idx = 0;         ///< which of the document's requests (the choice, for multiple choice)
  int repeat = 0;      ///< which of the task's repeats, from 0
  RequestKind kind = RequestKind::kGenerateUntil;
  std::string context;
  std::string continuation;  ///< kLoglikelihood only
  SamplingParams sampling;   ///< kGenerateUntil only
  /// Tokens of context and continuation under the checkpoint's tokenizer, encoded as the harness's
  /// Hugging Face backend does. Empty when the prepared task has no tokens (see PreparedTask).
  std::vector<int32_t> context_tokens;
  std::vector<int32_t> continuation_tokens;
};

Json ToJson(const SamplingParams& sampling);
/// Throws Error(kInput) "<where>: ..." for an unknown key or a wrong type.
SamplingParams SamplingFromJson(const Json& json, const std::string& where);

}  // namespace evald
