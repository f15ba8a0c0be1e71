#pragma once

#include "worker/native/config.h"
#include "worker/native/config_reader.h"
#include "worker/native/families/family.h"

namespace evald::native {

/// Fills in windows and generation_positions, from sliding_window, use_sliding_window,
/// max_window_layers, layer_types and attention_chunk_size of config.json. Needs layers.
///
/// In transformers 5.23 these keys have an effect even if a family's attention has no windows:
/// generate() makes its cache by them (DynamicCache, get_layer_types_and_kwargs). Such a cache
/// drops keys that the attention would see. The forward pass of a prompt and log-likelihoods are
/// not affected.
///
/// Throws Error(kInput) for values that transformers cannot load or that make it fail.
void ReadWindows(const ConfigReader& reader, WindowRule rule, ModelConfig* config);

}  // namespace evald::native
