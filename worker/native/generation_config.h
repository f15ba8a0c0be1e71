#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "worker/native/config.h"

namespace evald::native {

/// What transformers' generate() takes from a checkpoint beside the request.
struct GenerationDefaults {
  std::vector<int32_t> eos_ids;  ///< generation ends at any of these
  /// The first setting that changes greedy text and that this engine does not apply ("" for none):
  /// `generation_config.json: repetition_penalty: 1.1`.
  std::string unserved;
};

/// Reads `directory`/generation_config.json; where there is none, as in transformers, eos_token_id
/// comes from config.json. Throws Error(kInput) for a broken file.
GenerationDefaults ReadGenerationDefaults(const std::filesystem::path& directory,
                                          const ModelConfig& config);

}  // namespace evald::native
