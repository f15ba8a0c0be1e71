#pragma once

#include <memory>

#include "worker/engine/engine.h"
#include "worker/native/backend.h"
#include "worker/native/native_settings.h"

namespace evald {

/// The engine for checkpoints of the families in worker/native/families (safetensors bf16, fp16 or
/// fp32, tokenizer.json), on the CPU. Serves all request kinds like lm-evaluation-harness's `hf`
/// backend in fp32 (lm_eval 0.4.13, models/huggingface.py). Deterministic: an answer depends only
/// on the checkpoint, the request, the seed and the instruction set. config.h, weights.h and
/// checkpoint/generation_config.h say what is supported and what is refused by name.
///
/// Settings, all optional (docs/engines.md has those of GPUs):
///
///     max_length: N       context length in tokens, at most the checkpoint's
///                         (the default): n_positions, else max_position_embeddings
///     kv_cache: 4GiB      memory for keys and values, taken as it is needed; by default a quarter
///                         of what the host and the process's cgroups have available, times the
///                         worker's share of the processors
///     concurrency: 128    sequences computed at once
///     chunk: 512          rows (tokens) computed at once, at most
///     kernels: auto       avx512, avx2 or portable; avx512_bf16 (cpu.h) only by name
///
/// Submit throws Error(kInput) for a request that can never be answered. The engine's other
/// requests are not affected.
std::unique_ptr<Engine> MakeNativeEngine(const EngineOptions& options);

/// The same on any backend.
std::unique_ptr<Engine> MakeNativeEngineOn(std::unique_ptr<native::Backend> backend,
                                           const native::NativeSettings& settings, uint64_t seed);

}  // namespace evald
