#pragma once

#include "worker/native/config.h"
#include "worker/native/config_reader.h"

namespace evald::native {

/// The defaults of a family's configuration class for keys that config.json lacks.
struct RopeDefaults {
  double theta = 10000;
  const char* theta_key = "rope_theta";
  double partial = 1;                 ///< rotated share of a head's dimensions
  const char* partial_key = nullptr;  ///< its key at the top; null: whole heads are rotated
  /// The key with the size of which `partial` is a share; null: the size of a head. GPT-NeoX takes
  /// it from a key that does not set the size of its heads.
  const char* head_dim_key = nullptr;
};

/// The rope of the layers of one type, in families whose layers differ in it.
struct LayerRope {
  const char* type = "";  ///< in layer_types and rope_parameters
  RopeDefaults defaults = {};
  bool scaled = false;  ///< rope_scaling at the top is this one's
};

/// The rope of one layer type from rope_parameters.<type>, and from the keys at the top that it
/// lacks (transformers 5.23, Gemma3TextConfig.convert_rope_params_to_dict). Needs head_dim and
/// max_positions of `config`. Throws Error(kInput), also for the scaling `dynamic`.
RopeConfig ReadLayerRope(const ConfigReader& reader, const LayerRope& layer,
                         const ModelConfig& config);

/// Sets config->rope and config->rotary_dim from either form of config.json: keys at the top and
/// rope_scaling, or rope_parameters (transformers 5,
/// RotaryEmbeddingConfigMixin.convert_rope_params_to_dict). Needs head_dim and max_positions.
/// Throws Error(kInput).
void ReadRope(const ConfigReader& reader, const RopeDefaults& defaults, ModelConfig* config);

}  // namespace evald::native
