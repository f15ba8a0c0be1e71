#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
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
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_config.h"
#include "tokenizer/tokenizer_json.h"

namespace evald {
namespace {

namespace fs = std::filesystem;

// Changes when the same files begin to give other tokens.
constexpr std::string_view kRulesVersion = "evald-tokenizer-2\n";

class HfTokenizer : public Tokenizer {
 public:
  HfTokenizer(std::string_view text, const tok::TokenizerConfig& config, const std::string& where)
      : HfTokenizer(tok::ParseTokenizerJson(text, where), config, where) {
    Hasher hasher;
    hasher.Update(kRulesVersion);
    hasher.Update(tok::Spell(config));
    hasher.Update("\n");
    hasher.Update(text);
    key_ = hasher.Hex();
  }

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

 private:
  HfTokenizer(tok::TokenizerJson file, const tok::TokenizerConfig& config,
              const std::string& where);

  const std::string* FindSpelling(int32_t id) const {
    const tok::AddedToken* added = added_.Token(id);
    return added != nullptr ? &added->content : model_.vocabulary().Token(id);
  }
  void ReadAddedTokens(const Json& json, const tok::TokenizerConfig& config,
                       const std::string& where);
  void AddUnder(int64_t id, const tok::AddedToken& token, const std::string& where);
  void EncodeText(std::string_view text, bool at_start, tok::Scratch* scratch,
                  std::vector<int32_t>* tokens) const;

  std::unique_ptr<tok::Normalizer> normalizer_;
  tok::PreTokenization pre_tokenization_;
  std::unique_ptr<tok::Decoder> decoder_;
  tok::BpeModel model_;
  tok::AddedTokens added_;
  tok::Surround surround_;
  mutable tok::ScratchPool scratches_;
  int32_t bos_id_ = -1;
  int32_t eos_id_ = -1;
  std::string key_;
};

Json Part(const Json& json, const std::string& key) {
  const auto found = json.find(key);
  return found == json.end() ? Json() : *found;
}

// `truncation` and `padding` are left aside: transformers switches both off for a plain call.
HfTokenizer::HfTokenizer(tok::TokenizerJson file, const tok::TokenizerConfig& config,
                         const std::string& where)
    : normalizer_(tok::MakeNormalizer(Part(file.json, "normalizer"), where + ": normalizer")),
      pre_tokenization_(tok::MakePreTokenizer(Part(file.json, "pre_tokenizer"),
                                              normalizer_ != nullptr, where + ": pre_tokenizer")),
      decoder_(tok::MakeDecoder(Part(file.json, "decoder"), where + ": decoder")),
      model_(Field<Json>(file.json, "model", where), std::move(file.vocabulary),
             pre_tokenization_.spelling, where + ": model"),
      surround_(
          tok::ReadPostProcessor(Part(file.json, "post_processor"), where + ": post_processor")) {
  tok::CheckMembers(file.json,
                    {"version", "truncation", "padding", "added_tokens", "normalizer",
                     "pre_tokenizer", "post_processor", "decoder", "model"},
                    where);
  const std::string version = FieldOr<std::string>(file.json, "version", "1.0", where);
  if (version != "1.0") tok::RefuseType("version", version, {"1.0"}, where);
  ReadAddedTokens(Part(file.json, "added_tokens"), config, where);
  if (config.bos) bos_id_ = TokenId(*config.bos);
  if (config.eos) eos_id_ = TokenId(*config.eos);
}

// Adds a token that must get the id `id`.
void HfTokenizer::AddUnder(int64_t id, const tok::AddedToken& token, const std::string& where) {
  added_.Add(token, model_.vocabulary());
  const int32_t given = added_.Id(token.content);
  if (given == id || token.content.empty()) return;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: the added token '{}' has the id {}, but the tokenizers library would "
                  "give it {}",
                  where, token.content, id, given));
}

void HfTokenizer::ReadAddedTokens(const Json& json, const tok::TokenizerConfig& config,
                                  const std::string& where) {
  if (!json.is_null() && !json.is_array()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: added_tokens: found {}, expected a list", where,
                                               json.type_name()));
  }
  for (const Json& item : json) {
    AddUnder(Field<int64_t>(item, "id", where + ": added_tokens"),
             tok::AddedTokenFromJson(item, where + ": added_tokens"), where);
  }
  for (const auto& [id, token] : config.added) AddUnder(id, token, where);
  for (const tok::AddedToken& token : config.special) added_.Add(token, model_.vocabulary());
  added_.Finish(normalizer_.get(), where);
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

std::vector<int32_t> HfTokenizer::Encode(std::string_view text, bool add_special_tokens) const {
  if (!IsUtf8(text)) {
    throw Error(ErrorKind::kInput, "the text to encode is not valid UTF-8");
  }
  constexpr size_t kBytesPerToken = 3;  // a guess that seldom makes the list grow
  std::vector<int32_t> tokens;
  tokens.reserve(text.size() / kBytesPerToken + surround_.before.size() + surround_.after.size());
  if (add_special_tokens) tokens.assign(surround_.before.begin(), surround_.before.end());
  const tok::ScratchPool::Loan scratch = scratches_.Borrow();
  added_.SplitRaw(text, &scratch->raw_segments);
  for (const tok::Segment& segment : scratch->raw_segments) {
    if (segment.id >= 0) {
      tokens.push_back(segment.id);
    } else {
      EncodeText(segment.text, segment.text.data() == text.data(), scratch.get(), &tokens);
    }
  }
  if (add_special_tokens) {
    tokens.insert(tokens.end(), surround_.after.begin(), surround_.after.end());
  }
  return tokens;
}

// Ids that no token has are left out, as the tokenizers library does.
std::string HfTokenizer::Decode(const std::vector<int32_t>& tokens,
                                bool skip_special_tokens) const {
  std::vector<std::string> spelled;
  for (const int32_t id : tokens) {
    const std::string* spelling = FindSpelling(id);
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

}  // namespace

std::unique_ptr<Tokenizer> Tokenizer::Parse(std::string_view json, const std::string& name) {
  return std::make_unique<HfTokenizer>(json, tok::TokenizerConfig{}, name);
}

std::unique_ptr<Tokenizer> Tokenizer::Load(const fs::path& directory) {
  const fs::path file = directory / "tokenizer.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    const char* pieces = "tokenizer.model";
    const bool has_pieces = fs::exists(directory / pieces, ignored);
    throw Error(
        ErrorKind::kInput,
        fmt::format("{}: the checkpoint has no tokenizer.json, found {}", directory.string(),
                    has_pieces ? "a SentencePiece tokenizer.model, which evald does not read"
                               : "no tokenizer.model either"),
        fmt::format(
            "make one with transformers: python3 -c \"from transformers import AutoTokenizer; "
            "AutoTokenizer.from_pretrained('{0}').save_pretrained('{0}')\"",
            directory.string()));
  }
  return std::make_unique<HfTokenizer>(ReadFile(file), tok::ReadTokenizerConfig(directory),
                                       file.string());
}

}  // namespace evald
