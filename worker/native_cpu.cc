#include <fmt/format.h>

#include "base/device_name.h"
#include "evald/error.h"
#include "worker/native/native_engine.h"
#include "worker/native_devices.h"

namespace evald {

std::unique_ptr<Engine> MakeNativeEngineFor(const EngineOptions& options) {
  if (IsGpu(options.device)) {
    throw Error(
        ErrorKind::kUsage,
        fmt::format("evald-worker computes on no GPU, and was told to on {}", options.device),
        "evald-worker-cuda does");
  }
  return MakeNativeEngine(options);
}

Json VisibleDevices() { return {{"devices", Json::array()}, {"driver", ""}}; }

}  // namespace evald
