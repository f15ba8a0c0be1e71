#include "orchestrator/config/worker_devices.h"

#include <algorithm>

#include "base/cores.h"
#include "orchestrator/devices/device_choice.h"

namespace evald {

void ChooseWorkers(WorkersConfig* workers, const std::string& engine,
                   const std::filesystem::path& binaries) {
  if (workers->devices.empty()) return;
  workers->devices = ChooseDevices({workers->devices, workers->devices_per_worker, workers->count},
                                   engine, [&] { return ListGpus(binaries); });
  workers->devices_per_worker = 1;  // the groups have names now
  workers->count = static_cast<int>(workers->devices.size());
  if (workers->threads_given) return;
  workers->threads = std::max(1, UsableCores() / std::max(1, workers->count));
}

}  // namespace evald
