#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/jsonl.h"
#include "checkpoint/generation_config.h"
#include "evald/error.h"

// generation_config.json, or the same keys of config.json, of a checkpoint. Settings that are
// accepted are ones that the engine can compute with, and can be shown to people.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using evald::GenerationConfig;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const bool own : {true, false}) {
    for (const auto use : {GenerationConfig::Use::kCheckpoint, GenerationConfig::Use::kIgnore}) {
      try {
        const auto config =
            GenerationConfig::Parse(evald::ParseJson(text, "fuzz"), "fuzz", own, use);
        for (const bool samples : {true, false}) {
          evald::SamplingParams sampling;
          sampling.do_sample = samples;
          const evald::GenerationSettings settings = config.For(sampling);
          if (samples && !(settings.temperature > 0)) std::abort();
          if (settings.top_k < 0 || settings.top_p < 0 || settings.top_p > 1 ||
              settings.min_length < 0)
            std::abort();
          if (!(settings.repetition_penalty > 0) || settings.no_repeat_ngram_size < 0) std::abort();
          for (const evald::TokenBias& word : settings.bad_words) {
            if (word.tokens.empty()) std::abort();
          }
          if (!config.InForce(sampling).is_object()) std::abort();
        }
      } catch (const evald::Error&) {
      }
    }
  }
  return 0;
}
