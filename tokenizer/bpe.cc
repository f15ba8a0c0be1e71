#include "tokenizer/bpe.h"

#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

}  // namespace

BpeModel::BpeModel(const Json& json, Vocabulary vocabulary, Spelling spelling,
                   const std::string& where)
    : vocabulary_(std::move(vocabulary)), spelling_(spelling) {
  const std::string type = FieldOr<std::string>(json, "type", "BPE", where);
  if (type != "BPE") RefuseType("model", type, {"BPE"}, where);
  CheckMembers(json,
               {"dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"},
               where);
  if (FieldOr<double>(json, "dropout", 0, where) != 0) {
    throw Error(ErrorKind::kInput,
                where + ": dropout is not served: it would make the tokens a matter of chance",
                "set it to null");
  }
  if (vocabulary_.size() == 0) throw Error(ErrorKind::kInput, where + ": the vocab has no tokens");
  has_unknown_ = json.contains("unk_token") && !json["unk_token"].is_null();
  unknown_ = FieldOr<std::string>(json, "unk_token", "", where);
  prefix_ = FieldOr<std::string>(json, "continuing_subword_prefix", "", where);
  suffix_ = FieldOr<std::string>(json, "end_of_word_suffix", "", where);
  fuse_unknown_ = FieldOr<bool>(json, "fuse_unk", false, where);
  byte_fallback_ = FieldOr<bool>(json, "byte_fallback", false, where);
  ignore_merges_ = FieldOr<bool>(json, "ignore_merges", false, where);
  has_affixes_ = !prefix_.empty() || !suffix_.empty();
  falls_at_marks_ = spelling_ == Spelling::kText && !has_affixes_ && !ignore_merges_ &&
                    vocabulary_.Id(kMark) >= 0;
  FindCharacters();
  ReadMerges(Field<Json>(json, "merges", where), where);
}

// A merge is the string "left right" or, since version 0.20 of the tokenizers library, a pair.
void BpeModel::ReadMerges(const Json& merges, const std::string& where) {
  if (!merges.is_array()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: merges: found {}, expected a list", where, merges.type_name()));
  }
  merges_.Reserve(merges.size());
  int32_t rank = 0;
  for (const Json& merge : merges) {
    const std::string place = fmt::format("{}: merges[{}]", where, rank);
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      AddMerge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(),
               rank++, place);
      continue;
    }
    const std::vector<std::string> parts = merge.is_string()
                                               ? Split(merge.get_ref<const std::string&>(), ' ')
                                               : std::vector<std::string>();
    if (!parts.empty() && parts[0].starts_with("#version")) continue;
    if (parts.size() != 2) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: found {}, expected \"left right\" or [\"left\", \"right\"]",
                              place, ToLine(merge).substr(0, 80)));
    }
    AddMerge(parts[0], parts[1], rank++, place);
  }
}

void BpeModel::AddMerge(const std::string& left, const std::string& right, int32_t rank,
                        const std::string& where) {
  const auto id_of = [&](const std::string& token) {
    const int32_t id = vocabulary_.Id(token);
    if (id >= 0) return id;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: '{}' + '{}': the token '{}' is not in the vocab", where, left,
                            right, token));
  };
  const int32_t left_id = id_of(left);
  const int32_t right_id = id_of(right);
  if (right.size() < prefix_.size()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: '{}' is shorter than the prefix '{}'", where, right, prefix_));
  }
  merges_.Set(left_id, right_id, {rank, id_of(left + right.substr(prefix_.size()))});
  if (right.starts_with(kMark) && !left.ends_with(kMark)) falls_at_marks_ = false;
}

void BpeModel::FindCharacters() {
  constexpr char32_t kLowCodes = 0x10000;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary_.Id(fmt::format("<0x{:02X}>", byte));
    spelled_ids_[byte] = vocabulary_.Id(ToByteAlphabet({&c, 1}));
  }
  if (has_affixes_ || spelling_ == Spelling::kBytes) return;
  character_ids_.assign(kLowCodes, -1);
  vocabulary_.ForEach([this](const std::string& token, int32_t id) {
    if (token.empty()) return;
    size_t end = 0;
    const char32_t code = NextCodePoint(token, &end);
    if (end == token.size() && code < kLowCodes) character_ids_[code] = id;
  });
}

// The token of the character at `begin`, -1 for none. Sets the character's end and its spelling.
int32_t BpeModel::CharacterId(std::string_view word, size_t begin, size_t* end,
                              std::string* spelled) const {
  *end = begin;
  const char32_t code = NextCodePoint(word, end);
  if (code < character_ids_.size()) {
    const int32_t id = character_ids_[code];
    if (id < 0) spelled->assign(word.substr(begin, *end - begin));
    return id;
  }
  spelled->clear();
  if (begin > 0) *spelled += prefix_;
  *spelled += word.substr(begin, *end - begin);
  if (*end >= word.size()) *spelled += suffix_;
  return vocabulary_.Id(*spelled);
}

int32_t BpeModel::UnknownId() const {
  const int32_t id = vocabulary_.Id(unknown_);
  if (id >= 0) return id;
  throw Error(ErrorKind::kInput,
              fmt::format("the unknown token '{}' is needed but is not in the vocab", unknown_));
}

bool BpeModel::AddBytes(std::string_view character, Symbols* symbols) const {
  for (const char c : character) {
    if (byte_ids_[static_cast<unsigned char>(c)] < 0) return false;
  }
  for (const char c : character) symbols->Add(byte_ids_[static_cast<unsigned char>(c)]);
  return true;
}

void BpeModel::AddCharacters(std::string_view word, Symbols* symbols) const {
  bool unknown_pending = false;
  std::string spelled;
  for (size_t at = 0, end = 0; at < word.size(); at = end) {
    if (const int32_t id = CharacterId(word, at, &end, &spelled); id >= 0) {
      if (unknown_pending) symbols->Add(UnknownId());
      unknown_pending = false;
      symbols->Add(id);
    } else if (byte_fallback_ && AddBytes(spelled, symbols)) {
      // The library puts a pending unknown token after these bytes.
    } else if (has_unknown_) {
      if (unknown_pending && !fuse_unknown_) symbols->Add(UnknownId());
      unknown_pending = true;
    }
  }
  if (unknown_pending) symbols->Add(UnknownId());
}

// False if a byte has no token of its own. Nothing is added then.
bool BpeModel::AddByteCharacters(std::string_view bytes, Symbols* symbols) const {
  if (has_affixes_) return false;
  for (const char c : bytes) {
    const int32_t id = spelled_ids_[static_cast<unsigned char>(c)];
    if (id < 0) {
      symbols->Clear();
      return false;
    }
    symbols->Add(id);
  }
  return true;
}

void BpeModel::EncodeUncached(std::string_view part, Symbols* symbols,
                              std::vector<int32_t>* tokens) const {
  const bool bytes = spelling_ == Spelling::kBytes;
  if (ignore_merges_) {
    const int32_t id = bytes ? vocabulary_.Id(ToByteAlphabet(part)) : vocabulary_.Id(part);
    if (id >= 0) {
      tokens->push_back(id);
      return;
    }
  }
  symbols->Clear();
  if (!bytes) {
    AddCharacters(part, symbols);
  } else if (!AddByteCharacters(part, symbols)) {
    AddCharacters(ToByteAlphabet(part), symbols);
  }
  symbols->MergeAll(merges_, !prefix_.empty());
  tokens->insert(tokens->end(), symbols->ids().begin(), symbols->ids().end());
}

void BpeModel::EncodePart(std::string_view part, Scratch* scratch,
                          std::vector<int32_t>* tokens) const {
  if (scratch->cache.Get(part, tokens)) return;
  const size_t before = tokens->size();
  EncodeUncached(part, &scratch->symbols, tokens);
  scratch->cache.Put(part, tokens->data() + before, tokens->size() - before);
}

// If falls_at_marks_, no merge joins a mark to the character before it. So the texts on both sides
// of that place can be encoded separately, and words are found in the cache.
void BpeModel::Encode(std::string_view word, Scratch* scratch, std::vector<int32_t>* tokens) const {
  if (word.empty()) return;
  size_t begin = 0;
  for (size_t mark = 0; falls_at_marks_; mark += kMark.size()) {
    mark = word.find(kMark, mark);
    if (mark == std::string_view::npos) break;
    if (mark == begin || word.substr(0, mark).ends_with(kMark)) continue;
    EncodePart(word.substr(begin, mark - begin), scratch, tokens);
    begin = mark;
  }
  EncodePart(word.substr(begin), scratch, tokens);
}

}  // namespace evald::tok
