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

void Trie::Add(std::string_view text, int32_t value, const std::string& where) {
  if (text.empty()) {
    throw Error(ErrorKind::kInput, where + ": an added token is empty after normalization");
  }
  first_bytes_[static_cast<unsigned char>(text[0])] = true;
  uint32_t node = 0;
  for (const char c : text) {
    const auto fresh = static_cast<uint32_t>(nodes_.size());
    const auto [at, added] = nodes_[node].next.try_emplace(static_cast<unsigned char>(c), fresh);
    node = at->second;
    if (added) nodes_.emplace_back();
  }
  if (nodes_[node].value < 0) nodes_[node].value = value;
}

std::optional<Trie::Found> Trie::Search(std::string_view text, size_t from) const {
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (!first_bytes_[static_cast<unsigned char>(text[begin])]) continue;
    std::optional<Found> longest;
    uint32_t node = 0;
    for (size_t at = begin; at < text.size(); ++at) {
      const auto next = nodes_[node].next.find(static_cast<unsigned char>(text[at]));
      if (next == nodes_[node].next.end()) break;
      node = next->second;
      if (nodes_[node].value >= 0) longest = Found{begin, at + 1, nodes_[node].value};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

void AddedTokens::Add(const AddedToken& token, const Vocabulary& model) {
  if (token.content.empty()) return;
  if (token.special && special_contents_.insert(token.content).second) special_.push_back(token);
  int32_t id = Id(token.content);
  if (id < 0) id = model.Id(token.content);
  if (id < 0) id = std::max(model.size(), highest_id_ + 1);
  const auto [at, fresh] = tokens_.try_emplace(id, token);
  if (!fresh) {
    if (at->second == token) return;
    at->second = token;
  }
  ids_[token.content] = id;
  highest_id_ = std::max(highest_id_, id);
  if (!special_contents_.contains(token.content)) plain_.push_back(token);
}

void AddedTokens::Finish(const Normalizer* normalizer, const std::string& where) {
  for (const std::vector<AddedToken>* group : {&special_, &plain_}) {
    for (const AddedToken& token : *group) {
      const std::string place = fmt::format("{}: added token '{}'", where, token.content);
      if (!token.normalized) {
        raw_.Add(token.content, Id(token.content), place);
      } else {
        normalized_.Add(normalizer != nullptr ? normalizer->Apply(token.content) : token.content,
                        Id(token.content), place);
      }
    }
  }
}

int32_t AddedTokens::Id(std::string_view content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? -1 : found->second;
}

const AddedToken* AddedTokens::Token(int32_t id) const {
  const auto found = tokens_.find(id);
  return found == tokens_.end() ? nullptr : &found->second;
}

bool AddedTokens::IsSpecial(std::string_view spelling) const {
  return special_contents_.contains(spelling);
}

void AddedTokens::Split(std::string_view text, const Trie& trie,
                        std::vector<Segment>* segments) const {
  segments->clear();
  size_t taken = 0;
  size_t from = 0;
  while (const std::optional<Trie::Found> found = trie.Search(text, from)) {
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
