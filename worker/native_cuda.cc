#include "worker/native/cuda/cuda_backend.h"
#include "worker/native/cuda/numa.h"
#include "worker/native/native_engine.h"
#include "worker/native_devices.h"

namespace evald {

// Threads that this one starts prepare a GPU's batches, so they run on the GPU's side of the
// machine.
std::unique_ptr<Engine> MakeNativeEngineFor(const EngineOptions& options) {
  if (!options.device.starts_with("cuda:")) return MakeNativeEngine(options);
  const int node = native::cuda::GpuOf(options.device).numa_node;
  native::cuda::BindNear(native::cuda::CpusNear(node));
  return native::cuda::MakeCudaEngine(options);
}

Json VisibleDevices() { return native::cuda::ListDevices(); }

}  // namespace evald
