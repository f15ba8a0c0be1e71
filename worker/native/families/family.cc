#include "worker/native/families/family.h"

#include <fmt/format.h>

#include <map>

namespace evald::native {
namespace {

constexpr int64_t kLayersMax = 4096;
constexpr int64_t kHeadsMax = 4096;
constexpr int64_t kPositionsMax = int64_t{1} << 26;

Activation ReadActivation(const ConfigReader& reader, const CommonDefaults& defaults) {
  static const std::map<std::string, Activation> kActivations = {
      {"silu", Activation::kSilu},
      {"swish", Activation::kSilu},
      {"gelu", Activation::kGelu},
      {"gelu_new", Activation::kGeluTanh},
      {"gelu_fast", Activation::kGeluTanh},
      {"gelu_pytorch_tanh", Activation::kGeluTanh},
      {"gelu_python", Activation::kGelu},
      {"gelu_python_tanh", Activation::kGeluTanh},
      {"gelu_accurate", Activation::kGeluTanh}};
  const std::string name = reader.TextOr(defaults.activation_key, defaults.activation);
  const auto found = kActivations.find(name);
  if (found == kActivations.end()) {
    reader.Refuse(defaults.activation_key,
                  "silu, swish or one of the gelu that are no quick_gelu and no gelu_10");
  }
  return found->second;
}

// The size under `key`, or `absent` if config.json has no such key; if `absent` is 0 the key is
// required. Null is refused, as in the classes of transformers.
int64_t ReadSize(const ConfigReader& reader, const std::string& key, int64_t maximum,
                 int64_t absent) {
  return absent != 0 && !reader.json().contains(key) ? absent : reader.Size(key, maximum);
}

void ReadHeads(const ConfigReader& reader, const CommonDefaults& defaults, ModelConfig* config) {
  config->heads = ReadSize(reader, "num_attention_heads", kHeadsMax, defaults.sizes.heads);
  if (defaults.packed_heads) {
    config->kv_heads = config->heads;
    if (config->hidden_size % config->heads != 0) {
      reader.Refuse("hidden_size",
                    fmt::format("a multiple of num_attention_heads ({})", config->heads));
    }
    config->head_dim = config->hidden_size / config->heads;
    if (config->head_dim % 2 != 0)
      reader.Refuse("hidden_size", "an even number of dimensions for each head");
    return;
  }
  const std::string kv = "num_key_value_heads";
  const bool named = reader.json().contains(kv);  // null means the number of heads
  const int64_t otherwise = named || defaults.kv_heads == 0 ? config->heads : defaults.kv_heads;
  config->kv_heads = reader.SizeOr(kv, kHeadsMax, otherwise);
  if (config->heads % config->kv_heads != 0) {
    reader.Refuse(kv, fmt::format("a divisor of num_attention_heads ({})", config->heads));
  }
  if (config->hidden_size % config->heads != 0 && !reader.Has("head_dim") &&
      defaults.head_dim == 0) {
    reader.Refuse("hidden_size",
                  fmt::format("a multiple of num_attention_heads ({})", config->heads));
  }
  config->head_dim = reader.SizeOr(
      "head_dim", kHeadsMax,
      defaults.head_dim == 0 ? config->hidden_size / config->heads : defaults.head_dim);
  if (config->head_dim % 2 != 0) reader.Refuse("head_dim", "an even number");
}

}  // namespace

const std::vector<const Family*>& Families() {
  static const std::vector<const Family*> families = {&kLlama,    &kMistral,   &kQwen2,   &kQwen3,
                                                      &kQwen3Moe, &kInternLm2, &kGptNeoX, &kOlmo2,
                                                      &kGemma2,   &kGemma3};
  return families;
}

void ReadCommon(const ConfigReader& reader, const CommonDefaults& defaults, ModelConfig* config) {
  const DefaultSizes& sizes = defaults.sizes;
  config->vocab_size = ReadSize(reader, "vocab_size", int64_t{1} << 24, sizes.vocab);
  config->hidden_size = ReadSize(reader, "hidden_size", int64_t{1} << 18, sizes.hidden);
  config->intermediate_size =
      ReadSize(reader, "intermediate_size", int64_t{1} << 20, sizes.intermediate);
  config->layers = ReadSize(reader, "num_hidden_layers", kLayersMax, sizes.layers);
  ReadHeads(reader, defaults, config);
  config->max_positions =
      reader.SizeOr("max_position_embeddings", kPositionsMax, defaults.max_positions);
  config->context = reader.SizeOr("n_positions", kPositionsMax, config->max_positions);
  config->norm_eps = reader.NotNegativeOr("rms_norm_eps", defaults.norm_eps);
  config->tied_embeddings = reader.FlagOr("tie_word_embeddings", defaults.tied_embeddings);
  config->activation = ReadActivation(reader, defaults);
  config->sparse.assign(static_cast<size_t>(config->layers), false);
  if (defaults.global_rope == nullptr) {
    ReadRope(reader, defaults.rope, config);
  } else {
    config->rope = ReadLayerRope(reader, *defaults.global_rope, *config);
    config->rotary_dim = config->head_dim;
  }
}

}  // namespace evald::native
