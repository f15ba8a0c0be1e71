#include "worker/parity/reference.h"

#include <algorithm>
#include <map>

#include "base/clock.h"
#include "checkpoint/layout.h"
#include "checkpoint/safetensors.h"
#include "evald/error.h"
#include "worker/native/config.h"
#include "worker/native/native_engine.h"
#include "worker/parity/scores_of.h"

namespace evald::parity {
namespace {

// fp32 is compared with products of fp32 numbers cut to the 10 bits of TF32, which GPUs may use.
const char* RoundedKernels(NumberType type) {
  return type == NumberType::kBf16 ? "rounded_bf16" : "rounded_fp16";
}

std::vector<Edge> EdgesOf(const native::ModelConfig& config) {
  std::map<int64_t, Edge> edges;
  for (const int64_t window : config.windows) {
    if (window > 0) edges[window] = {window, "the sliding window"};
  }
  for (const native::RopeConfig* rope :
       {&config.rope, config.local_rope ? &*config.local_rope : nullptr}) {
    if (rope == nullptr || rope->original_positions <= 0) continue;
    const auto tokens = static_cast<int64_t>(rope->original_positions);
    edges[tokens] = {tokens, "the context before its scaling"};
  }
  std::vector<Edge> found;
  for (auto& [tokens, edge] : edges) found.push_back(std::move(edge));
  return found;
}

double SecondsSince(int64_t begin) { return static_cast<double>(MonotonicMicros() - begin) / 1e6; }

}  // namespace

std::optional<NumberType> NumberTypeOf(const std::string& name) {
  if (name == "bfloat16" || name == "BF16") return NumberType::kBf16;
  if (name == "float16" || name == "F16") return NumberType::kFp16;
  if (name == "float32" || name == "F32") return NumberType::kF32;
  return std::nullopt;
}

NumberType TypeOfWeights(const std::filesystem::path& directory) {
  const CheckpointLayout layout = ReadCheckpointLayout(ReadFolder(directory));
  std::map<Dtype, uint64_t> bytes;
  for (const std::string& shard : layout.shards) {
    const SafetensorsHeader header =
        ReadSafetensorsHeader(layout.folder.OpenFile(shard), layout.root / shard);
    for (const auto& [name, tensor] : header.tensors) {
      if (tensor.shape.size() > 1) bytes[tensor.dtype] += tensor.bytes;
    }
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end() || most->first == Dtype::kF32) return NumberType::kF32;
  return most->first == Dtype::kF16 ? NumberType::kFp16 : NumberType::kBf16;
}

std::unique_ptr<Engine> ReferenceEngine(const ReferenceTask& task, const char* kernels) {
  EngineOptions options;
  options.name = "native";
  options.settings = {{"kernels", kernels}, {"generation_config", "ignore"}};
  options.device = "cpu:0";
  options.threads = task.threads;
  auto engine = MakeNativeEngine(options);
  engine->Load(task.directory);
  return engine;
}

Reference ComputeReference(const ReferenceTask& task, const std::atomic<bool>* stop) {
  const int64_t begin = MonotonicMicros();
  const double budget = std::chrono::duration<double>(task.budget).count();
  Reference reference;
  const native::ModelConfig config = native::ReadModelConfig(task.directory);
  const auto exact = ReferenceEngine(task);
  const auto rounded = ReferenceEngine(task, RoundedKernels(task.type));
  const auto tokenizer = Tokenizer::Load(task.directory);
  reference.parts = MakeParts(*tokenizer, exact->Info().max_length, EdgesOf(config));
  const size_t wanted = std::min(task.parts_max, reference.parts.size());
  int64_t rows = 0;
  for (size_t i = 0; i < reference.parts.size(); ++i) {
    const Part& part = reference.parts[i];
    const double spent = SecondsSince(begin);
    const double predicted =
        rows > 0 ? spent / static_cast<double>(rows) * static_cast<double>(part.rows) : 0;
    if (i >= wanted || *stop) break;
    if (spent + predicted > budget && i > 0) {
      for (size_t left = i; left < wanted; ++left)
        reference.left_out.push_back(reference.parts[left].name);
      break;
    }
    const std::vector<double> first = ScoresOf(exact.get(), part.windows, stop);
    const std::vector<double> second = ScoresOf(rounded.get(), part.windows, stop);
    if (*stop) break;
    std::vector<Expected> expected;
    for (size_t w = 0; w < part.windows.size(); ++w) expected.push_back({first[w], second[w]});
    reference.expected.push_back(std::move(expected));
    rows += part.rows;
  }
  reference.seconds = SecondsSince(begin);
  return reference;
}

}  // namespace evald::parity
