#pragma once

#include <memory>

#include "worker/engine/engine.h"
#include "worker/native/backend.h"
#include "worker/native/native_settings.h"

namespace evald::native {

/// Computes on this machine's processors with options.threads threads, on the mapped weights.
/// Batches are as large as can be computed in a few seconds.
std::unique_ptr<Backend> MakeCpuBackend(const EngineOptions& options,
                                        const NativeSettings& settings);

}  // namespace evald::native
