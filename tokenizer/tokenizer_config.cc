#include "tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/file.h"
#include "base/jsonl.h"
#include "evald/error.h"

namespace evald::tok {
namespace {

namespace fs = std::filesystem;

// The file as an object; an empty one when there is no file.
Json ReadObject(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return Json::object();
  Json json = ParseJson(ReadFile(file), file.string());
  if (!json.is_object()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected an object", file.string(), json.type_name()));
  }
  return json;
}

// A special token: a string or an object with "content".
AddedToken SpecialToken(const Json& json, const std::string& where) {
  AddedToken token;
  if (json.is_string()) {
    token.content = json.get<std::string>();
    token.normalized = false;
  } else {
    token = AddedTokenFromJson(json, where);
  }
  token.special = true;
  return token;
}

bool IsToken(const Json& json) {
  return json.is_string() || (json.is_object() && json.contains("content"));
}

void ReadAdded(const Json& json, const std::string& where, TokenizerConfig* config) {
  for (const auto& [key, value] : json.items()) {
    int64_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size()) {
      throw Error(ErrorKind::kInput, fmt::format("{}: added_tokens_decoder: found the key '{}', "
                                                 "expected an id",
                                                 where, key));
    }
    config->added.emplace_back(id, AddedTokenFromJson(value, where + ": added_tokens_decoder"));
  }
  std::stable_sort(config->added.begin(), config->added.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
}

// As transformers does, a named token that added_tokens_decoder describes takes its flags there.
void AddSpecial(AddedToken token, TokenizerConfig* config) {
  for (const auto& [id, added] : config->added) {
    if (added.content == token.content) {
      token = added;
      token.special = true;
    }
  }
  if (!token.content.empty()) config->special.push_back(std::move(token));
}

void ReadSpecial(const Json& json, const std::string& where, TokenizerConfig* config) {
  std::vector<Json> more;
  for (const auto& [key, value] : json.items()) {
    const std::string place = fmt::format("{}: {}", where, key);
    if (key == "additional_special_tokens" || key == "extra_special_tokens") {
      if (value.is_array() || value.is_object()) {
        for (const Json& item : value) more.push_back(item);
      }
    } else if (key.ends_with("_token") && IsToken(value)) {
      AddedToken token = SpecialToken(value, place);
      if (key == "bos_token") config->bos = token.content;
      if (key == "eos_token") config->eos = token.content;
      AddSpecial(std::move(token), config);
    }
  }
  for (const Json& item : more) AddSpecial(SpecialToken(item, where), config);
}

}  // namespace

TokenizerConfig ReadTokenizerConfig(const fs::path& directory) {
  const std::string where = (directory / "tokenizer_config.json").string();
  Json json = ReadObject(where);
  TokenizerConfig config;
  if (FieldOr<bool>(json, "split_special_tokens", false, where)) {
    throw Error(ErrorKind::kInput, where + ": split_special_tokens is not served");
  }
  if (json.contains("added_tokens_decoder")) {
    ReadAdded(json["added_tokens_decoder"], where, &config);
  } else {
    const Json on_top = ReadObject(directory / "special_tokens_map.json");
    for (const auto& [key, value] : on_top.items()) json[key] = value;
  }
  ReadSpecial(json, where, &config);
  return config;
}

std::string Spell(const TokenizerConfig& config) {
  const auto spell = [](const AddedToken& t) {
    return Json({t.content, t.single_word, t.lstrip, t.rstrip, t.normalized, t.special});
  };
  Json json = {{"bos", config.bos ? Json(*config.bos) : Json()},
               {"eos", config.eos ? Json(*config.eos) : Json()}};
  for (const auto& [id, token] : config.added) json["added"].push_back({id, spell(token)});
  for (const AddedToken& token : config.special) json["special"].push_back(spell(token));
  return ToLine(json);
}

}  // namespace evald::tok
