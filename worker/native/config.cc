#include "worker/native/config.h"

#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::native {
namespace {

constexpr const char* kArchitecture = "LlamaForCausalLM";

[[noreturn]] void Refuse(const std::string& where, const std::string& key, const std::string& found,
                         const std::string& expected, const std::string& remedy = "") {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: {}: found {}, expected {}", where, key, found, expected), remedy);
}

bool Present(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found != json.end() && !found->is_null();
}

std::string Shown(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  if (found == json.end()) return "nothing";
  const std::string text = found->dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= 80 ? text : text.substr(0, 77) + "...";
}

int64_t Size(const Json& json, const std::string& key, int64_t maximum, const std::string& where) {
  const std::string expected = fmt::format("an integer from 1 to {}", maximum);
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) {
    Refuse(where, key, Shown(json, key), expected);
  }
  const bool fits = !found->is_number_unsigned() || found->get<uint64_t>() <= INT64_MAX;
  const int64_t value = fits ? found->get<int64_t>() : 0;
  if (value < 1 || value > maximum) Refuse(where, key, Shown(json, key), expected);
  return value;
}

double Positive(const Json& json, const std::string& key, const std::string& where) {
  const auto found = json.find(key);
  const double value =
      found != json.end() && found->is_number() ? found->get<double>() : std::nan("");
  if (!(value > 0) || !std::isfinite(value)) {
    Refuse(where, key, Shown(json, key), "a positive number");
  }
  return value;
}

void CheckArchitecture(const Json& json, const std::string& where) {
  const std::string served = fmt::format("[\"{}\"]", kArchitecture);
  const std::string remedy =
      "the native engine serves Llama-architecture checkpoints; for others use engine: openai";
  if (!Present(json, "architectures")) {
    if (FieldOr<std::string>(json, "model_type", "", where) != "llama") {
      Refuse(where, "architectures", Shown(json, "architectures"), served, remedy);
    }
  } else if (Field<std::vector<std::string>>(json, "architectures", where) !=
             std::vector<std::string>{kArchitecture}) {
    Refuse(where, "architectures", Shown(json, "architectures"), served, remedy);
  }
  const auto type = FieldOr<std::string>(json, "model_type", "llama", where);
  if (type != "llama") Refuse(where, "model_type", Shown(json, "model_type"), "\"llama\"", remedy);
  if (Present(json, "quantization_config")) {
    Refuse(where, "quantization_config", Shown(json, "quantization_config"),
           "none: quantised weights are not served", "use a bf16, fp16 or fp32 checkpoint");
  }
  const auto act = FieldOr<std::string>(json, "hidden_act", "silu", where);
  if (act != "silu") Refuse(where, "hidden_act", Shown(json, "hidden_act"), "\"silu\"");
}

void ReadLlama3(const Json& rope, const Json& json, const std::string& where, RopeConfig* config) {
  config->low_freq_factor = Positive(rope, "low_freq_factor", where);
  config->high_freq_factor = Positive(rope, "high_freq_factor", where);
  if (config->high_freq_factor <= config->low_freq_factor) {
    Refuse(where, "high_freq_factor", Shown(rope, "high_freq_factor"),
           fmt::format("more than low_freq_factor ({})", config->low_freq_factor));
  }
  // transformers takes a top-level key first, then the rope's own, then the context length.
  const std::string key = "original_max_position_embeddings";
  if (Present(json, key)) {
    config->original_positions = Positive(json, key, where);
  } else if (Present(rope, key)) {
    config->original_positions = Positive(rope, key, where);
  } else {
    config->original_positions = 0;  // filled in with max_position_embeddings
  }
}

// transformers.modeling_rope_utils (5.x): RotaryEmbeddingConfigMixin.convert_rope_params_to_dict.
RopeConfig ReadRope(const Json& json, const std::string& where) {
  RopeConfig config;
  if (Present(json, "rope_theta")) config.theta = Positive(json, "rope_theta", where);
  const char* source = nullptr;
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!Present(json, key)) continue;
    if (!json[key].is_object()) Refuse(where, key, Shown(json, key), "an object or null");
    if (!json[key].empty()) {
      source = key;
      break;
    }
  }
  const Json empty = Json::object();
  const Json& rope = source == nullptr ? empty : json[source];
  const std::string inside = source == nullptr ? where : where + ": " + source;
  if (Present(rope, "rope_theta")) config.theta = Positive(rope, "rope_theta", inside);
  for (const Json* holder : {&json, &rope}) {
    if (Present(*holder, "partial_rotary_factor") &&
        Positive(*holder, "partial_rotary_factor", inside) != 1.0) {
      Refuse(inside, "partial_rotary_factor", Shown(*holder, "partial_rotary_factor"), "1.0");
    }
  }
  for (const auto& [key, value] : rope.items()) {
    if (value.is_object()) Refuse(inside, key, "an object", "one set of parameters for all layers");
  }
  const std::string type_key = Present(rope, "rope_type") ? "rope_type" : "type";
  const auto type = FieldOr<std::string>(rope, type_key, "default", inside);
  if (type == "default") return config;
  if (type != "linear" && type != "llama3") {
    Refuse(inside, type_key, "\"" + type + "\"", "default, linear or llama3",
           "this rope scaling is not served by the native engine; use engine: openai");
  }
  config.factor = Positive(rope, "factor", inside);
  config.type = type == "linear" ? RopeType::kLinear : RopeType::kLlama3;
  if (config.type == RopeType::kLlama3) ReadLlama3(rope, json, inside, &config);
  return config;
}

void ReadHeads(const Json& json, const std::string& where, LlamaConfig* config) {
  config->heads = Size(json, "num_attention_heads", 4096, where);
  config->kv_heads = Present(json, "num_key_value_heads")
                         ? Size(json, "num_key_value_heads", 4096, where)
                         : config->heads;
  if (config->heads % config->kv_heads != 0) {
    Refuse(where, "num_key_value_heads", fmt::format("{}", config->kv_heads),
           fmt::format("a divisor of num_attention_heads ({})", config->heads));
  }
  if (config->hidden_size % config->heads != 0) {
    Refuse(where, "hidden_size", fmt::format("{}", config->hidden_size),
           fmt::format("a multiple of num_attention_heads ({})", config->heads));
  }
  config->head_dim = Present(json, "head_dim") ? Size(json, "head_dim", 4096, where)
                                               : config->hidden_size / config->heads;
  if (config->head_dim % 2 != 0) {
    Refuse(where, "head_dim", fmt::format("{}", config->head_dim), "an even number");
  }
}

}  // namespace

LlamaConfig ParseLlamaConfig(const Json& json, const std::string& where) {
  if (!json.is_object()) throw Error(ErrorKind::kInput, where + ": found no JSON object");
  CheckArchitecture(json, where);
  LlamaConfig config;
  config.vocab_size = Size(json, "vocab_size", int64_t{1} << 24, where);
  config.hidden_size = Size(json, "hidden_size", int64_t{1} << 18, where);
  config.intermediate_size = Size(json, "intermediate_size", int64_t{1} << 20, where);
  config.layers = Size(json, "num_hidden_layers", 4096, where);
  ReadHeads(json, where, &config);
  config.max_positions = Present(json, "max_position_embeddings")
                             ? Size(json, "max_position_embeddings", int64_t{1} << 26, where)
                             : 2048;
  if (Present(json, "rms_norm_eps")) {
    config.rms_norm_eps = Positive(json, "rms_norm_eps", where);
  }
  config.tied_embeddings = FieldOr(json, "tie_word_embeddings", false, where);
  config.attention_bias = FieldOr(json, "attention_bias", false, where);
  config.mlp_bias = FieldOr(json, "mlp_bias", false, where);
  config.rope = ReadRope(json, where);
  if (config.rope.original_positions == 0) {
    config.rope.original_positions = static_cast<double>(config.max_positions);
  }
  config.eos_ids = ParseEosIds(json, where);
  return config;
}

LlamaConfig ReadLlamaConfig(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "config.json";
  return ParseLlamaConfig(ParseJson(ReadFile(path), path.string()), path.string());
}

std::vector<int32_t> ParseEosIds(const Json& json, const std::string& where) {
  std::vector<int32_t> ids;
  if (!Present(json, "eos_token_id")) return ids;
  if (json["eos_token_id"].is_number_integer()) {
    ids.push_back(Field<int>(json, "eos_token_id", where));
  } else {
    for (const int id : Field<std::vector<int>>(json, "eos_token_id", where)) ids.push_back(id);
  }
  return ids;
}

}  // namespace evald::native
