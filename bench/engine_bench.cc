#include "bench/engine_bench.h"

#include <fmt/format.h>

#include <random>
#include <thread>

#include "base/clock.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "bench/run_evald.h"
#include "evald/error.h"
#include "worker/native/native_engine.h"

namespace evald::bench {
namespace fs = std::filesystem;

fs::path EngineCheckpoint(const Options& options) {
  if (!options.checkpoint.empty()) return options.checkpoint;
  const fs::path script = (options.binaries / "../../bench/make_checkpoint.py").lexically_normal();
  if (options.python.empty()) {
    throw Error(
        ErrorKind::kUsage,
        "this workload needs a checkpoint: found neither --checkpoint nor --python",
        fmt::format("make one with: python3 {} FOLDER --family qwen2 (needs numpy and tokenizers)",
                    script.string()));
  }
  const fs::path folder = options.scratch / "checkpoint";
  std::vector<std::string> command = {options.python.string(), script.string(), folder.string(),
                                      "--family", "qwen2"};
  if (fs::exists(options.data_dir))
    command.insert(command.end(), {"--data-dir", options.data_dir.string()});
  if (options.quick) command.push_back("--quick");
  RunCommand(command);
  return folder;
}

ModelShape::ModelShape(const fs::path& checkpoint) {
  const fs::path file = checkpoint / "config.json";
  const Json config = ParseJson(ReadFile(file), file.string());
  const auto get = [&](const char* key) { return config.at(key).get<double>(); };
  const double hidden = get("hidden_size");
  const double head = config.value("head_dim", hidden / get("num_attention_heads"));
  layers = get("num_hidden_layers");
  query_size = get("num_attention_heads") * head;
  kv_size = config.value("num_key_value_heads", get("num_attention_heads")) * head;
  vocab_size = config.at("vocab_size").get<int>();
  layer_weights = layers * hidden * (2 * query_size + 2 * kv_size + 3 * get("intermediate_size"));
  head_weights = vocab_size * hidden;
}

double ModelShape::PromptFlops(double tokens) const {
  const double pairs = tokens * (tokens + 1) / 2;
  return 2 * tokens * layer_weights + 2 * head_weights + 4 * pairs * query_size * layers;
}

double ModelShape::TokenBytes(double position) const {
  return 2 * (layer_weights + head_weights) + 8 * kv_size * layers * (position + 1);
}

std::unique_ptr<Engine> LoadedEngine(const fs::path& checkpoint, const Json& settings) {
  EngineOptions options;
  options.name = "native";
  options.settings = settings;
  options.threads = static_cast<int>(std::thread::hardware_concurrency());
  auto engine = MakeNativeEngine(options);
  engine->Load(checkpoint);
  return engine;
}

double Answer(Engine* engine, const std::vector<Request>& requests) {
  const int64_t begin = MonotonicMicros();
  for (size_t i = 0; i < requests.size(); ++i) engine->Submit(i, requests[i]);
  while (engine->pending() > 0) engine->Step(std::chrono::milliseconds(10'000));
  return static_cast<double>(MonotonicMicros() - begin) / 1e6;
}

std::vector<int32_t> RandomTokens(int count, int vocab_size, uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::vector<int32_t> tokens;
  for (int i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(generator() % static_cast<uint64_t>(vocab_size - 1)) + 1);
  }
  return tokens;
}

}  // namespace evald::bench
