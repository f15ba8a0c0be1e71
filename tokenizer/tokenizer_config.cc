#include "tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <vector>

#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::tok {
namespace {

constexpr uint64_t kFileBytesMax = 64 << 20;

constexpr const char* kAdditional = "additional_special_tokens";
constexpr const char* kExtra = "extra_special_tokens";

bool IsEmpty(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() || found->empty();
}

// Moves an extra_special_tokens that gives names to `own_names`.
void MoveNamedExtra(TokenizerConfig* config) {
  const auto extra = config->settings.find(kExtra);
  if (extra == config->settings.end() || !extra->is_object()) return;
  for (const auto& [key, value] : extra->items()) config->own_names[key] = value;
  config->settings.erase(kExtra);
}

void MoveOwnNames(TokenizerConfig* config) {
  std::vector<std::string> moved;
  for (const auto& [key, value] : config->settings.items()) {
    if (!key.ends_with("_token") || IsTokenAttribute(key) || !value.is_string()) continue;
    config->own_names[key] = value;
    moved.push_back(key);
  }
  for (const std::string& key : moved) config->settings.erase(key);
  MoveNamedExtra(config);
}

void PutMapOnTop(const Json& map, Json* settings) {
  for (const auto& [key, value] : map.items()) {
    if (key == kExtra && value.is_array() && (*settings)[kExtra].is_array()) {
      for (const Json& token : value) (*settings)[kExtra].push_back(token);
      continue;
    }
    (*settings)[key] = value;
    // A token of this file is always special, even if its object says otherwise.
    if (value.is_object() && key != kExtra) (*settings)[key]["special"] = true;
  }
}

void RefuseUnserved(const Json& settings, const std::string& where) {
  const auto set = [&](const char* key) { return FieldOr<bool>(settings, key, false, where); };
  if (set("split_special_tokens")) {
    throw Error(ErrorKind::kInput, where + ": split_special_tokens is not served",
                "set it to false: special tokens are then found in text");
  }
  const char* forced = "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output";
  if (set(forced) && set("clean_up_tokenization_spaces")) {
    throw Error(ErrorKind::kInput, fmt::format("{}: {} is not served", where, forced),
                "set it to false");
  }
  if (!IsEmpty(settings, "fast_tokenizer_files")) {
    throw Error(ErrorKind::kInput,
                where + ": fast_tokenizer_files is not served: evald reads tokenizer.json",
                "keep the newest of these files as tokenizer.json and take the key out");
  }
}

}  // namespace

Json ReadObject(const ReadFolder& directory, const char* name) {
  if (!directory.HasFile(name)) return Json::object();
  const std::filesystem::path file = directory / name;
  Json json = ParseJson(directory.Read(name, kFileBytesMax), file.string());
  if (!json.is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected an object", file.string(), json.type_name()));
  }
  return json;
}

bool IsTokenAttribute(const std::string& key) {
  return std::find(std::begin(kTokenAttributes), std::end(kTokenAttributes), key) !=
         std::end(kTokenAttributes);
}

// Refuses an object whose members take too long to look up among each other.
void RequireFewMembers(const Json& object, const std::string& where) {
  constexpr size_t kMembersMax = 10'000;
  if (!object.is_object() || object.size() <= kMembersMax) return;
  throw Error(ErrorKind::kInput, fmt::format("{}: found {} members, expected at most {}", where,
                                             object.size(), kMembersMax));
}

TokenizerConfig ReadTokenizerConfig(const ReadFolder& directory) {
  TokenizerConfig config;
  config.where = (directory / "tokenizer_config.json").string();
  config.class_files.directory = directory.path().string();
  config.class_files.tokenizer_config = ReadObject(directory, "tokenizer_config.json");
  config.class_files.config = ReadObject(directory, "config.json");
  config.settings = config.class_files.tokenizer_config;
  RequireFewMembers(config.settings, config.where);
  RequireFewMembers(config.settings.value(kExtra, Json()), config.where + ": " + kExtra);
  Json& settings = config.settings;
  for (const char* key : {"tokenizer_class", "add_bos_token", "add_eos_token"}) {
    settings.erase(key);
  }
  if (settings.contains(kAdditional) && IsEmpty(settings, kExtra)) {
    Json tokens = settings[kAdditional];
    settings.erase(kAdditional);
    settings[kExtra] = std::move(tokens);
  }
  MoveOwnNames(&config);
  if (!settings.contains("added_tokens_decoder")) {
    const Json map = ReadObject(directory, "special_tokens_map.json");
    RequireFewMembers(map, "special_tokens_map.json");
    RequireFewMembers(map.value(kExtra, Json()), std::string("special_tokens_map.json: ") + kExtra);
    PutMapOnTop(map, &settings);
    MoveNamedExtra(&config);
    config.added_tokens = ReadObject(directory, "added_tokens.json");
  }
  if (settings.contains(kAdditional) && !settings.contains(kExtra)) {
    settings[kExtra] = settings[kAdditional];
  }
  RefuseUnserved(settings, config.where);
  return config;
}

}  // namespace evald::tok
