#include "worker/native/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "checkpoint/layout.h"
#include "evald/error.h"

namespace evald::native {
namespace {

WeightType TypeOf(Dtype dtype, const std::string& file, const std::string& tensor) {
  switch (dtype) {
    case Dtype::kF32:
      return WeightType::kF32;
    case Dtype::kF16:
      return WeightType::kF16;
    case Dtype::kBF16:
      return WeightType::kBF16;
    default:
      throw Error(ErrorKind::kInput, fmt::format("{}: tensor '{}': found dtype {}, expected BF16, "
                                                 "F16 or F32",
                                                 file, tensor, ToString(dtype)));
  }
}

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

LlamaWeights::LlamaWeights(const std::filesystem::path& directory, const LlamaConfig& config)
    : directory_(directory.string()), lease_(directory) {
  OpenShards(directory);
  embedding_ =
      ReadMatrix("model.embed_tokens.weight", config.vocab_size, config.hidden_size, false);
  for (int64_t i = 0; i < config.layers; ++i) ReadLayer(i, config);
  norm_ = ReadVector("model.norm.weight", config.hidden_size);
  ReadHead(config);
  CheckNothingLeft();
}

void LlamaWeights::OpenShards(const std::filesystem::path& directory) {
  const CheckpointLayout layout = ReadCheckpointLayout(directory);
  CheckShards(layout);
  shards_.reserve(layout.shards.size());
  for (const std::string& name : layout.shards) {
    const std::filesystem::path path = directory / name;
    shards_.push_back({path.string(), MappedFile(path), ReadSafetensorsHeader(path)});
    const Shard& shard = shards_.back();
    if (shard.file.size() != shard.header.file_bytes) {
      throw Error(ErrorKind::kInput, fmt::format("{}: found {} bytes, expected {}", shard.name,
                                                 shard.file.size(), shard.header.file_bytes));
    }
    for (const auto& [tensor, info] : shard.header.tensors) {
      const auto [other, fresh] = tensors_.insert({tensor, {&info, shards_.size() - 1}});
      if (!fresh) {
        throw Error(ErrorKind::kInput, fmt::format("{}: tensor '{}' is in {} too", shard.name,
                                                   tensor, shards_[other->second.shard].name));
      }
    }
  }
}

const LlamaWeights::Located& LlamaWeights::Find(const std::string& name,
                                                const std::vector<int64_t>& shape) {
  auto node = tensors_.extract(name);
  if (node.empty()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: tensor '{}' is missing; expected shape [{}] by config.json",
                            directory_, name, fmt::join(shape, ", ")));
  }
  const Located& found = used_.insert(std::move(node)).position->second;
  if (found.info->shape != shape) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: tensor '{}': found shape [{}], expected [{}] by config.json",
                            shards_[found.shard].name, name, fmt::join(found.info->shape, ", "),
                            fmt::join(shape, ", ")));
  }
  return found;
}

Matrix LlamaWeights::ReadMatrix(const std::string& name, int64_t rows, int64_t columns, bool bias) {
  const Located& found = Find(name, {rows, columns});
  const Shard& shard = shards_[found.shard];
  Matrix matrix;
  matrix.data = shard.file.data() + found.info->begin;
  matrix.type = TypeOf(found.info->dtype, shard.name, name);
  matrix.rows = rows;
  matrix.columns = columns;
  if (bias) {
    matrix.bias = ReadVector(name.substr(0, name.size() - std::strlen("weight")) + "bias", rows);
  }
  return matrix;
}

std::vector<float> LlamaWeights::ReadVector(const std::string& name, int64_t size) {
  const Located& found = Find(name, {size});
  const Shard& shard = shards_[found.shard];
  std::vector<float> values(static_cast<size_t>(size));
  PortableKernels().widen(shard.file.data() + found.info->begin,
                          TypeOf(found.info->dtype, shard.name, name), size, values.data());
  return values;
}

void LlamaWeights::ReadLayer(int64_t index, const LlamaConfig& config) {
  const std::string prefix = fmt::format("model.layers.{}.", index);
  const auto matrix = [&](const char* name, int64_t rows, int64_t columns, bool bias) {
    return ReadMatrix(prefix + name + ".weight", rows, columns, bias);
  };
  const int64_t hidden = config.hidden_size, inner = config.intermediate_size;
  LayerWeights layer;
  layer.attention_norm = ReadVector(prefix + "input_layernorm.weight", hidden);
  layer.mlp_norm = ReadVector(prefix + "post_attention_layernorm.weight", hidden);
  const bool bias = config.attention_bias;
  layer.query = matrix("self_attn.q_proj", config.query_size(), hidden, bias);
  layer.key = matrix("self_attn.k_proj", config.kv_size(), hidden, bias);
  layer.value = matrix("self_attn.v_proj", config.kv_size(), hidden, bias);
  layer.output = matrix("self_attn.o_proj", hidden, config.query_size(), bias);
  layer.gate = matrix("mlp.gate_proj", inner, hidden, config.mlp_bias);
  layer.up = matrix("mlp.up_proj", inner, hidden, config.mlp_bias);
  layer.down = matrix("mlp.down_proj", hidden, inner, config.mlp_bias);
  layers_.push_back(std::move(layer));
}

void LlamaWeights::ReadHead(const LlamaConfig& config) {
  const bool present = tensors_.count("lm_head.weight") > 0;
  if (!config.tied_embeddings || present) {
    head_ = ReadMatrix("lm_head.weight", config.vocab_size, config.hidden_size, false);
  }
  if (!config.tied_embeddings) return;
  const uint64_t bytes = used_.at("model.embed_tokens.weight").info->bytes;
  if (present && (head_.type != embedding_.type ||
                  std::memcmp(head_.data, embedding_.data, static_cast<size_t>(bytes)) != 0)) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: config.json says tie_word_embeddings, but tensor "
                            "'lm_head.weight' is not equal to 'model.embed_tokens.weight'",
                            directory_),
                "correct config.json, or remove the tensor that is not to be used");
  }
  head_ = embedding_;
}

void LlamaWeights::CheckNothingLeft() const {
  for (const auto& [name, found] : tensors_) {
    // Written by old transformers; computed from config.json today.
    if (EndsWith(name, ".rotary_emb.inv_freq")) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: tensor '{}' (shape [{}]) has no place in the Llama architecture "
                            "that config.json describes",
                            shards_[found.shard].name, name, fmt::join(found.info->shape, ", ")),
                "check num_hidden_layers, attention_bias and mlp_bias in config.json");
  }
}

uint64_t LlamaWeights::mapped_bytes() const {
  uint64_t bytes = 0;
  for (const Shard& shard : shards_) bytes += shard.file.size();
  return bytes;
}

}  // namespace evald::native
