#include "checkpoint/generation_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr const char* kRemedy = "take the key out, or set `generation_config: ignore` in eval.yaml";
constexpr uint64_t kFileBytesMax = 64 << 20;
constexpr int kTopKDefault = 50;  // transformers' GenerationConfig._get_default_generation_params
constexpr int32_t kTokensMax = INT32_MAX;

enum class Effect {
  kAlways,    // acts on every generation
  kSampling,  // acts if tokens are drawn
  kNone,      // does not change the text of one prompt
  kRefused,   // changes the text, and is not served
};

struct Key {
  const char* name;
  Effect effect;
  Json neutral;  // the value, besides null, without an effect; unused for kNone
};

// transformers 5.23, GenerationConfig.__init__.
const std::vector<Key>& Keys() {
  static const std::vector<Key> keys = {
      {"temperature", Effect::kSampling, 1.0},
      {"top_h", Effect::kSampling, nullptr},
      {"top_k", Effect::kSampling, 0},
      {"top_p", Effect::kSampling, 1.0},
      {"min_p", Effect::kSampling, 0.0},
      {"typical_p", Effect::kSampling, 1.0},
      {"epsilon_cutoff", Effect::kSampling, 0.0},
      {"eta_cutoff", Effect::kSampling, 0.0},
      {"sequence_bias", Effect::kAlways, nullptr},
      {"encoder_repetition_penalty", Effect::kAlways, 1.0},
      {"repetition_penalty", Effect::kAlways, 1.0},
      {"no_repeat_ngram_size", Effect::kAlways, 0},
      {"encoder_no_repeat_ngram_size", Effect::kAlways, 0},
      {"bad_words_ids", Effect::kAlways, nullptr},
      {"min_length", Effect::kAlways, 0},
      {"min_new_tokens", Effect::kAlways, 0},
      {"forced_bos_token_id", Effect::kAlways, nullptr},
      {"forced_eos_token_id", Effect::kAlways, nullptr},
      {"exponential_decay_length_penalty", Effect::kAlways, nullptr},
      {"remove_invalid_values", Effect::kAlways, nullptr},  // only true has an effect
      {"suppress_tokens", Effect::kAlways, nullptr},
      {"begin_suppress_tokens", Effect::kAlways, nullptr},
      {"eos_token_id", Effect::kAlways, nullptr},
      {"max_new_tokens", Effect::kAlways, nullptr},
      {"max_length", Effect::kAlways, nullptr},  // the request's: the harness always sets it
      {"num_beams", Effect::kRefused, 1},
      {"num_return_sequences", Effect::kRefused, 1},
      {"penalty_alpha", Effect::kRefused, 0.0},
      {"dola_layers", Effect::kRefused, nullptr},
      {"constraints", Effect::kRefused, nullptr},
      {"force_words_ids", Effect::kRefused, nullptr},
      {"guidance_scale", Effect::kRefused, 1.0},
      {"watermarking_config", Effect::kRefused, nullptr},
      {"stop_strings", Effect::kRefused, nullptr},
      {"max_time", Effect::kRefused, nullptr},
      {"token_healing", Effect::kRefused, false},
      {"prompt_lookup_num_tokens", Effect::kRefused, nullptr},
      {"use_mtp", Effect::kRefused, false},
      {"assistant_early_exit", Effect::kRefused, nullptr},
      {"is_assistant", Effect::kRefused, false},
      {"return_dict_in_generate", Effect::kRefused, false},
      {"cache_implementation", Effect::kRefused, nullptr},
      // the file's has no effect: the harness always sets it
      {"do_sample", Effect::kNone, nullptr},
      {"num_beam_groups", Effect::kNone, nullptr},
      {"diversity_penalty", Effect::kNone, nullptr},
      {"length_penalty", Effect::kNone, nullptr},
      {"early_stopping", Effect::kNone, nullptr},
      {"renormalize_logits", Effect::kNone, nullptr},
      {"use_cache", Effect::kNone, nullptr},
      {"cache_config", Effect::kNone, nullptr},
      {"max_cache_len", Effect::kNone, nullptr},
      {"prefill_chunk_size", Effect::kNone, nullptr},
      {"low_memory", Effect::kNone, nullptr},
      {"compile_config", Effect::kNone, nullptr},
      {"disable_compile", Effect::kNone, nullptr},
      {"continuous_batching_config", Effect::kNone, nullptr},
      {"output_attentions", Effect::kNone, nullptr},
      {"output_hidden_states", Effect::kNone, nullptr},
      {"output_scores", Effect::kNone, nullptr},
      {"output_logits", Effect::kNone, nullptr},
      {"pad_token_id", Effect::kNone, nullptr},
      {"bos_token_id", Effect::kNone, nullptr},
      {"decoder_start_token_id", Effect::kNone, nullptr},
      {"num_assistant_tokens", Effect::kNone, nullptr},
      {"num_assistant_tokens_schedule", Effect::kNone, nullptr},
      {"assistant_confidence_threshold", Effect::kNone, nullptr},
      {"assistant_lookbehind", Effect::kNone, nullptr},
      {"assistant_ensemble_weight", Effect::kNone, nullptr},
      {"target_lookbehind", Effect::kNone, nullptr},
      {"max_matching_ngram_size", Effect::kNone, nullptr},
      {"speculation_type", Effect::kNone, nullptr},
      {"transformers_version", Effect::kNone, nullptr},
      {"_from_model_config", Effect::kNone, nullptr},
      {"_commit_hash", Effect::kNone, nullptr},
  };
  return keys;
}

const Key* Find(const std::string& name) {
  const auto found =
      std::find_if(Keys().begin(), Keys().end(), [&](const Key& key) { return key.name == name; });
  return found == Keys().end() ? nullptr : &*found;
}

std::string Shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One value that is not null. `where` goes before its key in messages.
struct Value {
  const std::string& where;
  const std::string& key;
  const Json& json;

  [[noreturn]] void Refuse(const std::string& why) const {
    throw Error(ErrorKind::kInput, where + key + ": " + why, kRemedy);
  }
  [[noreturn]] void Expected(const std::string& what) const {
    Refuse(fmt::format("found {}, expected {}", Shown(json), what));
  }
  double Number(const std::string& expected, const std::function<bool(double)>& fits) const {
    if (!json.is_number()) Expected(expected);
    const auto value = json.get<double>();
    if (!std::isfinite(value) || !fits(value)) Expected(expected);
    return value;
  }
  double Positive() const {
    return Number("a number above 0", [](double v) { return v > 0; });
  }
  // An integer is an error in transformers.
  double Penalty() const {
    if (!json.is_number_float()) Expected("a number above 0 with a point, such as 2.0");
    return Positive();
  }
  double TopP() const {
    // a value above 1 has no effect
    return std::min(1.0, Number("a number of at least 0", [](double v) { return v >= 0; }));
  }
  double Typical() const { return std::min(1.0, Positive()); }  // above 1: no effect
  double Share(bool none) const {
    return none
               ? Number("a number from 0 to 1", [](double v) { return v >= 0 && v <= 1; })
               : Number("a number above 0 and at most 1", [](double v) { return v > 0 && v <= 1; });
  }
  double Cutoff() const {
    const double value = Number("a number", [](double) { return true; });
    return value > 0 && value < 1 ? value : 0;  // other values have no effect in transformers
  }
  int Count(int least) const { return CountOf(json, least); }
  int CountOf(const Json& value, int least) const {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > kTokensMax) ||
        value.get<int64_t>() < least || value.get<int64_t>() > kTokensMax) {
      Expected(fmt::format("an integer of at least {}", least));
    }
    return value.get<int>();
  }
  // One token id. With `several` also a list of token ids.
  std::vector<int32_t> Tokens(bool several) const {
    if (!json.is_array()) return {CountOf(json, 0)};
    if (!several) Expected("a token id");
    return TokenList(json);
  }
  std::vector<int32_t> TokenList(const Json& list) const {
    if (!list.is_array()) Expected("a list of token ids");
    std::vector<int32_t> tokens;
    for (const Json& token : list) tokens.push_back(CountOf(token, 0));
    return tokens;
  }
};

// [[[token, ...], bias], ...]. If several entries have the same tokens, the last one counts, as in
// Python's dictionaries.
std::vector<TokenBias> Biases(const Value& value) {
  const char* expected = "a list of [[token id, ...], bias]";
  std::vector<TokenBias> biases;
  std::map<std::vector<int32_t>, size_t> places;
  if (!value.json.is_array()) value.Expected(expected);
  for (const Json& entry : value.json) {
    if (!entry.is_array() || entry.size() != 2 || !entry[1].is_number()) value.Expected(expected);
    const std::vector<int32_t> tokens = value.TokenList(entry[0]);
    if (tokens.empty()) value.Expected(expected);
    const size_t place = places.emplace(tokens, biases.size()).first->second;
    if (place == biases.size()) biases.push_back({tokens, 0});
    biases[place].bias = entry[1].get<float>();
  }
  return biases;
}

std::vector<TokenBias> BadWords(const Value& value) {
  std::vector<TokenBias> words;
  if (!value.json.is_array()) value.Expected("a list of lists of token ids");
  for (const Json& word : value.json) {
    words.push_back({value.TokenList(word), -std::numeric_limits<float>::infinity()});
    if (words.back().tokens.empty()) value.Expected("a list of lists of token ids");
  }
  return words;
}

LengthPenalty PenaltyOfLength(const Value& value) {
  const Json& pair = value.json;
  if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number()) {
    value.Expected("[tokens, factor]");
  }
  return {value.CountOf(pair[0], 0), pair[1].get<double>()};
}

// Each token once, since exponential_decay_length_penalty acts once on a token. An id below 0
// belongs to no token and is left out.
std::vector<int32_t> EndTokens(const Value& value) {
  std::set<int32_t> tokens;
  for (const Json& token : value.json.is_array() ? value.json : Json::array({value.json})) {
    const int id = value.CountOf(token, INT32_MIN);
    if (id >= 0) tokens.insert(id);
  }
  return {tokens.begin(), tokens.end()};
}

void ApplySampling(const Value& value, GenerationSettings* settings) {
  const std::string& key = value.key;
  if (key == "temperature") settings->temperature = value.Positive();
  if (key == "top_h") settings->top_h = value.Share(false);
  if (key == "top_k") settings->top_k = value.Count(0);
  if (key == "top_p") settings->top_p = value.TopP();
  if (key == "min_p") settings->min_p = value.Share(true);
  if (key == "typical_p") settings->typical_p = value.Typical();
  if (key == "epsilon_cutoff") settings->epsilon_cutoff = value.Cutoff();
  if (key == "eta_cutoff") settings->eta_cutoff = value.Cutoff();
}

void ApplyAlways(const Value& value, GenerationSettings* settings) {
  const std::string& key = value.key;
  if (key == "sequence_bias") settings->sequence_bias = Biases(value);
  if (key == "encoder_repetition_penalty") settings->encoder_repetition_penalty = value.Penalty();
  if (key == "repetition_penalty") settings->repetition_penalty = value.Penalty();
  if (key == "no_repeat_ngram_size") settings->no_repeat_ngram_size = value.Count(0);
  if (key == "encoder_no_repeat_ngram_size")
    settings->encoder_no_repeat_ngram_size = value.Count(0);
  if (key == "bad_words_ids") settings->bad_words = BadWords(value);
  if (key == "min_length") settings->min_length = value.Count(0);
  if (key == "min_new_tokens") settings->min_new_tokens = value.Count(0);
  if (key == "forced_bos_token_id") settings->forced_bos = value.Tokens(false)[0];
  if (key == "forced_eos_token_id") settings->forced_eos = value.Tokens(true);
  if (key == "exponential_decay_length_penalty") settings->length_penalty = PenaltyOfLength(value);
  if (key == "remove_invalid_values") settings->remove_invalid_values = true;
  if (key == "suppress_tokens") settings->suppressed = value.Tokens(true);
  if (key == "begin_suppress_tokens") settings->suppressed_at_begin = value.Tokens(true);
  if (key == "eos_token_id") settings->eos_ids = EndTokens(value);
  if (key == "max_new_tokens") settings->max_new_tokens = value.Count(1);
  if (key == "max_length") settings->max_length = value.Count(1);
}

bool IsNeutral(const Key& key, const Json& value) {
  if (key.effect == Effect::kNone || value.is_null() || value == key.neutral) return true;
  if (std::string_view(key.name) == "cache_implementation") {  // only these change numbers
    return value != "quantized" && value != "paged";
  }
  if (std::string_view(key.name) == "remove_invalid_values") return value != true;
  return value.is_array() && value.empty();
}

// Refuses values over which generate() fails whatever else is set.
void RefuseBroken(const Value& value) {
  static const std::set<std::string> filled = {"bad_words_ids", "sequence_bias", "stop_strings"};
  const bool is_list = value.json.is_array();
  if (filled.contains(value.key) && is_list && value.json.empty())
    value.Expected("null or a list that is not empty");
  if (value.key == "pad_token_id" && is_list) value.Expected("an integer or null");
}

void Apply(const std::string& name, const Json& json, const std::string& where,
           GenerationSettings* settings) {
  const Key& key = *Find(name);
  const Value value{where, name, json};
  RefuseBroken(value);
  if (IsNeutral(key, json)) return;
  switch (key.effect) {
    case Effect::kSampling:
      if (settings->do_sample) ApplySampling(value, settings);
      // transformers compares top_k in every generation
      if (name == "top_k" && !json.is_number()) value.Expected("a number");
      break;
    case Effect::kAlways:
      ApplyAlways(value, settings);
      break;
    case Effect::kRefused:
      value.Refuse(Shown(json) + " is not served");
    case Effect::kNone:
      break;
  }
}

// Whether a key that transformers does not know has an effect nevertheless. transformers keeps such
// keys as attributes of its GenerationConfig. There a key may hide an attribute or a method of
// GenerationConfig, or an argument that lm_eval gives to generate(). All other unknown keys have no
// effect.
bool TakesEffect(const std::string& key) {
  static const std::set<std::string> keys = {"attention_mask",
                                             "custom_generate",
                                             "force_bos_token_to_be_generated",
                                             "from_dict",
                                             "from_model_config",
                                             "from_pretrained",
                                             "get_generation_mode",
                                             "input_ids",
                                             "inputs",
                                             "inputs_embeds",
                                             "logits_processor",
                                             "prefix_allowed_tokens_fn",
                                             "push_to_hub",
                                             "save_pretrained",
                                             "stopping_criteria",
                                             "streamer",
                                             "synced_gpus",
                                             "to_dict",
                                             "to_diff_dict",
                                             "to_json_file",
                                             "to_json_string",
                                             "update",
                                             "validate"};
  return key.starts_with("_") || keys.contains(key);
}

// Settings that need end tokens are an error in transformers if an id of an end token is below 0.
void CheckEndTokens(const Json& merged, const std::string& where,
                    const GenerationSettings& settings) {
  const bool needed =
      settings.min_length > 0 || settings.min_new_tokens > 0 || settings.length_penalty.has_value();
  const Json ends = merged.value("eos_token_id", Json());
  for (const Json& token : ends.is_array() ? ends : Json::array({ends})) {
    if (!needed || !token.is_number_integer() || token >= 0) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("{}eos_token_id: found {}, expected ids of at least 0 beside "
                            "min_length, min_new_tokens "
                            "and exponential_decay_length_penalty",
                            where, Shown(ends)),
                kRemedy);
  }
}

// Keeps the file's eos_token_id. If the file lacks the key, generation never ends at a token id, as
// in transformers.
void KeepEndTokens(const Json& json, Json* values) {
  const auto found = json.find("eos_token_id");
  if (found != json.end() && !found->is_null()) (*values)["eos_token_id"] = *found;
}

}  // namespace

bool GenerationSettings::changes_logits() const {
  const bool sampling = do_sample && (top_h > 0 || min_p > 0 || typical_p < 1 ||
                                      epsilon_cutoff > 0 || eta_cutoff > 0);
  return sampling || !sequence_bias.empty() || encoder_repetition_penalty != 1 ||
         repetition_penalty != 1 || no_repeat_ngram_size > 0 || encoder_no_repeat_ngram_size > 0 ||
         !bad_words.empty() || min_length > 0 || min_new_tokens > 0 || forced_bos >= 0 ||
         !forced_eos.empty() || remove_invalid_values || length_penalty.has_value() ||
         !suppressed.empty() || !suppressed_at_begin.empty();
}

GenerationConfig GenerationConfig::Read(const ReadFolder& directory, Use use) {
  const std::string own = "generation_config.json", model = "config.json";
  const bool has_own = directory.exists() && directory.HasFile(own);
  if (!has_own && !(directory.exists() && directory.HasFile(model))) {
    GenerationConfig none;
    none.ignored_ = use == Use::kIgnore;
    return none;
  }
  const std::string& name = has_own ? own : model;
  const std::string where = (directory / name).string();
  return Parse(ParseJson(directory.Read(name, kFileBytesMax), where), where, has_own, use);
}

GenerationConfig GenerationConfig::Parse(const Json& json, const std::string& where, bool own,
                                         Use use) {
  GenerationConfig config;
  config.where_ = where;
  config.ignored_ = use == Use::kIgnore;
  if (!json.is_object()) throw Error(ErrorKind::kInput, where + ": found no JSON object");
  ParseEosIds(json, where);
  if (config.ignored_) {
    KeepEndTokens(json, &config.values_);
    return config;
  }
  for (const auto& [key, value] : json.items()) {
    if (value.is_null() || key == "max_length") continue;
    if (IsGenerationKey(key)) {
      config.values_[key] = value;
    } else if (own && config.unknown_.empty() && TakesEffect(key)) {
      config.unknown_ =
          key + ": is no generation setting; its effect in transformers is not served";
    }
  }
  return config;
}

Json GenerationConfig::Merged(const SamplingParams& sampling) const {
  Json merged = Json::object();
  if (!ignored_) merged["top_k"] = kTopKDefault;
  merged.update(values_);
  merged.update(sampling.settings);
  merged.erase("do_sample");
  return merged;
}

GenerationSettings GenerationConfig::For(const SamplingParams& sampling) const {
  if (!unknown_.empty()) throw Error(ErrorKind::kInput, where_ + ": " + unknown_, kRemedy);
  GenerationSettings settings;
  settings.do_sample = sampling.do_sample;
  const Json merged = Merged(sampling);
  for (const auto& [key, value] : merged.items()) {
    const bool asked = sampling.settings.contains(key);
    if (asked && !IsGenerationKey(key))
      CheckGenerationSetting(key, value, settings.do_sample, "a request");
    Apply(key, value, asked ? "generation_kwargs." : where_ + ": ", &settings);
  }
  const bool asked_ends = sampling.settings.contains("eos_token_id");
  CheckEndTokens(merged, asked_ends ? "generation_kwargs." : where_ + ": ", settings);
  // NoBadWordsLogitsProcessor of transformers lets end tokens be generated.
  std::erase_if(settings.bad_words, [&](const TokenBias& word) {
    const auto& ends = settings.eos_ids;
    return word.tokens.size() == 1 &&
           std::find(ends.begin(), ends.end(), word.tokens[0]) != ends.end();
  });
  return settings;
}

Json GenerationConfig::InForce(const SamplingParams& sampling) const {
  const Json merged = Merged(sampling);
  std::map<std::string, Json> in_force = {{"do_sample", sampling.do_sample}};
  for (const auto& [name, value] : merged.items()) {
    const Key* key = Find(name);
    if (key == nullptr || key->effect == Effect::kNone || IsNeutral(*key, value)) continue;
    if (key->effect == Effect::kSampling && !sampling.do_sample) continue;
    in_force[name] = value;
  }
  for (const char* name : {"temperature", "top_k", "top_p"}) {
    if (sampling.do_sample) in_force.emplace(name, Find(name)->neutral);
  }
  Json sorted = Json::object();
  for (const auto& [name, value] : in_force) sorted[name] = value;
  return sorted;
}

bool IsGenerationKey(const std::string& key) { return Find(key) != nullptr; }

void CheckGenerationSetting(const std::string& name, const Json& value, bool do_sample,
                            const std::string& where) {
  const Key* key = Find(name);
  if (key == nullptr) {
    std::vector<std::string> names = {"until", "do_sample", "max_gen_toks"};
    for (const Key& known : Keys()) {
      if (known.effect == Effect::kAlways || known.effect == Effect::kSampling)
        names.emplace_back(known.name);
    }
    throw Error(ErrorKind::kInput,
                fmt::format("{}: generation_kwargs.{} is not a generation setting{}", where, name,
                            Suggestion(name, names)));
  }
  GenerationSettings ignored;
  ignored.do_sample = do_sample;
  try {
    Apply(name, value, where + ": generation_kwargs.", &ignored);
  } catch (const Error& e) {  // the remedies are for a checkpoint's file
    throw Error(e.kind(), e.message(), "take the key out of generation_kwargs");
  }
}

std::vector<int32_t> ParseEosIds(const Json& json, const std::string& where) {
  const std::string key = "eos_token_id";
  if (!json.is_object() || !json.contains(key) || json[key].is_null()) return {};
  if (!json[key].is_array()) return {Field<int>(json, key, where)};
  return Field<std::vector<int>>(json, key, where);
}

}  // namespace evald
