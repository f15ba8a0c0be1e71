#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "evald/json.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cache.h"

namespace evald::tok {

/// The byte-pair model of the tokenizers library: a word falls into characters (or, with
/// byte_fallback, bytes), and the pair of neighbours with the lowest rank is merged until no pair
/// has one. Ties go to the leftmost. Immutable but for its cache; any thread may call it.
class BpeModel {
 public:
  /// `json` is the `model` of a tokenizer.json without its vocab, which comes apart. Throws
  /// Error(kInput) "<where>: ..." for what is not understood (dropout, a model of another type) and
  /// for a merge that names no token.
  BpeModel(const Json& json, Vocabulary vocabulary, const std::string& where);

  /// Appends the tokens of one word. O(n log n). Throws Error(kInput) when the unknown token is
  /// needed but is not in the vocabulary.
  void Encode(std::string_view word, std::vector<int32_t>* tokens) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  struct Merged {
    int32_t rank;
    int32_t id;
  };
  struct Symbols;

  void ReadMerges(const Json& merges, const std::string& where);
  void AddMerge(const std::string& left, const std::string& right, int32_t rank,
                const std::string& where);
  const Merged* Find(int32_t left, int32_t right) const;
  void AddCharacters(std::string_view word, Symbols* symbols) const;
  bool AddBytes(std::string_view character, Symbols* symbols) const;
  void EncodeUncached(std::string_view word, std::vector<int32_t>* tokens) const;

  Vocabulary vocabulary_;
  std::unordered_map<uint64_t, Merged> merges_;  // under left << 32 | right
  std::vector<int32_t> byte_ids_;                // of <0x00> to <0xFF>, -1 for none
  std::string unknown_;
  std::string prefix_;  // of every character but a word's first
  std::string suffix_;  // of a word's last character
  bool has_unknown_ = false;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  mutable WordCache cache_;
};

}  // namespace evald::tok
