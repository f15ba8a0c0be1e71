#include "tokenizer/added_tokens.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "evald/error.h"
#include "tokenizer/component.h"
#include "tokenizer/unicode.h"

namespace evald::tok {
namespace {

bool EndsInWord(std::string_view text) {
  if (text.empty()) return false;
  size_t at = PreviousStart(text, text.size());
  return IsWord(NextCodePoint(text, &at));
}

bool StartsWithWord(std::string_view text) {
  size_t at = 0;
  return !text.empty() && IsWord(NextCodePoint(text, &at));
}

size_t WithoutSpaceBefore(std::string_view text, size_t end) {
  while (end > 0) {
    const size_t start = PreviousStart(text, end);
    size_t at = start;
    if (!IsWhitespace(NextCodePoint(text, &at))) break;
    end = start;
  }
  return end;
}

size_t BehindSpace(std::string_view text, size_t from) {
  while (from < text.size()) {
    size_t at = from;
    if (!IsWhitespace(NextCodePoint(text, &at))) break;
    from = at;
  }
  return from;
}

}  // namespace

AddedToken AddedTokenFromJson(const Json& json, const std::string& where) {
  CheckMembers(
      json, {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", "__type"},
      where);
  AddedToken token;
  token.content = Field<std::string>(json, "content", where);
  token.single_word = FieldOr<bool>(json, "single_word", false, where);
  token.lstrip = FieldOr<bool>(json, "lstrip", false, where);
  token.rstrip = FieldOr<bool>(json, "rstrip", false, where);
  token.special = FieldOr<bool>(json, "special", false, where);
  token.normalized = FieldOr<bool>(json, "normalized", !token.special, where);
  return token;
}

void StringSet::Add(std::string_view text, int32_t value, const std::string& where) {
  if (text.empty()) {
    throw Error(ErrorKind::kInput, where + ": an added token is empty after normalization");
  }
  if (!added_.try_emplace(std::string(text), value).second) {
    throw Error(ErrorKind::kInput, where + ": another added token is the same text once normalized",
                "set \"normalized\" of one of the two to false");
  }
}

// std::string compares bytes as unsigned.
void StringSet::Finish() {
  sorted_.reserve(added_.size());
  while (!added_.empty()) {
    auto node = added_.extract(added_.begin());
    sorted_.emplace_back(std::move(node.key()), node.mapped());
  }
  std::sort(sorted_.begin(), sorted_.end());
  const Range all{0, static_cast<uint32_t>(sorted_.size())};
  for (size_t c = 0; c < first_bytes_.size(); ++c) {
    first_bytes_[c] = Narrowed(all, 0, static_cast<unsigned char>(c));
  }
}

StringSet::Range StringSet::Narrowed(Range range, size_t depth, unsigned char next) const {
  // The byte at `depth`; -1 for a string that ends there, which is the first one.
  const auto byte_at = [&](uint32_t i) {
    const std::string& text = sorted_[i].first;
    return depth < text.size() ? static_cast<int>(static_cast<unsigned char>(text[depth])) : -1;
  };
  if (range.begin == range.end) return range;
  if (byte_at(range.begin) == next && byte_at(range.end - 1) == next) return range;
  const auto bound = [&](int above) {
    uint32_t low = range.begin;
    for (uint32_t high = range.end; low < high;) {
      const uint32_t middle = low + (high - low) / 2;
      if (byte_at(middle) < above) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  };
  return {bound(next), bound(next + 1)};
}

std::optional<StringSet::Found> StringSet::LongestAt(std::string_view text, size_t begin) const {
  std::optional<Found> longest;
  Range range = first_bytes_[static_cast<unsigned char>(text[begin])];
  for (size_t depth = 1; range.begin < range.end; ++depth) {
    const auto& [shortest, value] = sorted_[range.begin];
    if (range.end - range.begin == 1) {  // the rest at once
      if (text.substr(begin).starts_with(shortest))
        longest = Found{begin, begin + shortest.size(), value};
      break;
    }
    if (shortest.size() == depth) longest = Found{begin, begin + depth, value};
    if (begin + depth == text.size()) break;
    range = Narrowed(range, depth, static_cast<unsigned char>(text[begin + depth]));
  }
  return longest;
}

std::optional<StringSet::Found> StringSet::Search(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (auto found = LongestAt(text, begin)) return found;
  }
  return std::nullopt;
}

void AddedTokens::Add(const std::vector<AddedToken>& tokens, const Vocabulary& model,
                      const Normalizer* normalizer) {
  int32_t next_id = std::max(model.size(), highest_id_ + 1);
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    int32_t id = Id(token.content);
    if (id >= 0 && tokens_.at(id) == token) continue;
    if (id < 0) id = model.Id(token.content);
    if (id < 0) id = next_id++;
    if (token.normalized && normalizer != nullptr) {
      std::string normalized = normalizer->Apply(token.content);
      if (normalized != token.content) normalized_spellings_[id] = std::move(normalized);
    }
    if (token.special) special_contents_.insert(token.content);
    ids_[token.content] = id;
    tokens_[id] = token;
    highest_id_ = std::max(highest_id_, id);
  }
}

void AddedTokens::Finish(const std::string& where) {
  const std::map<int32_t, AddedToken> in_order(tokens_.begin(), tokens_.end());
  for (const auto& [id, token] : in_order) {
    const std::string place = fmt::format("{}: added token '{}'", where, token.content);
    if (token.normalized) {
      normalized_.Add(*DecodedSpelling(id), id, place);
    } else {
      raw_.Add(token.content, id, place);
    }
  }
  raw_.Finish();
  normalized_.Finish();
}

int32_t AddedTokens::Id(std::string_view content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? -1 : found->second;
}

const AddedToken* AddedTokens::Token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

const std::string* AddedTokens::DecodedSpelling(int32_t id) const {
  const auto normalized = normalized_spellings_.find(id);
  if (normalized != normalized_spellings_.end()) return &normalized->second;
  const AddedToken* token = Token(id);
  return token != nullptr ? &token->content : nullptr;
}

bool AddedTokens::IsSpecial(std::string_view content) const {
  return special_contents_.contains(content);
}

void AddedTokens::Split(std::string_view text, const StringSet& strings,
                        std::vector<Segment>* segments) const {
  segments->clear();
  size_t taken = 0;
  size_t from = 0;
  while (const std::optional<StringSet::Found> found = strings.Search(text, from)) {
    from = found->end;
    size_t begin = found->begin;
    size_t end = found->end;
    const AddedToken& token = *Token(found->value);
    if (token.single_word &&
        (EndsInWord(text.substr(0, begin)) || StartsWithWord(text.substr(end)))) {
      continue;
    }
    if (token.lstrip) begin = std::max(WithoutSpaceBefore(text, begin), taken);
    if (token.rstrip) end = BehindSpace(text, end);
    if (taken < begin) segments->push_back({text.substr(taken, begin - taken)});
    segments->push_back({text.substr(begin, end - begin), found->value});
    taken = end;
  }
  if (taken != text.size()) segments->push_back({text.substr(taken)});
}

}  // namespace evald::tok
