#include "worker/native/generation_config.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::native {
namespace {

// Settings of transformers' GenerationConfig that change which token is the greedy one, and the
// value at which they do nothing.
const Json& NeutralValues() {
  static const Json values = {{"repetition_penalty", 1.0},
                              {"encoder_repetition_penalty", 1.0},
                              {"no_repeat_ngram_size", 0},
                              {"encoder_no_repeat_ngram_size", 0},
                              {"min_length", 0},
                              {"min_new_tokens", 0},
                              {"num_beams", 1},
                              {"guidance_scale", 1.0},
                              {"penalty_alpha", nullptr},
                              {"dola_layers", nullptr},
                              {"bad_words_ids", nullptr},
                              {"sequence_bias", nullptr},
                              {"suppress_tokens", nullptr},
                              {"begin_suppress_tokens", nullptr},
                              {"forced_bos_token_id", nullptr},
                              {"forced_eos_token_id", nullptr},
                              {"exponential_decay_length_penalty", nullptr},
                              {"stop_strings", nullptr},
                              {"watermarking_config", nullptr}};
  return values;
}

}  // namespace

GenerationDefaults ReadGenerationDefaults(const std::filesystem::path& directory,
                                          const ModelConfig& config) {
  const std::filesystem::path path = directory / "generation_config.json";
  GenerationDefaults defaults;
  if (!std::filesystem::exists(path)) {
    defaults.eos_ids = config.eos_ids;
    return defaults;
  }
  const Json json = ParseJson(ReadFile(path), path.string());
  if (!json.is_object()) throw Error(ErrorKind::kInput, path.string() + ": found no JSON object");
  defaults.eos_ids = ParseEosIds(json, path.string());
  for (const auto& [key, neutral] : NeutralValues().items()) {
    const auto found = json.find(key);
    if (found == json.end() || found->is_null() || *found == neutral) continue;
    if (found->is_array() && found->empty()) continue;
    defaults.unserved = fmt::format("{}: {}: {}", path.string(), key,
                                    found->dump(-1, ' ', false, Json::error_handler_t::replace));
    break;
  }
  return defaults;
}

}  // namespace evald::native
