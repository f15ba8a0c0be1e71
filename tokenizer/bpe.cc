#include "tokenizer/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

uint64_t PairKey(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

// A merge that may be due. The lowest rank comes first, then the leftmost.
struct Candidate {
  int32_t rank;
  int32_t position;
  int32_t id;

  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

}  // namespace

// The symbols of a word, as a linked list in place.
struct BpeModel::Symbols {
  struct Symbol {
    int32_t id;
    int32_t previous;  // -1 for none
    int32_t next;      // -1 for none
    bool gone = false;
  };
  std::vector<Symbol> list;

  void Add(int32_t id) {
    const auto at = static_cast<int32_t>(list.size());
    if (at > 0) list.back().next = at;
    list.push_back({id, at - 1, -1});
  }

  // Merges the symbol at `at` with the one behind it.
  void Merge(int32_t at, int32_t id) {
    Symbol& left = list[static_cast<size_t>(at)];
    Symbol& right = list[static_cast<size_t>(left.next)];
    left.id = id;
    right.gone = true;
    left.next = right.next;
    if (right.next >= 0) list[static_cast<size_t>(right.next)].previous = at;
  }
};

BpeModel::BpeModel(const Json& json, Vocabulary vocabulary, const std::string& where)
    : vocabulary_(std::move(vocabulary)) {
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
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_.push_back(vocabulary_.Id(fmt::format("<0x{:02X}>", byte)));
  }
  ReadMerges(Field<Json>(json, "merges", where), where);
}

// A merge is the string "left right" or, since version 0.20 of the tokenizers library, a pair.
void BpeModel::ReadMerges(const Json& merges, const std::string& where) {
  if (!merges.is_array()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: merges: found {}, expected a list", where, merges.type_name()));
  }
  merges_.reserve(merges.size());
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
  merges_[PairKey(left_id, right_id)] = {rank, id_of(left + right.substr(prefix_.size()))};
}

const BpeModel::Merged* BpeModel::Find(int32_t left, int32_t right) const {
  const auto found = merges_.find(PairKey(left, right));
  return found == merges_.end() ? nullptr : &found->second;
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
  const auto add_unknown = [&] {
    const int32_t id = vocabulary_.Id(unknown_);
    if (id < 0) {
      throw Error(
          ErrorKind::kInput,
          fmt::format("the unknown token '{}' is needed but is not in the vocab", unknown_));
    }
    symbols->Add(id);
  };
  std::string spelled;
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    NextCodePoint(word, &at);
    spelled.clear();
    if (begin > 0) spelled += prefix_;
    spelled += word.substr(begin, at - begin);
    if (at >= word.size()) spelled += suffix_;
    if (const int32_t id = vocabulary_.Id(spelled); id >= 0) {
      if (unknown_pending) add_unknown();
      unknown_pending = false;
      symbols->Add(id);
    } else if (byte_fallback_ && AddBytes(spelled, symbols)) {
      // The library leaves an unknown token that is pending behind these bytes.
    } else if (has_unknown_) {
      if (unknown_pending && !fuse_unknown_) add_unknown();
      unknown_pending = true;
    }
  }
  if (unknown_pending) add_unknown();
}

void BpeModel::EncodeUncached(std::string_view word, std::vector<int32_t>* tokens) const {
  Symbols symbols;
  symbols.list.reserve(word.size());
  AddCharacters(word, &symbols);

  std::priority_queue<Candidate> queue;
  const auto consider = [&](int32_t left) {
    if (left < 0) return;
    const Symbols::Symbol& symbol = symbols.list[static_cast<size_t>(left)];
    if (symbol.next < 0) return;
    const Merged* merged = Find(symbol.id, symbols.list[static_cast<size_t>(symbol.next)].id);
    if (merged != nullptr) queue.push({merged->rank, left, merged->id});
  };
  for (size_t i = 0; i < symbols.list.size(); ++i) consider(static_cast<int32_t>(i));
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const Symbols::Symbol& left = symbols.list[static_cast<size_t>(best.position)];
    if (left.gone || left.next < 0) continue;
    const Merged* merged = Find(left.id, symbols.list[static_cast<size_t>(left.next)].id);
    if (merged == nullptr || merged->id != best.id) continue;
    symbols.Merge(best.position, best.id);
    consider(left.previous);
    consider(best.position);
  }
  for (const Symbols::Symbol& symbol : symbols.list) {
    if (!symbol.gone) tokens->push_back(symbol.id);
  }
}

void BpeModel::Encode(std::string_view word, std::vector<int32_t>* tokens) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    if (const int32_t id = vocabulary_.Id(word); id >= 0) {
      tokens->push_back(id);
      return;
    }
  }
  if (cache_.Get(word, tokens)) return;
  const size_t before = tokens->size();
  EncodeUncached(word, tokens);
  cache_.Put(word, tokens->data() + before, tokens->size() - before);
}

}  // namespace evald::tok
