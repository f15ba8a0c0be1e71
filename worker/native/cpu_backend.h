#pragma once

#include <memory>

#include "worker/engine.h"
#include "worker/native/backend.h"
#include "worker/native/native_settings.h"

namespace evald::native {

/// Computes on this machine's processors, with options.threads threads, where the weights are
/// mapped. Batches are as large as may be computed in a few seconds.
std::unique_ptr<Backend> MakeCpuBackend(const EngineOptions& options,
                                        const NativeSettings& settings);

}  // namespace evald::native
