#include "tokenizer/tokenizer_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/model_types.h"

namespace evald::tok {
namespace {

constexpr const char* kFromFile = "TokenizersBackend";
constexpr const char* kEndOfText = "<|endoftext|>";

constexpr ClassRules kClasses[] = {
    {.name = kFromFile, .build = Build::kFromFile},
    {.name = "LlamaTokenizer", .build = Build::kLlama, .bos = "<s>", .eos = "</s>", .unk = "<unk>"},
    {.name = "GPT2Tokenizer",
     .build = Build::kGpt2,
     .bos = kEndOfText,
     .eos = kEndOfText,
     .unk = kEndOfText},
    {.name = "Qwen2Tokenizer",
     .build = Build::kQwen2,
     .eos = kEndOfText,
     .unk = kEndOfText,
     .pad = kEndOfText},
    {.name = "GPTNeoXTokenizer",
     .build = Build::kGptNeoX,
     .bos = kEndOfText,
     .eos = kEndOfText,
     .unk = kEndOfText,
     .pad = "<|padding|>"},
    {.name = "GemmaTokenizer",
     .build = Build::kGemma,
     .bos = "<bos>",
     .eos = "<eos>",
     .unk = "<unk>",
     .pad = "<pad>",
     .mask = "<mask>"},
};

// PRETOKENIZE_REGEX of Qwen2Tokenizer.
constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";

// The corrected expression of TokenizersBackend._patch_mistral_regex.
constexpr const char* kMistralPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

std::string WithoutFast(std::string_view name) {
  constexpr std::string_view kFast = "Fast";
  if (name.ends_with(kFast)) name.remove_suffix(kFast.size());
  return std::string(name);
}

// The name under which transformers 5 knows a class. Several older names mean TokenizersBackend.
std::string Canonical(const std::string& name) {
  const std::string plain = WithoutFast(name);
  for (const char* generic : {"PreTrainedTokenizer", "PythonBackend", "BloomTokenizer"}) {
    if (plain == generic) return kFromFile;
  }
  return plain;
}

std::string TextOr(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// Whether the key is present with an empty text. To AutoTokenizer such a text names a class that it
// does not know.
bool IsEmptyText(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && *found == "";
}

// Whether transformers has the class.
bool IsKnown(const std::string& canonical) {
  return FindClass(canonical) != nullptr || IsKnownClass(canonical);
}

// The class in the checkpoint's own code that auto_map names; "" for none.
std::string OwnCode(const Json& tokenizer_config) {
  const auto map = tokenizer_config.find("auto_map");
  if (map == tokenizer_config.end()) return "";
  Json names = *map;
  if (map->is_object()) names = map->value("AutoTokenizer", Json());
  if (names.is_null()) return "";
  std::string last = "of auto_map";
  for (const Json& name : names) {
    if (name.is_string()) last = name.get<std::string>();
  }
  return last;
}

// The hints of all files about the class.
struct Hints {
  std::string from_tokenizer_config;
  std::string from_config;
  bool empty_in_tokenizer_config = false;  // the key is present with an empty text
  bool empty_in_config = false;
  std::string model_type;
  std::string registered;  // the class of the model type
  bool overrides = false;  // the model type's class wins over a named class
  std::string own_code;
  std::string directory;

  std::string named() const {
    return from_tokenizer_config.empty() ? from_config : from_tokenizer_config;
  }
  PickedClass Named() const {
    const char* file = from_tokenizer_config.empty() ? "config.json" : "tokenizer_config.json";
    return {Canonical(named()), fmt::format("{}/{}: tokenizer_class", directory, file)};
  }
  PickedClass AsItIs() const { return {kFromFile, Named().where}; }
  PickedClass OfModelType() const {
    return {registered.empty() ? kFromFile : Canonical(registered),
            fmt::format("{}/config.json: model_type '{}'", directory, model_type)};
  }
};

Hints HintsOf(const ClassFiles& files) {
  Hints hints;
  hints.from_tokenizer_config = TextOr(files.tokenizer_config, "tokenizer_class");
  hints.from_config = TextOr(files.config, "tokenizer_class");
  hints.empty_in_tokenizer_config = IsEmptyText(files.tokenizer_config, "tokenizer_class");
  hints.empty_in_config = IsEmptyText(files.config, "tokenizer_class");
  hints.model_type = TextOr(files.config, "model_type");
  hints.registered = RegisteredClass(hints.model_type);
  hints.overrides = OverridesNamedClass(hints.model_type) ||
                    OverridesNamedClass(TextOr(files.config, "model_name"));
  hints.own_code = OwnCode(files.tokenizer_config);
  hints.directory = files.directory;
  return hints;
}

// auto_map names code that evald does not run. Picks the class that transformers uses without that
// code, if there is one.
PickedClass PickBesideOwnCode(const Hints& hints) {
  const bool left_aside = OverridesNamedClass(hints.model_type);
  const std::string& name = hints.from_tokenizer_config;
  if (!left_aside && hints.registered.empty() && !IsKnown(Canonical(name))) {
    return {hints.own_code, hints.directory + "/tokenizer_config.json: auto_map"};
  }
  // If a class is named that transformers does not know, transformers takes the file as it is.
  if (hints.empty_in_tokenizer_config || (!name.empty() && !IsKnown(Canonical(name)))) {
    return {kFromFile, hints.directory + "/tokenizer_config.json: auto_map"};
  }
  return hints.named().empty() ? hints.OfModelType() : hints.Named();
}

std::vector<std::string> ServedNames() {
  std::vector<std::string> names;
  for (const ClassRules& rules : kClasses) names.emplace_back(rules.name);
  names.emplace_back("PreTrainedTokenizerFast");
  return names;
}

Json ByteLevelPart(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

Json SplitPart(const char* expression) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", expression}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

Json SequenceOf(const char* key, Json parts) {
  return {{"type", "Sequence"}, {key, std::move(parts)}};
}

// Keeps the type and the merges of the model and sets everything else.
void RebuildModel(bool fuse_unknown, bool byte_fallback, Json* file) {
  Json* model = file->is_object() && file->contains("model") ? &(*file)["model"] : nullptr;
  if (model == nullptr || !model->is_object()) return;  // the model's reader refuses it
  for (const char* key :
       {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"}) {
    (*model)[key] = nullptr;
  }
  (*model)["fuse_unk"] = fuse_unknown;
  (*model)["byte_fallback"] = byte_fallback;
  (*model)["ignore_merges"] = false;
}

// Spaces for marks, bytes for their tokens, one text.
Json MarkDecoders() {
  Json decoders = Json::array();
  decoders.push_back({{"type", "Replace"}, {"pattern", {{"String", kMark}}}, {"content", " "}});
  decoders.push_back({{"type", "ByteFallback"}});
  decoders.push_back({{"type", "Fuse"}});
  return decoders;
}

void RebuildLlama(const Json& settings, const std::string& where, Json* file) {
  const bool prefix = FieldOr<bool>(settings, "add_prefix_space", true, where);
  const bool legacy = FieldOr<bool>(settings, "legacy", false, where);
  const char* scheme = !prefix ? "never" : legacy ? "always" : "first";
  RebuildModel(true, true, file);
  (*file)["normalizer"] = nullptr;
  (*file)["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", kMark}, {"prepend_scheme", scheme}, {"split", false}};
  Json decoders = MarkDecoders();
  if (prefix) {
    decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  }
  (*file)["decoder"] = SequenceOf("decoders", std::move(decoders));
}

// The content of the unknown token. GemmaTokenizer gives the model str(unk_token), "None" for null.
std::string UnknownOf(const ClassRules& rules, const Json& settings) {
  const auto named = settings.find("unk_token");
  if (named == settings.end()) return rules.unk;
  if (named->is_null()) return "None";
  return named->is_object() ? named->value("content", "") : TextOr(settings, "unk_token");
}

void RebuildGemma(const ClassRules& rules, const Json& settings, Json* file) {
  RebuildModel(true, true, file);
  if (file->is_object() && file->contains("model") && (*file)["model"].is_object()) {
    (*file)["model"]["unk_token"] = UnknownOf(rules, settings);
  }
  (*file)["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kMark}};
  (*file)["pre_tokenizer"] = {{"type", "Split"},
                              {"pattern", {{"String", " "}}},
                              {"behavior", "MergedWithPrevious"},
                              {"invert", false}};
  (*file)["decoder"] = SequenceOf("decoders", MarkDecoders());
}

// GPT-2, GPT-NeoX and Qwen 2: words of bytes.
void RebuildByteLevel(Build build, const Json& settings, const std::string& where, Json* file) {
  const bool prefix = FieldOr<bool>(settings, "add_prefix_space", false, where);
  RebuildModel(false, false, file);
  (*file)["normalizer"] = build == Build::kGpt2 ? Json() : Json({{"type", "NFC"}});
  (*file)["pre_tokenizer"] = ByteLevelPart(prefix, true);
  if (build == Build::kQwen2) {
    Json parts = Json::array({SplitPart(kQwen2Pattern), ByteLevelPart(prefix, false)});
    (*file)["pre_tokenizer"] = SequenceOf("pretokenizers", std::move(parts));
  }
  (*file)["decoder"] = ByteLevelPart(true, true);
  // GPTNeoXTokenizer replaces the post-processor by a template of its own; see AddedEnds.
  if (build == Build::kGptNeoX) (*file)["post_processor"] = nullptr;
}

// Whether a version such as "4.57.1" is version 5 or later of transformers.
bool IsVersion5(const std::string& version) {
  int major = 0;
  std::from_chars(version.data(), version.data() + version.size(), major);
  return major >= 5;
}

}  // namespace

PickedClass PickClass(const ClassFiles& files, std::string_view tokenizer_json) {
  const Hints hints = HintsOf(files);
  if (!hints.own_code.empty()) return PickBesideOwnCode(hints);
  const std::string named = hints.named();
  if (named.empty() && hints.empty_in_config && hints.overrides) return hints.OfModelType();
  const bool names_none =
      hints.empty_in_tokenizer_config || (hints.empty_in_config && !hints.registered.empty());
  if (named.empty()) return names_none ? hints.AsItIs() : hints.OfModelType();
  // Checkpoints like Llama 3's name LlamaTokenizer, which is not made for their files.
  if (WithoutFast(named) == "LlamaTokenizer" && !hints.overrides &&
      tokenizer_json.find("\"ByteLevel\"") != std::string_view::npos) {
    return {kFromFile, hints.Named().where};
  }
  const bool differs =
      !hints.registered.empty() && WithoutFast(hints.registered) != WithoutFast(named);
  if (differs && Canonical(hints.registered) == kFromFile) return hints.OfModelType();
  if (differs && hints.overrides) return hints.OfModelType();
  if (!differs && hints.empty_in_tokenizer_config) return hints.AsItIs();
  // If transformers does not know a class, it takes the file as it is. If only config.json names
  // the class, and the model type has none, loading fails.
  const bool fails = !differs && hints.from_tokenizer_config.empty();
  return IsKnown(Canonical(named)) || fails ? hints.Named() : hints.AsItIs();
}

const ClassRules* FindClass(std::string_view name) {
  for (const ClassRules& rules : kClasses) {
    if (name == rules.name) return &rules;
  }
  return nullptr;
}

const ClassRules& RequireClass(const PickedClass& picked) {
  if (const ClassRules* rules = FindClass(picked.name)) return *rules;
  throw Error(ErrorKind::kInput,
              fmt::format("{}: the tokenizer class '{}' is not known; evald serves {}",
                          picked.where, picked.name, Join(ServedNames(), ", ")),
              "if tokenizer.json is to be used as it is, set \"tokenizer_class\" in "
              "tokenizer_config.json to \"PreTrainedTokenizerFast\"");
}

void Rebuild(const ClassRules& rules, const Json& settings, const std::string& where, Json* file) {
  switch (rules.build) {
    case Build::kFromFile:
      return;
    case Build::kLlama:
      return RebuildLlama(settings, where, file);
    case Build::kGpt2:
    case Build::kQwen2:
    case Build::kGptNeoX:
      return RebuildByteLevel(rules.build, settings, where, file);
    case Build::kGemma:
      return RebuildGemma(rules, settings, file);
  }
}

void FixMistralPattern(const Json& settings, const Json& config, size_t tokens, Json* file) {
  constexpr size_t kTokensMin = 100'000;
  const auto fix = settings.find("fix_mistral_regex");
  if (fix == settings.end() || !fix->is_boolean() || !fix->get<bool>()) return;
  if (tokens <= kTokensMin || config.empty() || (*file)["pre_tokenizer"].is_null()) return;
  const std::string type = TextOr(config, "model_type");
  const bool mistral = type.empty() || type == "mistral" || type == "mistral3" ||
                       type == "voxtral" || type == "ministral" || type == "pixtral";
  if (!mistral || IsVersion5(TextOr(config, "transformers_version"))) return;
  Json& part = (*file)["pre_tokenizer"];
  const std::string kind = TextOr(part, "type");
  if (kind == "Sequence" && part["pretokenizers"].is_array() && !part["pretokenizers"].empty()) {
    part["pretokenizers"][0] = SplitPart(kMistralPattern);
    return;
  }
  Json behind = kind == "Metaspace" ? ByteLevelPart(false, false) : part;
  part = SequenceOf("pretokenizers", Json::array({SplitPart(kMistralPattern), std::move(behind)}));
}

}  // namespace evald::tok
