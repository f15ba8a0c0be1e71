#pragma once

#include <memory>

#include "evald/json.h"
#include "worker/engine/engine.h"

/// The devices of a worker program's native engine. This is the only difference between
/// evald-worker (native_cpu.cc) and evald-worker-cuda (native_cuda.cc).
namespace evald {

/// The native engine on options.device. Throws Error(kUsage) if this program does not know such a
/// device. Throws Error(kInfrastructure) if the device is absent; the error names those that are
/// there.
std::unique_ptr<Engine> MakeNativeEngineFor(const EngineOptions& options);

/// The GPUs that this program would compute on, for --list-devices (docs/protocol.md, "Devices"):
/// {"devices": [{"id": "cuda:GPU-8f6d…", "name", "memory_bytes", "numa_node", "compute"}…],
///  "driver": "…"}. Does not throw.
Json VisibleDevices();

}  // namespace evald
