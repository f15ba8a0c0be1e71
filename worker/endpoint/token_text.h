#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace evald::endpoint {

/// The texts of the tokens of a sequence, one after another. The text of a token is what it adds to
/// the text of the tokens before it; a token that ends amid a character adds nothing, and the one
/// that completes the character adds all of it.
class TokenTexts {
 public:
  /// `tokenizer` must outlive this. `special`: special tokens have their spelling, else no text.
  TokenTexts(const Tokenizer& tokenizer, bool special) : tokenizer_(tokenizer), special_(special) {}

  /// The text that `token` would add here, or nothing if it ends amid a character.
  std::optional<std::string> TextOf(int32_t token) const;

  /// Goes on behind `token`. Returns the text that it adds.
  std::string Append(int32_t token);

 private:
  const Tokenizer& tokenizer_;
  bool special_;
  std::vector<int32_t> window_;  ///< the last tokens
  std::string head_;             ///< their text, without the beginning of a character at its end
};

/// The text of an answer while it is generated, in pieces that stay: no piece holds a part of a
/// stop string or of a character.
class TextStream {
 public:
  /// `tokenizer` must outlive this.
  TextStream(const Tokenizer& tokenizer, std::vector<std::string> until);

  /// Takes a generated token. Returns the text that is certain by now and was not returned before.
  std::string Add(int32_t token);

  /// The rest, once the whole text is known. Throws Error(kInternal) if the text does not begin
  /// with the pieces.
  std::string Finish(const std::string& whole);

 private:
  TokenTexts texts_;
  std::vector<std::string> stops_;
  std::string held_;  ///< not certain yet
  std::string sent_;
  bool stopped_ = false;
};

}  // namespace evald::endpoint
