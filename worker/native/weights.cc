#include "worker/native/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <type_traits>
#include <utility>

#include "evald/error.h"
#include "worker/native/families/family.h"

namespace evald::native {

namespace {

// Whether a tensor is one of a layer beyond num_hidden_layers. The forward pass has no such layer.
bool IsOfFurtherLayer(const std::string& tensor, const ModelConfig& config) {
  const std::string layers = std::string(config.family->names.layers) + ".";
  if (!tensor.starts_with(layers)) return false;
  int64_t index = 0;
  const char* const begin = tensor.data() + layers.size();
  const auto [end, failure] = std::from_chars(begin, tensor.data() + tensor.size(), index);
  return failure == std::errc() && *end == '.' && index >= config.layers;
}

// Whether a tensor is one of a head for another use than the next token. Adapters of such a head
// are none.
bool IsOfOtherHead(const std::string& tensor) {
  static const std::set<std::string> kHeads = {
      "classifier",  "critic_head", "medusa_head", "qa_outputs", "regression_head",
      "reward_head", "rm_head",     "score",       "v_head",     "value_head"};
  return kHeads.contains(tensor.substr(0, tensor.find('.'))) &&
         tensor.find("lora_") == std::string::npos;
}

bool EndsAsOneOf(const std::string& tensor, const std::vector<const char*>& ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](const char* end) { return tensor.ends_with(end); });
}

// Whether the model has no use for the tensor. transformers ignores such tensors, too.
PassedOver IsPassedOver(const std::string& tensor, const ModelConfig& config) {
  if (EndsAsOneOf(tensor, config.family->names.passed_over)) return PassedOver::kSilently;
  return IsOfFurtherLayer(tensor, config) || IsOfOtherHead(tensor) ? PassedOver::kWithAWord
                                                                   : PassedOver::kNo;
}

}  // namespace

int64_t Linear::outputs() const {
  int64_t sum = 0;
  for (const Part& part : parts) sum += part.matrix.rows;
  return sum;
}

ModelWeights::ModelWeights(const ReadFolder& folder, const ModelConfig& config, Contents contents)
    : files_(folder, contents) {
  const TensorNames& names = config.family->names;
  embedding_ = files_.TakeMatrix(std::string(names.embedding) + ".weight", config.vocab_size,
                                 config.hidden_size);
  for (int64_t i = 0; i < config.layers; ++i) TakeLayer(i, config);
  norm_ = TakeNorm(names.norm, config.hidden_size, config.norm, config.norm_offset);
  TakeHead(config, contents);
  const auto passed_over = [&](const std::string& tensor) { return IsPassedOver(tensor, config); };
  files_.CheckNothingLeft(
      passed_over, fmt::format("the {} that config.json describes", config.family->architecture));
}

Linear ModelWeights::Take(const std::vector<std::string>& names,
                          const std::vector<int64_t>& outputs, int64_t inputs, bool bias) {
  Linear linear;
  for (size_t i = 0; i < names.size(); ++i) {
    Linear::Part part;
    part.matrix = files_.TakeMatrix(names[i] + ".weight", outputs[i], inputs);
    if (bias) part.bias = files_.TakeVector(names[i] + ".bias", outputs[i]);
    linear.parts.push_back(std::move(part));
  }
  return linear;
}

NormWeights ModelWeights::TakeNorm(const std::string& name, int64_t size, NormKind kind,
                                   double offset) {
  NormWeights norm;
  norm.weight = files_.TakeVector(name + ".weight", size);
  if (offset != 0) {
    for (float& weight : norm.weight) weight += static_cast<float>(offset);
  }
  if (kind == NormKind::kLayer) norm.bias = files_.TakeVector(name + ".bias", size);
  return norm;
}

void ModelWeights::TakeAttention(const std::string& prefix, const ModelConfig& config,
                                 LayerWeights* layer) {
  const TensorNames& names = config.family->names;
  const int64_t hidden = config.hidden_size;
  if (names.packed != nullptr) {
    layer->qkv = Take({prefix + names.packed}, {config.qkv_size()}, hidden, config.qkv_bias);
  } else {
    layer->qkv =
        Take({prefix + names.query, prefix + names.key, prefix + names.value},
             {config.query_size(), config.kv_size(), config.kv_size()}, hidden, config.qkv_bias);
  }
  layer->output = Take({prefix + names.output}, {hidden}, config.query_size(), config.output_bias);
  if (config.head_norm == HeadNorm::kNone) return;
  const bool each = config.head_norm == HeadNorm::kEach;
  layer->query_norm =
      TakeNorm(prefix + names.query_norm, each ? config.head_dim : config.query_size(),
               NormKind::kRms, config.norm_offset);
  layer->key_norm = TakeNorm(prefix + names.key_norm, each ? config.head_dim : config.kv_size(),
                             NormKind::kRms, config.norm_offset);
}

FeedForward ModelWeights::TakeFeedForward(const std::string& prefix, const ModelConfig& config,
                                          const char* gate, const char* up, const char* down,
                                          int64_t inner) {
  const int64_t hidden = config.hidden_size;
  FeedForward result;
  result.in = config.gated
                  ? Take({prefix + gate, prefix + up}, {inner, inner}, hidden, config.mlp_bias)
                  : Take({prefix + up}, {inner}, hidden, config.mlp_bias);
  result.down = Take({prefix + down}, {hidden}, inner, config.mlp_bias);
  return result;
}

void ModelWeights::TakeExperts(const std::string& prefix, const ModelConfig& config,
                               LayerWeights* layer) {
  const TensorNames& names = config.family->names;
  const ExpertsConfig& experts = config.experts;
  layer->router = Take({prefix + names.router}, {experts.count}, config.hidden_size, false);
  for (int64_t i = 0; i < experts.count; ++i) {
    layer->experts.push_back(TakeFeedForward(fmt::format("{}{}.{}.", prefix, names.experts, i),
                                             config, "gate_proj", "up_proj", "down_proj",
                                             experts.intermediate_size));
  }
}

void ModelWeights::TakeLayer(int64_t index, const ModelConfig& config) {
  const TensorNames& names = config.family->names;
  const std::string prefix = fmt::format("{}.{}.", names.layers, index);
  const auto norm = [&](const char* name) {
    return name == nullptr
               ? NormWeights()
               : TakeNorm(prefix + name, config.hidden_size, config.norm, config.norm_offset);
  };
  LayerWeights layer;
  layer.attention_norm = norm(names.attention_norm);
  layer.attention_after_norm = norm(names.attention_after_norm);
  layer.mlp_norm = norm(names.mlp_norm);
  layer.mlp_after_norm = norm(names.mlp_after_norm);
  TakeAttention(prefix, config, &layer);
  if (config.sparse[static_cast<size_t>(index)]) {
    TakeExperts(prefix, config, &layer);
  } else {
    layer.mlp =
        TakeFeedForward(prefix, config, names.gate, names.up, names.down, config.intermediate_size);
  }
  // Vectors must not move in memory: TensorFiles knows them by their address.
  static_assert(std::is_nothrow_move_constructible_v<LayerWeights>);
  layers_.push_back(std::move(layer));
}

void ModelWeights::TakeHead(const ModelConfig& config, Contents contents) {
  const TensorNames& names = config.family->names;
  std::string name = names.head;
  if (names.other_head != nullptr && !files_.Has(name + ".weight") &&
      files_.Has(std::string(names.other_head) + ".weight")) {
    name = names.other_head;
  }
  const bool present = files_.Has(name + ".weight");
  if (!config.tied_embeddings || present) {
    head_ = Take({name}, {config.vocab_size}, config.hidden_size, false);
  }
  if (!config.tied_embeddings) return;
  if (present && contents != Contents::kComing) {
    const Matrix& own = head_.parts.front().matrix;
    const bool alike =
        contents == Contents::kHeaders
            ? files_.BeginAlike(name + ".weight", std::string(names.embedding) + ".weight")
            : own.type == embedding_.type &&
                  std::memcmp(own.data, embedding_.data, own.bytes()) == 0;
    if (!alike) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("{}: config.json says tie_word_embeddings, but tensor '{}.weight' is "
                      "not equal to '{}.weight'",
                      files_.directory(), name, config.family->names.embedding),
          "transformers 5 computes with the tensor: set tie_word_embeddings to false to do the "
          "same. To compute with the embeddings, remove the tensor");
    }
  }
  head_.parts = {{embedding_, {}}};
}

}  // namespace evald::native
