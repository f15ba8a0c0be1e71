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

/// A sequence of tokens, and what is added to the logit of its last token where the others precede.
struct TokenBias {
  std::vector<int32_t> tokens;
  float bias = 0;
};

/// From `start` generated tokens on, the logits of the end tokens grow by |logit| * (factor^n - 1),
/// n counting from 1.
struct LengthPenalty {
  int start = 0;
  double factor = 1;
};

/// The settings that decide the tokens of one generate_until request: those of transformers'
/// GenerationConfig (5.23) that are in force, each at a value that does nothing where it is not.
struct GenerationSettings {
  bool do_sample = false;  ///< false: greedy
  // Of sampling alone, in the order in which they act.
  double temperature = 1;
  double top_h = 0;  ///< 0: none
  int top_k = 0;     ///< 0: all
  double top_p = 1;
  double min_p = 0;
  double typical_p = 1;
  double epsilon_cutoff = 0;
  double eta_cutoff = 0;
  // Of every generation, in the order in which they act, before those of sampling.
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
  std::optional<int> max_new_tokens;  ///< the checkpoint's: goes before all that the request says
  std::optional<int> max_length;      ///< the request's: tokens, with the prompt

  /// Whether a logit is changed by anything but temperature, top_k and top_p.
  bool changes_logits() const;
};

/// The generation settings that a checkpoint ships: generation_config.json, or where there is none
/// the same keys of config.json, as transformers 5.23 reads them. Requests are put on top as the
/// `hf` backend of lm-evaluation-harness 0.4.13 and transformers' generate() do: request, then
/// checkpoint, then transformers' defaults (of which one does something: top_k is 50).
class GenerationConfig {
 public:
  /// What eval.yaml's `generation_config` says.
  enum class Use {
    kCheckpoint,  ///< as above
    kIgnore,      ///< only what the request sets; of the checkpoint its eos_token_id alone
  };

  /// Nothing but transformers' defaults.
  GenerationConfig() = default;

  /// A `directory` that is not there has no settings. Throws Error(kInput) for a broken file. Its
  /// settings are judged by For: a run that generates nothing needs none.
  static GenerationConfig Read(const ReadFolder& directory, Use use);
  /// The same of the file's content. `where` names the file in errors; `own` says that it is
  /// generation_config.json, where every key is a setting, and not config.json. Throws
  /// Error(kInput).
  static GenerationConfig Parse(const Json& json, const std::string& where, bool own, Use use);

  /// What is in force for a request. Throws Error(kInput), naming the file, the key, what was found
  /// and the remedy, for a key that evald does not know, a value that is none, and a setting that
  /// evald does not serve.
  GenerationSettings For(const SamplingParams& sampling) const;

  /// The same for people and results, under transformers' names in alphabetical order: `do_sample`,
  /// when sampling `temperature`, `top_k` and `top_p`, and all others that do something.
  Json InForce(const SamplingParams& sampling) const;

 private:
  Json Merged(const SamplingParams& sampling) const;

  std::string where_ = "generation_config.json";
  Json values_ = Json::object();  ///< those that are not null
  std::string unknown_;           ///< the first key that is not known, with what is wrong; or ""
  bool ignored_ = false;
};

/// Throws Error(kInput) "<where>: ..." when `key: value` cannot stand in generation_kwargs.
/// Settings of sampling may have any value where nothing is drawn: transformers does not look at
/// them there.
void CheckGenerationSetting(const std::string& key, const Json& value, bool do_sample,
                            const std::string& where);

/// Whether config.json and generation_config.json may have this key for transformers' generate().
bool IsGenerationKey(const std::string& key);

/// eos_token_id of config.json or generation_config.json: absent, null, an integer or a list.
/// Throws Error(kInput).
std::vector<int32_t> ParseEosIds(const Json& json, const std::string& where);

}  // namespace evald
