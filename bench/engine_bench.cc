#include "bench/engine_bench.h"

#include <fmt/format.h>

#include <random>
#include <thread>
#include <utility>

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

double ModelShape::Flops(double rows, double pairs, double heads) const {
  return 2 * rows * layer_weights + 4 * pairs * query_size * layers + 2 * heads * head_weights;
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

Answered AnswerAll(Engine* engine, const std::vector<Request>& requests) {
  Answered answered;
  answered.generations.resize(requests.size());
  const int64_t begin = MonotonicMicros();
  const auto elapsed = [&] { return static_cast<double>(MonotonicMicros() - begin) / 1e6; };
  for (size_t i = 0; i < requests.size(); ++i) engine->Submit(i, requests[i]);
  while (engine->pending() > 0) {
    for (Finished& finished : engine->Step(std::chrono::milliseconds(10'000))) {
      if (answered.first_seconds == 0) answered.first_seconds = elapsed();
      if (finished.refused) throw *finished.refused;
      answered.tokens_in += finished.generation.tokens_in;
      answered.tokens_out += finished.generation.tokens_out;
      answered.generations.at(finished.tag) = std::move(finished.generation);
    }
  }
  answered.seconds = elapsed();
  return answered;
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
