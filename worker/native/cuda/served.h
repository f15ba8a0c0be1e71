#pragma once

#include "worker/native/config.h"

namespace evald::native::cuda {

/// Throws Error(kInput) naming what the GPU's kernels lack for a model, and the remedy.
void RefuseUnserved(const ModelConfig& config);

}  // namespace evald::native::cuda
