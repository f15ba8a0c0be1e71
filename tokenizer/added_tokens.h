#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "evald/json.h"
#include "tokenizer/normalizers.h"
#include "tokenizer/vocabulary.h"

namespace evald::tok {

/// A token that is found in the text before the model sees it.
struct AddedToken {
  std::string content;
  bool single_word = false;  ///< only where it does not touch a word character
  bool lstrip = false;       ///< takes the white space on its left with it
  bool rstrip = false;       ///< and on its right
  bool normalized = true;    ///< looked for in the normalized text
  bool special = false;      ///< left out when decoding without special tokens

  bool operator==(const AddedToken&) const = default;
};

/// {"content": ..., "lstrip": ..., ...}, with or without "id" and "__type". What is absent is
/// false, but `normalized`, which then is the opposite of `special`.
AddedToken AddedTokenFromJson(const Json& json, const std::string& where);

/// Finds the longest of a set of strings, leftmost first.
class Trie {
 public:
  /// The first of two equal strings counts. Throws Error(kInput) for an empty one.
  void Add(std::string_view text, int32_t value, const std::string& where);

  struct Found {
    size_t begin;
    size_t end;
    int32_t value;
  };
  std::optional<Found> Search(std::string_view text, size_t from) const;

 private:
  struct Node {
    std::map<unsigned char, uint32_t> next;
    int32_t value = -1;
  };
  std::vector<Node> nodes_ = {Node()};
  std::array<bool, 256> first_bytes_{};
};

/// A stretch of text: a token that was found (id >= 0), or text that is still to be encoded.
struct Segment {
  std::string_view text;
  int32_t id = -1;
};

/// The added tokens of a tokenizer, with the rules of the tokenizers library's AddedVocabulary:
/// which ids they take, and where they are found. Immutable once Finish was called; any thread may
/// then read.
class AddedTokens {
 public:
  /// Adds a token. Its id is that of the model's token of this spelling, else the next free one
  /// behind the model's and the earlier added tokens.
  void Add(const AddedToken& token, const Vocabulary& model);
  /// Builds what the searches need.
  void Finish(const Normalizer* normalizer, const std::string& where);

  /// Splits text at the tokens that are looked for in raw (or in normalized) text.
  void SplitRaw(std::string_view text, std::vector<Segment>* segments) const {
    Split(text, raw_, segments);
  }
  void SplitNormalized(std::string_view text, std::vector<Segment>* segments) const {
    Split(text, normalized_, segments);
  }

  int32_t Id(std::string_view content) const;         ///< -1 for none
  const AddedToken* Token(int32_t id) const;          ///< null for none
  bool IsSpecial(std::string_view spelling) const;    ///< of any token
  int32_t highest_id() const { return highest_id_; }  ///< -1 when there are none

 private:
  void Split(std::string_view text, const Trie& trie, std::vector<Segment>* segments) const;

  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids_;
  std::unordered_map<int32_t, AddedToken> tokens_;
  std::unordered_set<std::string, StringHash, std::equal_to<>> special_contents_;
  std::vector<AddedToken> special_;  // in the order they came
  std::vector<AddedToken> plain_;
  Trie raw_;
  Trie normalized_;
  int32_t highest_id_ = -1;
};

}  // namespace evald::tok
