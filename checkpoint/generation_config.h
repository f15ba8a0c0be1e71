#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/read_roots.h"
#include "evald/json.h"
#include "evald/request.h"

namespace evald {

/// A sequence of tokens, and the bias of the last token's logit if the others precede it.
struct TokenBias {
  std::vector<int32_t> tokens;
  float bias = 0;
};

/// From `start` generated tokens on, the logits of the end tokens grow by |logit| * (factor^n - 1).
/// n counts from 1.
struct LengthPenalty {
  int start = 0;
  double factor = 1;
};

/// The settings that decide the tokens of one generate_until request. They are those settings of
/// transformers' GenerationConfig (5.23) that have an effect. A setting that is not in force has a
/// value without an effect.
struct GenerationSettings {
  bool do_sample = false;  ///< false: greedy
  // Settings of sampling alone, in the order in which they act.
  double temperature = 1;
  double top_h = 0;  ///< 0: none
  int top_k = 0;     ///< 0: all
  double top_p = 1;
  double min_p = 0;
  double typical_p = 1;
  double epsilon_cutoff = 0;
  double eta_cutoff = 0;
  // Settings of every generation, in the order in which they act. They act before those of
  // sampling.
  std::vector<TokenBias> sequence_bias;
  double encoder_repetition_penalty = 1;
  double repetition_penalty = 1;
  int no_repeat_ngram_size = 0;
  int encoder_no_repeat_ngram_size = 0;
  std::vector<TokenBias> bad_words;  ///< biases of minus infinity
  int min_length = 0;                ///< tokens, with the prompt
  int min_new_tokens = 0;
  int32_t forced_bos = -1;          ///< -1: none
  std::vector<int32_t> forced_eos;  ///< the last token that fits is one of these
  bool remove_invalid_values =
      false;  ///< NaN becomes 0, an infinity the largest number of its sign
  std::optional<LengthPenalty> length_penalty;
  std::vector<int32_t> suppressed;
  std::vector<int32_t> suppressed_at_begin;

  std::vector<int32_t> eos_ids;       ///< generation ends at any of these
  std::optional<int> max_new_tokens;  ///< tokens; used instead of max_length and max_gen_toks
  std::optional<int> max_length;      ///< the request's: tokens, with the prompt

  /// Whether any setting other than temperature, top_k and top_p changes a logit.
  bool changes_logits() const;
};

/// The generation settings of a checkpoint, as transformers 5.23 reads them:
/// generation_config.json, or the same keys of config.json if there is no generation_config.json.
/// The order of precedence is that of the `hf` backend of lm-evaluation-harness 0.4.13 and of
/// transformers' generate(): the request, then the checkpoint, then transformers' defaults. Only
/// one of those defaults has an effect: top_k is 50.
class GenerationConfig {
 public:
  /// The value of eval.yaml's `generation_config`.
  enum class Use {
    kCheckpoint,  ///< as above
    kIgnore,      ///< only the request's settings, and the checkpoint's eos_token_id
  };

  /// Only transformers' defaults.
  GenerationConfig() = default;

  /// If `directory` does not exist, it has no settings. Throws Error(kInput) for a broken file. The
  /// settings themselves are checked in For, since a run that generates nothing needs none.
  static GenerationConfig Read(const ReadFolder& directory, Use use);
  /// The same for the file's content. `where` names the file in errors. `own`: the file is
  /// generation_config.json, in which every key is a setting, and not config.json. Throws
  /// Error(kInput).
  static GenerationConfig Parse(const Json& json, const std::string& where, bool own, Use use);

  /// The settings in force for a request. Throws Error(kInput) for a key with an effect that evald
  /// does not know, for an invalid value, and for a setting that evald does not serve. The error
  /// names the file, the key, the value found and the remedy.
  GenerationSettings For(const SamplingParams& sampling) const;

  /// The same for people and results, under transformers' names in alphabetical order: `do_sample`;
  /// `temperature`, `top_k` and `top_p` if tokens are drawn; and all others that have an effect.
  Json InForce(const SamplingParams& sampling) const;

 private:
  Json Merged(const SamplingParams& sampling) const;

  std::string where_ = "generation_config.json";
  Json values_ = Json::object();  ///< those that are not null
  std::string unknown_;           ///< the first unknown key with an effect and its fault; or ""
  bool ignored_ = false;
};

/// Throws Error(kInput) "<where>: ..." if generation_kwargs may not contain `key: value`. Settings
/// of sampling may have any value if no token is drawn: transformers does not look at them then.
void CheckGenerationSetting(const std::string& key, const Json& value, bool do_sample,
                            const std::string& where);

/// Whether config.json and generation_config.json may have this key for transformers' generate().
bool IsGenerationKey(const std::string& key);

/// eos_token_id of config.json or generation_config.json: absent, null, an integer or a list.
/// Throws Error(kInput).
std::vector<int32_t> ParseEosIds(const Json& json, const std::string& where);

}  // namespace evald
