#include "base/log.h"
#include "bench/gpu/gpu_bench.h"
#include "bench/program.h"

namespace evald::bench {
namespace {

const std::vector<Workload> kWorkloads = {
    {"pull",
     "GB/s of weights from shared memory to the GPU, against copies from page-locked memory",
     RunPull},
    {"swap",
     "seconds from a staged checkpoint to its first token, against its bytes' time on the bus",
     RunSwap},
    {"gpu-generate", "tokens/s of 1,000 requests with the lengths of a chat trace, against 16,000",
     RunGpuGenerate},
    {"gpu-choice", "5-shot MMLU: questions/s, and TFLOP/s against a large product", RunGpuChoice},
    {"gpu-idle", "share of time in which the GPU computes during evald run of four tasks",
     RunGpuIdle},
    {"products", "the cost of products whose rows do not depend on the batch", RunProducts},
    {"attention", "seconds of one layer's attention in four batches, against its least",
     RunAttention},
};

void Declare(Command app, Options* options) {
  app.AddOption("--checkpoint", &options->checkpoint,
                "A staged checkpoint (bench/gpu/make_checkpoint.py)");
  app.AddOption("--gpu", &options->gpu, "UUID of the GPU; the first visible one by default");
  app.AddOption("--lengths", &options->lengths,
                "gpu-generate: write the requests' lengths there too, for bench/gpu/peers.py");
  app.AddOption("--concurrency", &options->concurrency,
                "gpu-generate: sequences at once; by default 256, 512 and 1,000 in turn");
  app.AddFlag("--graphs,!--no-graphs", &options->graphs,
              "--no-graphs: capture no batch, if a driver refuses that");
  app.AddFlag("--fast", &options->fast, "Let numbers depend on the batch, if that is faster");
}

Json Device(const Options& options) {
  const native::cuda::GpuInfo gpu = UseBenchGpu(options);
  return {{"name", gpu.name},
          {"uuid", gpu.uuid},
          {"memory_bytes", gpu.memory_bytes},
          {"versions", native::cuda::RuntimeVersions()}};
}

}  // namespace
}  // namespace evald::bench

int main(int argc, char** argv) {
  using namespace evald::bench;
  evald::SetUpLog("evald-gpu-bench", "info");  // to standard error
  return RunProgram({"evald-gpu-bench",
                     "Benchmarks of evald on a GPU, each with its limit measured in the same run.",
                     kWorkloads, Declare, Device},
                    argc, argv);
}
