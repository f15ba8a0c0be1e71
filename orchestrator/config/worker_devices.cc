#include "orchestrator/config/worker_devices.h"

#include <algorithm>
#include <thread>

#include "orchestrator/devices/device_choice.h"

namespace evald {

void ChooseWorkers(WorkersConfig* workers, const std::string& engine,
                   const std::filesystem::path& binaries) {
  workers->devices =
      ChooseDevices(workers->devices, engine, workers->count, [&] { return ListGpus(binaries); });
  workers->count = static_cast<int>(workers->devices.size());
  if (workers->threads_given) return;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  workers->threads = std::max(1, cores / workers->count);
}

}  // namespace evald
