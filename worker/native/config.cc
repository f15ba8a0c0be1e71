#include "worker/native/config.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "worker/native/config_reader.h"
#include "worker/native/families/family.h"
#include "worker/native/families/windows.h"

namespace evald::native {
namespace {

std::string Served(const char* Family::*name) {
  std::vector<std::string> names;
  for (const Family* family : Families()) names.emplace_back(family->*name);
  return "one of " + Join(names, ", ");
}

// The family that "architectures" names, or where it is absent "model_type".
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

// Keys that make another model of any class in transformers 5.23.
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

}  // namespace

ModelConfig ParseModelConfig(const Json& json, const std::string& where) {
  const ConfigReader reader(json, where);
  ModelConfig config;
  config.family = &FamilyOf(reader);
  RefuseOtherModels(reader);
  config.family->read(reader, &config);
  ReadWindows(reader, config.family->windows, &config);
  if (config.rope.type == RopeType::kDynamic && config.context > config.max_positions) {
    reader.Refuse("n_positions",
                  fmt::format("at most max_position_embeddings ({}), which rope scaling 'dynamic' is "
                              "not served beyond", config.max_positions));
  }
  return config;
}

ModelConfig ReadModelConfig(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / "config.json";
  const Json json = ParseJson(ReadFile(path), path.string());
  return ParseModelConfig(json, path.string());
}

}  // namespace evald::native
