#pragma once

#include <memory>

#include "evald/json.h"
#include "worker/engine.h"

/// What the native engine of a worker program computes on. The one thing in which evald-worker
/// (native_cpu.cc) and evald-worker-cuda (native_cuda.cc) differ.
namespace evald {

/// The native engine on options.device. Throws Error(kUsage) for a device that this program does
/// not know, Error(kInfrastructure) for one that is not there, naming those that are.
std::unique_ptr<Engine> MakeNativeEngineFor(const EngineOptions& options);

/// The GPUs that this program would compute on, for --list-devices (docs/protocol.md, "Devices"):
/// {"devices": [{"id": "cuda:GPU-8f6d…", "name", "memory_bytes", "numa_node", "compute"}…],
///  "driver": "…"}. Does not throw.
Json VisibleDevices();

}  // namespace evald
