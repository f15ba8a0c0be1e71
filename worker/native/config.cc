#include "worker/native/config.h"

#include <fmt/format.h>

#include <set>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "worker/native/config_reader.h"
#include "worker/native/families/family.h"
#include "worker/native/families/windows.h"

namespace evald::native {
namespace {

std::string Served(const char* Family::* name) {
  std::vector<std::string> names;
  for (const Family* family : Families()) names.emplace_back(family->*name);
  return "one of " + Join(names, ", ");
}

// The family that "architectures" names or, if that is absent, "model_type".
const Family& FamilyOf(const ConfigReader& reader) {
  const std::string remedy =
      "the native engine serves these families; for others use engine: openai";
  const std::string key = reader.Has("architectures") ? "architectures" : "model_type";
  const Json found = reader.Has(key) ? reader.json()[key] : Json();
  for (const Family* family : Families()) {
    if (key == "architectures" ? found != Json::array({family->architecture})
                               : found != family->model_type) {
      continue;
    }
    if (reader.TextOr("model_type", family->model_type) != family->model_type) {
      reader.Refuse("model_type",
                    fmt::format("\"{}\", as 'architectures' says", family->model_type));
    }
    return *family;
  }
  reader.Refuse(key, Served(key == "architectures" ? &Family::architecture : &Family::model_type),
                remedy);
}

// Refuses keys that turn any class of transformers 5.23 into another model.
void RefuseOtherModels(const ConfigReader& reader) {
  if (reader.Has("quantization_config")) {
    reader.Refuse("quantization_config", "none: quantised weights are not served",
                  "use a bf16, fp16 or fp32 checkpoint");
  }
  if (reader.json().contains("is_causal") && reader.json()["is_causal"] != true) {
    reader.Refuse("is_causal", "true: a model whose tokens see later ones is not served");
  }
  for (const char* key : {"per_layer_config", "text_config"}) {
    if (reader.Has(key)) reader.Refuse(key, "null: one configuration for the whole model");
  }
}

// Keys for which the families' configuration classes in transformers 5.23 refuse null, or fail
// because of it (tests/oracle/config_golden.py). InternLM2 is in none: its code comes with the
// checkpoint.
struct NullRefusal {
  const char* key;
  std::set<std::string> families;  ///< by model_type
};

const std::vector<NullRefusal>& NullRefusals() {
  static const std::set<std::string> acts = {"llama",     "mistral",  "qwen2", "qwen3",
                                             "qwen3_moe", "gpt_neox", "olmo2"};
  static const std::set<std::string> all = {"llama", "mistral",   "qwen2",
                                            "qwen3", "qwen3_moe", "gpt_neox",
                                            "olmo2", "gemma2",    "gemma3_text"};
  static const std::set<std::string> gemma = {"gemma2", "gemma3_text"};
  static const std::vector<NullRefusal> refusals = {
      {"hidden_act", acts},
      {"hidden_activation", gemma},
      {"query_pre_attn_scalar", gemma},
      {"max_position_embeddings", all},
      {"tie_word_embeddings", all},
      {"initializer_range", all},
      {"use_cache", all},
      {"attention_dropout", {"mistral", "qwen2", "qwen3", "qwen3_moe", "gpt_neox", "olmo2"}},
      {"rms_norm_eps",
       {"llama", "mistral", "qwen2", "qwen3", "qwen3_moe", "olmo2", "gemma2", "gemma3_text"}},
      {"attention_bias",
       {"llama", "qwen3", "qwen3_moe", "gpt_neox", "olmo2", "gemma2", "gemma3_text"}},
      {"mlp_bias", {"llama"}},
      {"num_key_value_heads", {"mistral", "qwen3_moe", "gemma2", "gemma3_text"}},
      {"head_dim", {"qwen2", "qwen3", "qwen3_moe", "olmo2", "gemma2", "gemma3_text"}},
      {"num_experts", {"qwen3_moe"}},
      {"num_experts_per_tok", {"qwen3_moe"}},
      {"moe_intermediate_size", {"qwen3_moe"}},
      {"norm_topk_prob", {"qwen3_moe"}},
      {"decoder_sparse_step", {"qwen3_moe"}},
      {"router_aux_loss_coef", {"qwen3_moe"}},
      {"output_router_logits", {"qwen3_moe"}},
      {"layer_norm_eps", {"gpt_neox"}},
      {"hidden_dropout", {"gpt_neox"}},
      {"is_decoder", {"gpt_neox"}},
      {"use_parallel_residual", {"gpt_neox"}},
      {"rotary_pct", {"gpt_neox"}}};
  return refusals;
}

// Refuses values that no class of transformers 5.23 loads, whatever the model computes.
void RefuseWhatNobodyLoads(const ConfigReader& reader, const Family& family) {
  const Json& json = reader.json();
  for (const NullRefusal& refusal : NullRefusals()) {
    const auto found = json.find(refusal.key);
    if (found != json.end() && found->is_null() && refusal.families.contains(family.model_type)) {
      reader.Refuse(refusal.key, "a value: transformers refuses null here",
                    "take the key out for its default");
    }
  }
  if (json.contains("bos_token_id") && json["bos_token_id"].is_array()) {
    reader.Refuse("bos_token_id", "an integer or null");
  }
  for (const char* key : {"dtype", "torch_dtype"}) {
    if (json.value(key, Json()) == "auto") reader.Refuse(key, "a type's name such as bfloat16");
  }
}

}  // namespace

ModelConfig ParseModelConfig(const Json& json, const std::string& where) {
  const ConfigReader reader(json, where);
  ModelConfig config;
  config.family = &FamilyOf(reader);
  RefuseOtherModels(reader);
  RefuseWhatNobodyLoads(reader, *config.family);
  config.family->read(reader, &config);
  ReadWindows(reader, config.family->windows, &config);
  if (config.rope.type == RopeType::kDynamic && config.context > config.max_positions) {
    reader.Refuse(
        "n_positions",
        fmt::format("at most max_position_embeddings ({}), which rope scaling 'dynamic' is "
                    "not served beyond",
                    config.max_positions));
  }
  return config;
}

ModelConfig ReadModelConfig(const ReadFolder& folder) {
  const std::filesystem::path path = folder / "config.json";
  const std::string text = folder.Read("config.json");
  if (text.starts_with("\xef\xbb\xbf")) {  // Python's json accepts none
    throw Error(ErrorKind::kInput, fmt::format("{}: begins with a byte order mark", path.string()),
                "save the file as UTF-8 without one");
  }
  const Json json = ParseJson(text, path.string());
  return ParseModelConfig(json, path.string());
}

int64_t ContextOf(const ModelConfig& config, int64_t max_length, const std::string& directory) {
  if (max_length > config.context) {
    throw Error(ErrorKind::kUsage,
                fmt::format("found {}, expected at most {} (the context length of {}{})",
                            max_length, config.context, directory,
                            config.rope.type == RopeType::kDynamic
                                ? "; rope scaling 'dynamic' is not served beyond it"
                                : ""));
  }
  return max_length > 0 ? max_length : config.context;
}

}  // namespace evald::native
