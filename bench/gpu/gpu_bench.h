#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "bench/engine_bench.h"
#include "bench/gpu/limits.h"
#include "worker/engine/engine.h"
#include "worker/native/cuda/runtime.h"

namespace evald::bench {

Result RunPull(const Options& options);
Result RunSwap(const Options& options);
Result RunGpuGenerate(const Options& options);
Result RunGpuChoice(const Options& options);
Result RunGpuIdle(const Options& options);
Result RunProducts(const Options& options);
Result RunAttention(const Options& options);

/// The GPU that --gpu names, or the first visible one. It becomes current for this thread. Throws
/// Error(kInfrastructure) if there is none.
native::cuda::GpuInfo UseBenchGpu(const Options& options);

/// The checkpoint that --checkpoint names. Throws Error(kUsage) if the option is absent.
std::filesystem::path GpuCheckpoint(const Options& options);

LimitSizes SizesOf(const Options& options);

/// The native engine on that GPU, without a checkpoint. `settings` as under `engine:` in eval.yaml.
std::unique_ptr<Engine> GpuEngine(const Options& options, Json settings);

}  // namespace evald::bench
