#include "bench/gpu/gpu_bench.h"

#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "bench/engine_bench.h"
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
  return gpus.front();  // UseGpu knows another spelling of it
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
  EngineOptions engine;
  engine.name = "native";
  engine.settings = std::move(settings);
  engine.device = "cuda:" + UseBenchGpu(options).uuid;
  engine.threads = static_cast<int>(std::thread::hardware_concurrency());
  return native::cuda::MakeCudaEngine(engine);
}

Answered AnswerAll(Engine* engine, const std::vector<Request>& requests) {
  Answered answered;
  answered.generations.resize(requests.size());
  const int64_t begin = MonotonicMicros();
  const auto elapsed = [&] { return static_cast<double>(MonotonicMicros() - begin) / 1e6; };
  for (size_t i = 0; i < requests.size(); ++i) engine->Submit(i, requests[i]);
  while (engine->pending() > 0) {
    for (Finished& finished : engine->Step(std::chrono::milliseconds(10'000))) {
      if (answered.first_seconds == 0) answered.first_seconds = elapsed();
      answered.tokens_in += finished.generation.tokens_in;
      answered.tokens_out += finished.generation.tokens_out;
      answered.generations.at(finished.tag) = std::move(finished.generation);
    }
  }
  answered.seconds = elapsed();
  return answered;
}

Workout::Workout(const fs::path& checkpoint) {
  const ModelShape shape(checkpoint);
  layer_weights = shape.layer_weights;
  head_weights = shape.head_weights;
  query_size = shape.query_size;
  kv_size = shape.kv_size;
  layers = shape.layers;
  vocab_size = shape.vocab_size;
}

double Workout::Flops(double rows, double pairs, double heads) const {
  return 2 * rows * layer_weights + 4 * pairs * query_size * layers + 2 * heads * head_weights;
}

}  // namespace evald::bench
