#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/merge_table.h"
#include "tokenizer/symbols.h"
#include "tokenizer/vocabulary.h"
#include "tokenizer/word_cache.h"

namespace evald::tok {

/// The byte-pair model of the tokenizers library. A word is split into characters (or, with
/// byte_fallback, bytes). Then the pair of neighbours with the lowest rank is merged, until no pair
/// has a rank. Ties go to the leftmost pair. Immutable; any thread may call it.
class BpeModel {
 public:
  /// The memory that one thread needs to encode words of one model. It is kept from word to word.
  struct Scratch {
    WordCache cache;
    Symbols symbols;
  };

  /// `json` is the `model` of a tokenizer.json without its vocab, which is a parameter of its own.
  /// Throws Error(kInput) "<where>: ..." for a setting that evald does not know (dropout, a model
  /// of another type) and for a merge that names no token.
  BpeModel(const Json& json, Vocabulary vocabulary, Spelling spelling, const std::string& where);

  /// Appends the tokens of one word. O(n log n). Throws Error(kInput) if the unknown token is
  /// needed and the vocabulary lacks it.
  void Encode(std::string_view word, Scratch* scratch, std::vector<int32_t>* tokens) const;

  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  void ReadMerges(const Json& merges, const std::string& where);
  void AddMerge(const std::string& left, const std::string& right, int32_t rank,
                const std::string& where);
  void FindCharacters();
  int32_t CharacterId(std::string_view word, size_t begin, size_t* end, std::string* spelled) const;
  int32_t UnknownId() const;
  bool AddBytes(std::string_view character, Symbols* symbols) const;
  void AddCharacters(std::string_view word, Symbols* symbols) const;
  bool AddByteCharacters(std::string_view bytes, Symbols* symbols) const;
  void EncodePart(std::string_view part, Scratch* scratch, std::vector<int32_t>* tokens) const;
  void EncodeUncached(std::string_view part, Symbols* symbols, std::vector<int32_t>* tokens) const;

  Vocabulary vocabulary_;
  Spelling spelling_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_ids_{};     // of <0x00> to <0xFF>, -1 for none
  std::array<int32_t, 256> spelled_ids_{};  // of the alphabet's characters, -1 for none
  std::vector<int32_t> character_ids_;      // of low code points, -1 for none; empty with affixes
  std::string unknown_;
  std::string prefix_;  // put before each character except a word's first
  std::string suffix_;  // put after a word's last character
  bool has_unknown_ = false;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  bool has_affixes_ = false;     // prefix_ or suffix_
  bool falls_at_marks_ = false;  // no merge joins U+2581 to another character before it
};

}  // namespace evald::tok
