#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <thread>

#include "bench/bench.h"
#include "bench/engine_bench.h"
#include "bench/run_evald.h"

namespace evald::bench {

// One long prompt at a time, each of other tokens, so that nothing is reused; in turns with oneDNN.
Result RunEnginePrefill(const Options& options) {
  const auto checkpoint = EngineCheckpoint(options);
  const ModelShape shape(checkpoint);
  const int tokens = options.quick ? 256 : 2048;
  const auto engine = LoadedEngine(checkpoint, {{"max_length", tokens}});
  const auto prompt = [&](uint64_t seed) {
    Request request;
    request.kind = RequestKind::kLoglikelihood;
    request.context_tokens = RandomTokens(tokens, shape.vocab_size, seed);
    request.continuation_tokens = {1};
    return request;
  };
  Answer(engine.get(), {prompt(0)});  // pages and buffers are there from now on
  std::vector<double> seconds, processor_seconds, fp32, bf16;
  for (uint64_t round = 1; round <= (options.quick ? 1 : 5); ++round) {
    const std::clock_t begin = std::clock();
    seconds.push_back(Answer(engine.get(), {prompt(round)}));
    processor_seconds.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
    const OneDnn product = MeasureOneDnn();
    fp32.push_back(product.fp32);
    bf16.push_back(product.bf16);
    // Its threads look for more work for a while.
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  const double flops = shape.PromptFlops(tokens);
  Result result;
  result.value = flops / Median(seconds) / 1e9;
  result.unit = "GFLOP/s";
  result.baseline = "oneDNN's fastest large product on as many cores, fp32 or bf16";
  result.baseline_value = std::max(Median(fp32), Median(bf16));
  result.target = 0.7;
  result.details = {{"tokens", tokens},
                    {"tokens_per_s", tokens / Median(seconds)},
                    {"seconds", seconds},
                    {"processor_seconds", processor_seconds},
                    {"gflops_of_one_processor", flops / Median(processor_seconds) / 1e9},
                    {"onednn", OneDnnVersion()},
                    {"onednn_fp32", fp32},
                    {"onednn_bf16", bf16},
                    {"engine", engine->Info().device}};
  if (OneDnnVersion().empty())
    result.details["skipped"] = "built without oneDNN: install libdnnl-dev and build again";
  return result;
}

}  // namespace evald::bench
