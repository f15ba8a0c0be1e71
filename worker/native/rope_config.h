#pragma once

#include "worker/native/config.h"
#include "worker/native/config_reader.h"

namespace evald::native {

/// What a family's configuration class takes where config.json is silent.
struct RopeDefaults {
  double theta = 10000;
  const char* theta_key = "rope_theta";
  double partial = 1;                 ///< share of a head's dimensions that is rotated
  const char* partial_key = nullptr;  ///< its name at the top; null: whole heads are rotated
  /// What the share is of, where it is not of the heads' own dimensions: GPT-NeoX looks at a key
  /// that its heads ignore.
  const char* head_dim_key = nullptr;
};

/// Sets config->rope and config->rotary_dim from both spellings: keys at the top and rope_scaling,
/// or rope_parameters (transformers 5, RotaryEmbeddingConfigMixin.convert_rope_params_to_dict).
/// Needs head_dim and max_positions. Throws Error(kInput).
void ReadRope(const ConfigReader& reader, const RopeDefaults& defaults, ModelConfig* config);

}  // namespace evald::native
