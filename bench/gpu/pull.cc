#include "worker/native/cuda/pull.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "base/clock.h"
#include "bench/gpu/gpu_bench.h"
#include "bench/run_evald.h"
#include "evald/error.h"
#include "worker/native/config.h"
#include "worker/native/cuda/device_weights.h"

namespace evald::bench {
namespace fs = std::filesystem;
namespace {

using namespace native;
using namespace native::cuda;

constexpr double kGiga = 1e9;
constexpr double kSwapAllowance = 0.2;  // seconds, in addition to the bytes' time on the bus

Json PullOf(const DeviceWeights& weights, const PullOptions& pull, int rounds,
            std::vector<double>* rates) {
  Puller puller(pull);
  Json report;
  for (int round = 0; round < rounds; ++round) {
    report = ToJson(puller.Run(weights.transfers()));
    rates->push_back(report.at("bytes").get<double>() / report.at("seconds").get<double>() / kGiga);
  }
  return report;
}

// Makes a folder of links to the checkpoint's files. To the engine it is another checkpoint of the
// same shape.
fs::path Twin(const fs::path& checkpoint, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& entry : fs::directory_iterator(checkpoint)) {
    fs::create_symlink(fs::canonical(entry.path()), folder / entry.path().filename());
  }
  return folder;
}

}  // namespace

// The pull alone, from files in shared memory. Buffers and memory exist already, as in a worker
// after its first checkpoint.
Result RunPull(const Options& options) {
  const fs::path checkpoint = GpuCheckpoint(options);
  const GpuInfo gpu = UseBenchGpu(options);
  const ModelConfig config = ReadModelConfig(checkpoint);
  const ModelWeights weights(checkpoint, config);
  const DeviceWeights device(weights, WeightType::kBF16);

  PullOptions pull;
  pull.uuid = gpu.uuid;
  pull.numa_node = gpu.numa_node;
  const int rounds = options.quick ? 2 : 6;
  std::vector<double> rates;
  const double before = PinnedRate(SizesOf(options));
  const Json report = PullOf(device, pull, rounds, &rates);
  const double after = PinnedRate(SizesOf(options));

  Json by_threads = Json::object();
  for (const int threads : {1, 2, 4, 8, 12, 16}) {
    if (options.quick && threads > 2) break;
    PullOptions some = pull;
    some.threads = threads;
    std::vector<double> measured;
    PullOf(device, some, options.quick ? 1 : 3, &measured);
    by_threads[std::to_string(threads)] = measured;
  }
  Json by_chunk = Json::object();
  for (const int mebibytes : {1, 2, 4, 8}) {
    if (options.quick) break;
    PullOptions some = pull;
    some.chunk_bytes = static_cast<uint64_t>(mebibytes) << 20;
    std::vector<double> measured;
    PullOf(device, some, 3, &measured);
    by_chunk[fmt::format("{} MiB", mebibytes)] = measured;
  }

  Result result;
  result.unit = "GB/s";
  result.baseline = "the machine's own copies from page-locked memory, before and after";
  result.target = 0.85;
  // The first round takes the buffers and does not count.
  result.value = Median({rates.begin() + 1, rates.end()});
  result.baseline_value = std::max(before, after) / kGiga;
  result.details = {{"rates", rates},
                    {"by_copy_threads", by_threads},
                    {"by_chunk", by_chunk},
                    {"last_pull", report},
                    {"pinned_rates", {before / kGiga, after / kGiga}},
                    {"bytes", weights.mapped_bytes()},
                    {"published", "48.5 of about 55.6 GB/s on one H200, InstantTensor"}};
  return result;
}

// The time from a staged checkpoint to its first token, in an engine that holds another checkpoint
// of the same shape.
Result RunSwap(const Options& options) {
  const fs::path checkpoint = GpuCheckpoint(options);
  const fs::path twin = Twin(checkpoint, options.scratch / "twin");
  const auto engine = GpuEngine(options, {{"max_length", options.quick ? 128 : 4096}});
  const double rate = PinnedRate(SizesOf(options));
  const ModelShape shape(checkpoint);
  const auto first_token = [&](const fs::path& folder, uint64_t seed, Json* report) {
    Request request;
    request.context_tokens = RandomTokens(32, shape.vocab_size, seed);
    request.sampling.max_gen_toks = 1;
    const int64_t begin = MonotonicMicros();
    engine->Load(folder);
    const double loaded = static_cast<double>(MonotonicMicros() - begin) / 1e6;
    AnswerAll(engine.get(), {request});
    const double seconds = static_cast<double>(MonotonicMicros() - begin) / 1e6;
    *report = engine->LoadReport();
    (*report)["load_seconds"] = loaded;
    (*report)["first_token_seconds"] = seconds;
    return seconds;
  };
  Json cold, last;
  const double cold_seconds = first_token(checkpoint, 1, &cold);
  std::vector<double> seconds;
  const int rounds = options.quick ? 2 : 6;
  for (int round = 0; round < rounds; ++round) {
    seconds.push_back(
        first_token(round % 2 == 0 ? twin : checkpoint, static_cast<uint64_t>(round) + 2, &last));
  }
  Result result;
  result.unit = "s";
  result.smaller_is_better = true;
  result.target = 1;
  result.value = Median(seconds);
  result.baseline = fmt::format("its bytes at {:.1f} GB/s (page-locked copies), and {} s",
                                rate / kGiga, kSwapAllowance);
  result.baseline_value = last.at("bytes").get<double>() / rate + kSwapAllowance;
  result.details = {{"seconds", seconds},
                    {"first_checkpoint_seconds", cold_seconds},
                    {"first_load", cold},
                    {"last_load", last}};
  return result;
}

}  // namespace evald::bench
