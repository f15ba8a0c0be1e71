#include <fmt/format.h>

#include "base/device_name.h"
#include "base/own_folder.h"
#include "evald/error.h"
#include "worker/native/cuda/cuda_backend.h"
#include "worker/native/cuda/numa.h"
#include "worker/native/native_engine.h"
#include "worker/native/native_settings.h"
#include "worker/native_devices.h"
#include "worker/parity/checked_engine.h"

namespace evald {
namespace {

parity::CheckSettings CheckSettingsOf(const EngineOptions& options) {
  parity::CheckSettings check;
  const double seconds = native::ReadNativeSettings(options.settings).parity_seconds;
  check.budget = std::chrono::milliseconds(static_cast<int64_t>(seconds * 1e3));
  check.threads = options.threads;
  const std::filesystem::path state = UserFolder("XDG_STATE_HOME", ".local/state");
  if (!state.empty()) check.memory = state / "parity";
  return check;
}

void RefuseSeveral(const std::string& device) {
  const size_t gpus = GpuUuids(device).size();
  if (gpus == 1) return;
  throw Error(
      ErrorKind::kUsage,
      fmt::format("engine 'native' computes on one GPU, and this worker has {}", gpus),
      "set 'workers.devices_per_worker' to 1, or use an engine with a server, such as vllm");
}

}  // namespace

// Threads that this one starts prepare a GPU's batches, so they run on the GPU's side of the
// machine.
std::unique_ptr<Engine> MakeNativeEngineFor(const EngineOptions& options) {
  if (!IsGpu(options.device)) return MakeNativeEngine(options);
  RefuseSeveral(options.device);
  const int node = native::cuda::GpuOf(options.device).numa_node;
  native::cuda::BindNear(native::cuda::CpusNear(node));
  return parity::Checked(native::cuda::MakeCudaEngine(options), CheckSettingsOf(options));
}

Json VisibleDevices() { return native::cuda::ListDevices(); }

}  // namespace evald
