#pragma once

#include <memory>
#include <string>

#include "evald/json.h"
#include "worker/engine/engine.h"
#include "worker/native/cuda/runtime.h"

namespace evald::native::cuda {

/// The GPU with a device's name ("cuda:GPU-8f6d…"). If no visible GPU has this name, throws
/// Error(kInfrastructure), which names the visible ones.
GpuInfo GpuOf(const std::string& device);

/// The native engine on the GPU options.device. Unless `fast` is set, it is deterministic as on the
/// CPU (native_engine.h), with the kind of GPU in place of the instruction set. Computes in the
/// type in which most of the weights are stored.
///
/// Settings, all optional, besides max_length:
///
///     kv_cache: 40GiB    memory for keys and values, taken when a checkpoint is loaded; by default
///                        all that is left beside the weights and what computing takes
///     concurrency: 512   sequences computed at once
///     chunk: 8192        rows (tokens) computed at once, at most
///     fast: false        the library's own choice of algorithms: quicker, and the last bits depend
///                        on the batch
///     graphs: true       batches of single tokens are captured and replayed; changes no bit
///     copy_threads: N    of the pull (pull.h)
///
/// A checkpoint of the same shape as the one before takes its memory, device, cache and graphs
/// over. Errors of the device are DeviceError. After an error that makes the context unusable
/// (sticky), the engine is Broken.
std::unique_ptr<Engine> MakeCudaEngine(const EngineOptions& options);

/// As VisibleDevices of worker/native_devices.h.
Json ListDevices();

}  // namespace evald::native::cuda
