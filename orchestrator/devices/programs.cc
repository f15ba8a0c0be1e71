#include "orchestrator/devices/programs.h"

#include <cstdlib>

#include "base/device_name.h"
#include "engines/engines.h"

namespace evald {

std::string WorkerProgram(const std::string& engine, const std::string& device) {
  return IsGpu(device) && EngineNamed(engine).gpus == GpuUse::kWorker ? kGpuWorker : kCpuWorker;
}

bool IsStartable(const std::string& program) {
  return program == kCpuWorker || program == kGpuWorker || program == "evald-metric";
}

std::filesystem::path ProgramPath(const std::filesystem::path& binaries,
                                  const std::string& program) {
  const char* named = std::getenv("EVALD_WORKER_CUDA");
  if (program == kGpuWorker && named != nullptr && named[0] != '\0') return named;
  return binaries / program;
}

}  // namespace evald
