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
  /// Throws Error(kInput) for an empty string and for one that is there already.
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

/// The added tokens of a tokenizer, with the rules of AddedVocabulary in tokenizers 0.23
/// (tokenizers/src/tokenizer/added_vocabulary.rs): which ids they take, where they are found, how
/// they are spelled when decoded. Immutable once Finish was called; any thread may then read.
class AddedTokens {
 public:
  /// Adds tokens in one go. The id of each is that of the model's token of this content, else the
  /// next one behind the model's tokens and behind those that were added before this call. A token
  /// that is there already takes the new flags.
  void Add(const std::vector<AddedToken>& tokens, const Vocabulary& model,
           const Normalizer* normalizer);
  /// Builds what the searches need. Throws Error(kInput) "<where>: ..." for tokens that are the
  /// same text once normalized: the library takes any of them.
  void Finish(const std::string& where);

  /// Splits text at the tokens that are looked for in raw (or in normalized) text.
  void SplitRaw(std::string_view text, std::vector<Segment>* segments) const {
    Split(text, raw_, segments);
  }
  void SplitNormalized(std::string_view text, std::vector<Segment>* segments) const {
    Split(text, normalized_, segments);
  }

  int32_t Id(std::string_view content) const;  ///< -1 for none
  const AddedToken* Token(int32_t id) const;   ///< null for none
  /// How a token is spelled when decoded: by its content, or by what the normalizer made of that.
  const std::string* DecodedSpelling(int32_t id) const;  ///< null for none
  /// Whether a special token has this content.
  bool IsSpecial(std::string_view content) const;
  int32_t highest_id() const { return highest_id_; }  ///< -1 when there are none

 private:
  void Split(std::string_view text, const Trie& trie, std::vector<Segment>* segments) const;

  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids_;
  std::unordered_map<int32_t, AddedToken> tokens_;
  std::unordered_set<std::string, StringHash, std::equal_to<>> special_contents_;
  std::unordered_map<int32_t, std::string> normalized_spellings_;  // where they are not the content
  Trie raw_;
  Trie normalized_;
  int32_t highest_id_ = -1;
};

}  // namespace evald::tok
