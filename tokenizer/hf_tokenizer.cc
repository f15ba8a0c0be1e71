#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/hash.h"
#include "base/jsonl.h"
#include "base/sha256.h"
#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/component.h"
#include "tokenizer/decoders.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/post_processors.h"
#include "tokenizer/pre_tokenizers.h"
#include "tokenizer/scratch.h"
#include "tokenizer/special_tokens.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_class.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"

namespace evald {
namespace {

// Change it if the same files begin to give other tokens.
constexpr std::string_view kRulesVersion = "evald-tokenizer-3\n";

// A tokenizer.json as changed by its class, and the added tokens.
struct Blueprint {
  tok::TokenizerJson file;
  tok::SpecialTokens special;
  std::string key;
  std::string file_hash;
};

class HfTokenizer : public Tokenizer {
 public:
  HfTokenizer(Blueprint blueprint, const std::string& where);

  std::vector<int32_t> Encode(std::string_view text, bool add_special_tokens) const override;
  std::string Decode(const std::vector<int32_t>& tokens, bool skip_special_tokens) const override;

  int32_t vocabulary_size() const override {
    return std::max(model_.vocabulary().highest_id(), added_.highest_id()) + 1;
  }
  int32_t TokenId(std::string_view token) const override {
    const int32_t id = added_.Id(token);
    return id >= 0 ? id : model_.vocabulary().Id(token);
  }
  std::string Spelling(int32_t id) const override {
    const std::string* spelling = FindSpelling(id);
    return spelling != nullptr ? *spelling : "";
  }
  int32_t bos_id() const override { return bos_id_; }
  int32_t eos_id() const override { return eos_id_; }
  std::string key() const override { return key_; }
  std::string file_hash() const override { return file_hash_; }

 private:
  const std::string* FindSpelling(int32_t id) const {
    const tok::AddedToken* added = added_.Token(id);
    return added != nullptr ? &added->content : model_.vocabulary().Token(id);
  }
  void AddTokens(const std::vector<tok::DeclaredToken>& batch, const std::string& where);
  void ArrangeEnds(const tok::SpecialTokens& special);
  int32_t NamedId(const tok::SpecialTokens& special, const std::string& name) const;
  void EncodeSegments(std::string_view text, std::vector<int32_t>* tokens) const;
  void EncodeText(std::string_view text, bool at_start, tok::Scratch* scratch,
                  std::vector<int32_t>* tokens) const;

  std::unique_ptr<tok::Normalizer> normalizer_;
  tok::PreTokenization pre_tokenization_;
  std::unique_ptr<tok::Decoder> decoder_;
  tok::BpeModel model_;
  tok::AddedTokens added_;
  tok::Arrangement arrangement_;
  mutable tok::ScratchPool scratches_;
  int32_t bos_id_ = -1;
  int32_t eos_id_ = -1;
  std::string key_;
  std::string file_hash_;
};

Json Part(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found == json.end() ? Json() : *found;
}

// `truncation` and `padding` are ignored: transformers switches both off for a plain call.
HfTokenizer::HfTokenizer(Blueprint blueprint, const std::string& where)
    : normalizer_(
          tok::MakeNormalizer(Part(blueprint.file.json, "normalizer"), where + ": normalizer")),
      pre_tokenization_(tok::MakePreTokenizer(Part(blueprint.file.json, "pre_tokenizer"),
                                              normalizer_ != nullptr, where + ": pre_tokenizer")),
      decoder_(tok::MakeDecoder(Part(blueprint.file.json, "decoder"), where + ": decoder")),
      model_(Field<Json>(blueprint.file.json, "model", where), std::move(blueprint.file.vocabulary),
             pre_tokenization_.spelling, where + ": model"),
      arrangement_(tok::ReadPostProcessor(Part(blueprint.file.json, "post_processor"),
                                          where + ": post_processor")),
      key_(std::move(blueprint.key)),
      file_hash_(std::move(blueprint.file_hash)) {
  const Json& json = blueprint.file.json;
  tok::CheckMembers(json,
                    {"version", "truncation", "padding", "added_tokens", "normalizer",
                     "pre_tokenizer", "post_processor", "decoder", "model"},
                    where);
  const std::string version = FieldOr<std::string>(json, "version", "1.0", where);
  if (version != "1.0") tok::RefuseType("version", version, {"1.0"}, where);
  for (const auto& batch : blueprint.special.batches) AddTokens(batch, where);
  added_.Finish(where);
  bos_id_ = NamedId(blueprint.special, "bos_token");
  eos_id_ = NamedId(blueprint.special, "eos_token");
  ArrangeEnds(blueprint.special);
}

int32_t HfTokenizer::NamedId(const tok::SpecialTokens& special, const std::string& name) const {
  const std::string* content = special.Named(name);
  return content != nullptr ? TokenId(*content) : -1;
}

void HfTokenizer::ArrangeEnds(const tok::SpecialTokens& special) {
  if (!special.ends) return;
  arrangement_ = {};
  if (special.ends->bos && bos_id_ >= 0) {
    arrangement_.with_special.insert(arrangement_.with_special.begin(), bos_id_);
  }
  if (special.ends->eos && eos_id_ >= 0) arrangement_.with_special.push_back(eos_id_);
}

// A token must get the id that its file gives. With another id the model would see another token.
void HfTokenizer::AddTokens(const std::vector<tok::DeclaredToken>& batch,
                            const std::string& where) {
  std::vector<tok::AddedToken> tokens;
  for (const auto& [token, id] : batch) tokens.push_back(token);
  added_.Add(tokens, model_.vocabulary(), normalizer_.get());
  for (const auto& [token, id] : batch) {
    const int32_t given = added_.Id(token.content);
    if (!id || given == *id || token.content.empty()) continue;
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the added token '{}' has the id {}, but the tokenizers library would "
                    "give it {}",
                    where, token.content, *id, given));
  }
}

void HfTokenizer::EncodeText(std::string_view text, bool at_start, tok::Scratch* scratch,
                             std::vector<int32_t>* tokens) const {
  std::string& normalized = scratch->normalized;
  normalized.assign(text);
  if (normalizer_) normalized = normalizer_->Apply(std::move(normalized));
  added_.SplitNormalized(normalized, &scratch->normalized_segments);
  for (const tok::Segment& segment : scratch->normalized_segments) {
    if (segment.id >= 0) {
      tokens->push_back(segment.id);
      continue;
    }
    tok::Pieces& pieces = scratch->pieces;
    pieces.Reset(segment.text, at_start && segment.text.data() == normalized.data());
    if (pre_tokenization_.splitter) pre_tokenization_.splitter->Apply(&pieces);
    for (const tok::Piece& piece : pieces.list) {
      model_.Encode(pieces.View(piece), &scratch->model, tokens);
    }
  }
}

void HfTokenizer::EncodeSegments(std::string_view text, std::vector<int32_t>* tokens) const {
  const tok::ScratchPool::Loan scratch = scratches_.Borrow();
  added_.SplitRaw(text, &scratch->raw_segments);
  for (const tok::Segment& segment : scratch->raw_segments) {
    if (segment.id >= 0) {
      tokens->push_back(segment.id);
    } else {
      EncodeText(segment.text, segment.text.data() == text.data(), scratch.get(), tokens);
    }
  }
}

std::vector<int32_t> HfTokenizer::Encode(std::string_view text, bool add_special_tokens) const {
  if (!IsUtf8(text)) {
    throw Error(ErrorKind::kInput, "the text to encode is not valid UTF-8");
  }
  const std::vector<int32_t>& places =
      add_special_tokens ? arrangement_.with_special : arrangement_.without_special;
  constexpr size_t kBytesPerToken = 3;  // a guess; rarely too low
  std::vector<int32_t> tokens;
  tokens.reserve(text.size() / kBytesPerToken + places.size());
  std::optional<std::pair<size_t, size_t>> encoded;  // place of the text's tokens
  for (const int32_t place : places) {
    if (place != tok::Arrangement::kText) {
      tokens.push_back(place);
    } else if (!encoded) {
      const size_t begin = tokens.size();
      EncodeSegments(text, &tokens);
      encoded.emplace(begin, tokens.size());
    } else {
      for (size_t i = encoded->first; i < encoded->second; ++i) tokens.push_back(tokens[i]);
    }
  }
  return tokens;
}

// Ids without a token are left out, as in the tokenizers library. If the normalizer changes the
// text of an added token, the token is spelled in the changed form and no longer counts as special.
std::string HfTokenizer::Decode(const std::vector<int32_t>& tokens,
                                bool skip_special_tokens) const {
  std::vector<std::string> spelled;
  for (const int32_t id : tokens) {
    const std::string* spelling = added_.DecodedSpelling(id);
    if (spelling == nullptr) spelling = model_.vocabulary().Token(id);
    if (spelling == nullptr) continue;
    if (skip_special_tokens && added_.IsSpecial(*spelling)) continue;
    spelled.push_back(*spelling);
  }
  if (!decoder_) return Join(spelled, " ");
  decoder_->Apply(&spelled);
  std::string text;
  for (const std::string& part : spelled) text += part;
  return text;
}

// Names everything that decides an encoding. The parts that the class sets are included although
// the class determines them, so a change of the class's rules changes the key.
std::string KeyOf(std::string_view text, const Json& file, const tok::SpecialTokens& special) {
  Json parts = Json::object();
  for (const char* name : {"normalizer", "pre_tokenizer", "post_processor", "decoder"}) {
    parts[name] = Part(file, name);
  }
  if (const auto model = file.find("model"); model != file.end() && model->is_object()) {
    for (const auto& [name, value] : model->items()) {
      if (name != "merges") parts["model"][name] = value;
    }
  }
  return ContentKey(
      fmt::format("{}{}\n{}\n{}", kRulesVersion, ToLine(parts), tok::Spell(special), text));
}

// Distinct tokens of the model and of the batches.
size_t CountTokens(const tok::Vocabulary& vocabulary, const tok::SpecialTokens& special) {
  std::set<std::string> added;
  for (const auto& batch : special.batches) {
    for (const auto& [token, id] : batch) {
      if (vocabulary.Id(token.content) < 0) added.insert(token.content);
    }
  }
  return static_cast<size_t>(vocabulary.size()) + added.size();
}

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::Parse(std::string_view json, const std::string& name) {
  Blueprint blueprint;
  blueprint.file = tok::ParseTokenizerJson(json, name);
  blueprint.special.batches = {tok::ReadAddedTokens(blueprint.file.json, name)};
  blueprint.key = KeyOf(json, blueprint.file.json, blueprint.special);
  blueprint.file_hash = HashHex(json);
  return std::make_unique<HfTokenizer>(std::move(blueprint), name);
}

std::unique_ptr<Tokenizer> Tokenizer::Load(const ReadFolder& directory) {
  const std::string file = "tokenizer.json";
  if (!directory.HasFile(file)) {
    const bool has_pieces = directory.HasFile("tokenizer.model");
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the checkpoint has no tokenizer.json, found {}", directory.path().string(),
                    has_pieces ? "a SentencePiece tokenizer.model, which evald does not read"
                               : "no tokenizer.model either"),
        fmt::format(
            "make one with transformers: python3 -c \"from transformers import AutoTokenizer; "
            "AutoTokenizer.from_pretrained('{0}').save_pretrained('{0}')\"",
            directory.path().string()));
  }
  const std::string text = directory.Read(file, tok::kTokenizerBytesMax);
  const std::string where = (directory / file).string();
  const tok::TokenizerConfig config = tok::ReadTokenizerConfig(directory);
  const tok::ClassRules& rules = tok::RequireClass(tok::PickClass(config.class_files, text));
  Blueprint blueprint;
  blueprint.file = tok::ParseTokenizerJson(text, where);
  Json& json = blueprint.file.json;
  tok::Rebuild(rules, config.settings, config.where, &json);
  blueprint.special = tok::ReadSpecialTokens(config, rules, json, where);
  tok::FixMistralPattern(config.settings, config.class_files.config,
                         CountTokens(blueprint.file.vocabulary, blueprint.special), &json);
  blueprint.key = KeyOf(text, json, blueprint.special);
  blueprint.file_hash = HashHex(text);
  return std::make_unique<HfTokenizer>(std::move(blueprint), where);
}

}  // namespace evald
