#include "worker/server/checkpoint_shape.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/file_hash.h"
#include "base/jsonl.h"
#include "checkpoint/layout.h"
#include "evald/error.h"

namespace evald::server {
namespace {

constexpr uint64_t kShapeConfigBytesMax = 16 << 20;

bool IsWeights(const std::string& name) {
  return name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
}

// Files of transformers' Trainer, which no server reads and which differ at each step.
bool IsTrainersNote(const std::string& name) {
  static const std::set<std::string> kNotes = {"trainer_state.json", "all_results.json",
                                               "train_results.json", "eval_results.json"};
  return kNotes.count(name) > 0;
}

bool IsOutputLayer(const std::string& name) {
  for (const char* part : {"lm_head.", "embed_out.", "output_layer."}) {
    if (name.find(part) != std::string::npos) return true;
  }
  return name == "output.weight";
}

std::string DtypeOfMost(const std::map<Dtype, uint64_t>& bytes) {
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == bytes.end()) return "";
  return most->first == Dtype::kBF16  ? "bfloat16"
         : most->first == Dtype::kF16 ? "float16"
         : most->first == Dtype::kF32 ? "float32"
                                      : "";
}

void ReadTensors(const CheckpointLayout& layout, CheckpointShape* shape) {
  std::map<Dtype, uint64_t> bytes;
  bool output = false;
  for (const std::string& shard : layout.shards) {
    const SafetensorsHeader header =
        ReadSafetensorsHeader(layout.folder.OpenFile(shard), layout.root / shard);
    for (const auto& [name, tensor] : header.tensors) {
      shape->tensors[name] = {tensor.dtype, tensor.shape};
      bytes[tensor.dtype] += tensor.bytes;
      shape->quantised = shape->quantised || DtypeBytes(tensor.dtype) == 1;
      output = output || IsOutputLayer(name);
    }
  }
  shape->tied = shape->tied || !output;
  shape->dtype = DtypeOfMost(bytes);
}

}  // namespace

CheckpointShape ReadCheckpointShape(const ReadFolder& folder) {
  const CheckpointLayout layout = ReadCheckpointLayout(folder);
  CheckpointShape shape;
  for (const CheckpointFile& file : layout.files) {
    if (IsWeights(file.name) || IsTrainersNote(file.name)) continue;
    const UniqueFd fd = folder.OpenFile(file.name);
    shape.files[file.name] = HashOfFile(fd.get(), folder / file.name).hash;
  }
  const Json config = ParseJson(folder.Read("config.json", kShapeConfigBytesMax),
                                (folder / "config.json").string());
  if (!config.is_object()) {
    throw Error(ErrorKind::kInput, (folder / "config.json").string() + ": expected an object");
  }
  shape.quantised = !config.value("quantization_config", Json()).is_null();
  const Json tied = config.value("tie_word_embeddings", Json());
  shape.tied = tied.is_boolean() && tied.get<bool>();
  ReadTensors(layout, &shape);
  return shape;
}

std::string WhyAnotherShape(const CheckpointShape& had, const CheckpointShape& next) {
  for (const auto& [name, hash] : next.files) {
    const auto same = had.files.find(name);
    if (same == had.files.end() || same->second != hash) return name + " differs";
  }
  for (const auto& [name, hash] : had.files) {
    if (!next.files.contains(name)) return name + " is missing";
  }
  for (const auto& [name, tensor] : next.tensors) {
    const auto same = had.tensors.find(name);
    if (same == had.tensors.end()) return "the tensor " + name + " is new";
    if (!(same->second == tensor)) return "the tensor " + name + " has another shape or type";
  }
  for (const auto& [name, tensor] : had.tensors) {
    if (!next.tensors.contains(name)) return "the tensor " + name + " is missing";
  }
  return "";
}

}  // namespace evald::server
