#include "tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <set>

#include "base/jsonl.h"
#include "evald/error.h"
#include "tokenizer/tokenizer_json.h"

namespace evald::tok {
namespace {

// The tokens that files list with ids. A token that is named again takes its flags from here.
using Decoder = std::map<int64_t, AddedToken>;

// A token as a file names it: a text, which has no flags, or an object.
struct NamedToken {
  AddedToken token;
  bool is_text = false;
};

using NamedTokens = std::vector<std::pair<std::string, NamedToken>>;

AddedToken SpecialText(const std::string& content) {
  AddedToken token;
  token.content = content;
  token.normalized = false;
  token.special = true;
  return token;
}

NamedToken ReadToken(const Json& json, const std::string& where) {
  if (json.is_string()) return {SpecialText(json.get<std::string>()), true};
  if (json.is_object()) return {AddedTokenFromJson(json, where), false};
  throw Error(ErrorKind::kInput, fmt::format("{}: found {}, expected a text or an object with "
                                             "the key 'content'",
                                             where, json.type_name()));
}

// Replaces the token of this name, or appends the token.
void Set(const std::string& name, NamedToken token, NamedTokens* tokens) {
  for (auto& [known, value] : *tokens) {
    if (known != name) continue;
    value = std::move(token);
    return;
  }
  tokens->emplace_back(name, std::move(token));
}

int64_t IdOf(const std::string& key, const std::string& where) {
  int64_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error == std::errc() && end == key.data() + key.size()) return id;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: added_tokens_decoder: found the key '{}', expected an id", where, key));
}

// added_tokens_decoder. If there is none: added_tokens.json, and then tokenizer.json.
Decoder ReadDecoder(const TokenizerConfig& config, const Json& file, const std::string& where,
                    const std::set<std::string>& named) {
  Decoder decoder;
  const auto given = config.settings.find("added_tokens_decoder");
  if (given != config.settings.end()) {
    const std::string place = config.where + ": added_tokens_decoder";
    for (const auto& [key, value] : given->items()) {
      decoder[IdOf(key, config.where)] = AddedTokenFromJson(value, place);
    }
    return decoder;
  }
  for (const auto& [content, id] : config.added_tokens.items()) {
    AddedToken token;
    token.content = content;
    token.special = named.contains(content);
    token.normalized = !token.special;
    if (!id.is_number_integer()) Field<int64_t>(config.added_tokens, content, "added_tokens.json");
    decoder[id.get<int64_t>()] = std::move(token);
  }
  for (DeclaredToken& token : ReadAddedTokens(file, where)) {
    decoder[*token.id] = std::move(token.token);
  }
  return decoder;
}

// The default of an attribute that no file names; null for none.
const char* DefaultOf(const ClassRules& rules, const std::string& name) {
  if (name == "bos_token") return rules.bos;
  if (name == "eos_token") return rules.eos;
  if (name == "unk_token") return rules.unk;
  if (name == "pad_token") return rules.pad;
  if (name == "mask_token") return rules.mask;
  return nullptr;
}

// The padding token's name from the `padding` of a tokenizer.json. It counts for classes that have
// no argument of their own for the padding token.
std::string PaddingToken(const ClassRules& rules, const Json& file) {
  if (rules.build != Build::kFromFile && rules.build != Build::kLlama) return "";
  const auto padding = file.find("padding");
  if (padding == file.end() || !padding->is_object()) return "";
  return padding->value("pad_token", "");
}

// The attributes from bos_token to mask_token.
NamedTokens ReadAttributes(const TokenizerConfig& config, const ClassRules& rules,
                           const Json& file) {
  NamedTokens tokens;
  for (const std::string name : kTokenAttributes) {
    const auto found = config.settings.find(name);
    if (found != config.settings.end()) {
      if (found->is_null()) continue;
      tokens.emplace_back(name, ReadToken(*found, config.where + ": " + name));
    } else if (const char* content = DefaultOf(rules, name)) {
      tokens.emplace_back(name, NamedToken{SpecialText(content), true});
    } else if (const std::string pad = PaddingToken(rules, file);
               name == "pad_token" && !pad.empty()) {
      tokens.emplace_back(name, NamedToken{SpecialText(pad), true});
    }
  }
  return tokens;
}

// image_token and the like. Those that are left among the settings come first.
void AddOwnNames(const TokenizerConfig& config, NamedTokens* tokens) {
  for (const auto& [key, value] : config.settings.items()) {
    const bool fits = value.is_string() || (value.is_object() && value.contains("content"));
    if (!key.ends_with("_token") || IsTokenAttribute(key) || !fits) continue;
    Set(key, ReadToken(value, config.where + ": " + key), tokens);
  }
  for (const auto& [key, value] : config.own_names.items()) {
    Set(key, ReadToken(value, config.where + ": " + key), tokens);
  }
}

std::vector<NamedToken> ReadExtra(const TokenizerConfig& config) {
  std::vector<NamedToken> tokens;
  const auto extra = config.settings.find("extra_special_tokens");
  if (extra == config.settings.end() || !extra->is_array()) return tokens;
  for (const Json& token : *extra) {
    tokens.push_back(ReadToken(token, config.where + ": extra_special_tokens"));
  }
  return tokens;
}

// The tokens that TokenizersBackend.__init__ adds to those of the backend: every token of the
// decoder in the order of ids, then the named and the extra tokens that are not known yet.
std::vector<DeclaredToken> Missing(const Decoder& decoder, const std::set<std::string>& in_backend,
                                   const NamedTokens& named, const std::vector<NamedToken>& extra) {
  std::set<std::string> known = in_backend;
  std::set<std::string> names;
  for (const auto& [name, token] : named) names.insert(token.token.content);
  std::vector<DeclaredToken> missing;
  for (const auto& [id, token] : decoder) {
    known.insert(token.content);
    missing.push_back({token, id});
  }
  for (const auto& [name, token] : named) {
    if (!known.contains(token.token.content)) missing.push_back({token.token, std::nullopt});
  }
  for (const NamedToken& token : extra) {
    if (!known.contains(token.token.content)) missing.push_back({token.token, std::nullopt});
  }
  for (DeclaredToken& token : missing) {
    if (names.contains(token.token.content)) token.token.special = true;
  }
  return missing;
}

// Qwen2Tokenizer adds all of them again, without the flags that files give them.
std::vector<DeclaredToken> AllAgain(const NamedTokens& named,
                                    const std::vector<NamedToken>& extra) {
  std::vector<DeclaredToken> again;
  for (const auto& [name, token] : named) {
    again.push_back({SpecialText(token.token.content), std::nullopt});
  }
  for (const NamedToken& token : extra) {
    again.push_back({SpecialText(token.token.content), std::nullopt});
  }
  return again;
}

// Only special_tokens_map.json can still carry add_bos_token and add_eos_token. GPTNeoXTokenizer
// always sets its template.
std::optional<AddedEnds> ReadEnds(const TokenizerConfig& config, const ClassRules& rules) {
  const bool given =
      config.settings.contains("add_bos_token") || config.settings.contains("add_eos_token");
  if (!given && rules.build != Build::kGptNeoX) return std::nullopt;
  return AddedEnds{FieldOr<bool>(config.settings, "add_bos_token", false, config.where),
                   FieldOr<bool>(config.settings, "add_eos_token", false, config.where)};
}

}  // namespace

const std::string* SpecialTokens::Named(const std::string& name) const {
  for (const auto& [known, content] : named) {
    if (known == name) return &content;
  }
  return nullptr;
}

SpecialTokens ReadSpecialTokens(const TokenizerConfig& config, const ClassRules& rules,
                                const Json& file, const std::string& where) {
  NamedTokens named = ReadAttributes(config, rules, file);
  const std::vector<NamedToken> extra = ReadExtra(config);
  std::set<std::string> special;  // special tokens that the files name
  for (const auto& [name, token] : named) {
    if (config.settings.contains(name)) special.insert(token.token.content);
  }
  for (const NamedToken& token : extra) special.insert(token.token.content);
  const Decoder decoder = ReadDecoder(config, file, where, special);
  for (auto& [name, token] : named) {
    if (!config.settings.contains(name)) continue;  // a default keeps its flags
    for (const auto& [id, added] : decoder) {
      if (added.content == token.token.content) token = {added, false};
    }
  }
  AddOwnNames(config, &named);

  SpecialTokens tokens;
  std::set<std::string> in_backend;
  if (rules.build == Build::kFromFile) {
    tokens.batches.push_back(ReadAddedTokens(file, where));
    for (const DeclaredToken& token : tokens.batches[0]) in_backend.insert(token.token.content);
  }
  tokens.batches.push_back(Missing(decoder, in_backend, named, extra));
  if (rules.build == Build::kQwen2) tokens.batches.push_back(AllAgain(named, extra));
  tokens.ends = ReadEnds(config, rules);
  for (const auto& [name, token] : named) tokens.named.emplace_back(name, token.token.content);
  return tokens;
}

Json NamedTokenContents(const ReadFolder& directory) {
  const char* name = "tokenizer.json";
  const std::filesystem::path path = directory / name;
  const std::string text = directory.HasFile(name) ? directory.Read(name, kTokenizerBytesMax) : "";
  const TokenizerConfig config = ReadTokenizerConfig(directory);
  const ClassRules* rules = FindClass(PickClass(config.class_files, text).name);
  const ClassRules without_defaults = {.name = "", .build = Build::kFromFile};
  Json file = Json::object();
  if (text.find("\"pad_token\"") != std::string::npos) {  // the name of the padding token
    file["padding"] = ParseTokenizerJson(text, path.string()).json.value("padding", Json());
  }
  const SpecialTokens tokens =
      ReadSpecialTokens(config, rules != nullptr ? *rules : without_defaults, file, path.string());
  Json contents = Json::object();
  for (const auto& [name, content] : tokens.named) contents[name] = content;
  return contents;
}

std::vector<DeclaredToken> ReadAddedTokens(const Json& file, const std::string& where) {
  const auto list = file.find("added_tokens");
  if (list == file.end() || list->is_null()) return {};
  const std::string place = where + ": added_tokens";
  if (!list->is_array()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {}, expected a list", place, list->type_name()));
  }
  std::vector<DeclaredToken> tokens;
  for (const Json& item : *list) {
    tokens.push_back({AddedTokenFromJson(item, place), Field<int64_t>(item, "id", place)});
  }
  return tokens;
}

std::string Spell(const SpecialTokens& tokens) {
  Json json = {{"named", Json::array()}, {"batches", Json::array()}, {"ends", nullptr}};
  for (const auto& [name, content] : tokens.named) json["named"].push_back({name, content});
  for (const auto& batch : tokens.batches) {
    Json list = Json::array();
    for (const auto& [t, id] : batch) {
      list.push_back({t.content, t.single_word, t.lstrip, t.rstrip, t.normalized, t.special});
    }
    json["batches"].push_back(std::move(list));
  }
  if (tokens.ends) json["ends"] = {tokens.ends->bos, tokens.ends->eos};
  return ToLine(json);
}

}  // namespace evald::tok
