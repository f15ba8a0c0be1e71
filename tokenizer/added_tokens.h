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

/// A token that is found in the text before the model gets the text.
struct AddedToken {
  std::string content;
  bool single_word = false;  ///< found only if no word character touches it
  bool lstrip = false;       ///< takes the white space on its left too
  bool rstrip = false;       ///< takes the white space on its right too
  bool normalized = true;    ///< searched for in the normalized text
  bool special = false;      ///< left out when decoding without special tokens

  bool operator==(const AddedToken&) const = default;
};

/// {"content": ..., "lstrip": ..., ...}, with or without "id" and "__type". An absent flag is
/// false. An absent `normalized` is the opposite of `special`.
AddedToken AddedTokenFromJson(const Json& json, const std::string& where);

/// Finds the longest of a set of strings, leftmost first. It takes the memory of the strings and
/// little more.
class StringSet {
 public:
  /// Throws Error(kInput) for an empty string and for one that was added before.
  void Add(std::string_view text, int32_t value, const std::string& where);
  /// Ends the additions.
  void Finish();

  struct Found {
    size_t begin;
    size_t end;
    int32_t value;
  };
  /// After Finish.
  std::optional<Found> Search(std::string_view text, size_t from) const;

 private:
  /// Strings with the same beginning, [begin, end) of the sorted strings.
  struct Range {
    uint32_t begin = 0;
    uint32_t end = 0;
  };
  /// Those of `range`, which agree in `depth` bytes, that go on with `next`.
  Range Narrowed(Range range, size_t depth, unsigned char next) const;
  std::optional<Found> LongestAt(std::string_view text, size_t begin) const;

  std::unordered_map<std::string, int32_t> added_;  ///< until Finish
  std::vector<std::pair<std::string, int32_t>> sorted_;
  std::array<Range, 256> first_bytes_{};
};

/// A stretch of text: a token that was found (id >= 0), or text that is not encoded yet.
struct Segment {
  std::string_view text;
  int32_t id = -1;
};

/// The added tokens of a tokenizer: their ids, the places where they are found, and their spelling
/// when decoded. The rules are those of AddedVocabulary in tokenizers 0.23
/// (tokenizers/src/tokenizer/added_vocabulary.rs). Immutable after Finish; any thread may then
/// read.
class AddedTokens {
 public:
  /// Adds a batch of tokens. A token gets the id of the model's token with the same content. If the
  /// model has none, the token gets the next id after the model's tokens and after those of earlier
  /// calls. A token that was added before takes the new flags.
  void Add(const std::vector<AddedToken>& tokens, const Vocabulary& model,
           const Normalizer* normalizer);
  /// Prepares the searches. Throws Error(kInput) "<where>: ..." if two tokens are the same text
  /// after normalization: the library may take either of them.
  void Finish(const std::string& where);

  /// Splits text at the tokens that are searched for in raw (or in normalized) text.
  void SplitRaw(std::string_view text, std::vector<Segment>* segments) const {
    Split(text, raw_, segments);
  }
  void SplitNormalized(std::string_view text, std::vector<Segment>* segments) const {
    Split(text, normalized_, segments);
  }

  int32_t Id(std::string_view content) const;  ///< -1 for none
  const AddedToken* Token(int32_t id) const;   ///< null for none
  /// The spelling of a token when decoded: its content, or the content after the normalizer.
  const std::string* DecodedSpelling(int32_t id) const;  ///< null for none
  /// Whether a special token has this content.
  bool IsSpecial(std::string_view content) const;
  int32_t highest_id() const { return highest_id_; }  ///< -1 if there are no tokens

 private:
  void Split(std::string_view text, const StringSet& strings, std::vector<Segment>* segments) const;

  std::unordered_map<std::string, int32_t, StringHash, std::equal_to<>> ids_;
  std::unordered_map<int32_t, AddedToken> tokens_;
  std::unordered_set<std::string, StringHash, std::equal_to<>> special_contents_;
  // those that differ from the content
  std::unordered_map<int32_t, std::string> normalized_spellings_;
  StringSet raw_;
  StringSet normalized_;
  int32_t highest_id_ = -1;
};

}  // namespace evald::tok
