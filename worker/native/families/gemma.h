#pragma once

#include "worker/native/families/family.h"

namespace evald::native {

/// The properties that Gemma 2 and Gemma 3 share: scaled embeddings, norms with weights from 0, a
/// query scale of its own and a cap on the logits. Throws Error(kInput).
void ReadGemma(const ConfigReader& reader, const CommonDefaults& defaults, ModelConfig* config);

/// Sizes and keys of both configuration classes.
CommonDefaults GemmaDefaults();

/// Norms before and after attention and feed-forward.
TensorNames GemmaNames();

/// A cap of soft-capped numbers; 0 if `key` is null, or absent without a default.
double ReadCap(const ConfigReader& reader, const char* key, double otherwise);

}  // namespace evald::native
