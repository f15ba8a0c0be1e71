#include "bench/gpu/gpu_bench.h"

#include <thread>
#include <utility>

#include "evald/error.h"
#include "worker/native/cuda/cuda_backend.h"

namespace evald::bench {
namespace fs = std::filesystem;

native::cuda::GpuInfo UseBenchGpu(const Options& options) {
  const std::vector<native::cuda::GpuInfo> gpus = native::cuda::ListGpus();
  if (gpus.empty()) {
    throw Error(ErrorKind::kInfrastructure, "no GPU is visible",
                "is there a driver (nvidia-smi), and does CUDA_VISIBLE_DEVICES hide none?");
  }
  const std::string uuid = options.gpu.empty() ? gpus.front().uuid : options.gpu;
  native::cuda::UseGpu(uuid);
  for (const native::cuda::GpuInfo& gpu : gpus) {
    if (gpu.uuid == uuid) return gpu;
  }
  return gpus.front();  // UseGpu accepted another spelling of the UUID
}

fs::path GpuCheckpoint(const Options& options) {
  if (options.checkpoint.empty()) {
    throw Error(ErrorKind::kUsage, "this workload needs --checkpoint",
                "make one with: python3 bench/gpu/make_checkpoint.py FOLDER --tokenizer FOLDER");
  }
  return options.checkpoint;
}

LimitSizes SizesOf(const Options& options) {
  return options.quick ? LimitSizes::Quick() : LimitSizes();
}

std::unique_ptr<Engine> GpuEngine(const Options& options, Json settings) {
  if (options.fast) settings["fast"] = true;
  if (!options.graphs) settings["graphs"] = false;
  EngineOptions engine;
  engine.name = "native";
  engine.settings = std::move(settings);
  engine.device = "cuda:" + UseBenchGpu(options).uuid;
  engine.threads = static_cast<int>(std::thread::hardware_concurrency());
  return native::cuda::MakeCudaEngine(engine);
}

}  // namespace evald::bench
