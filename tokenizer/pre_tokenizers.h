#pragma once

#include <memory>
#include <string>

#include "evald/json.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/pieces.h"

namespace evald::tok {

/// Splits (and spells) pieces of text before the model sees them. Immutable; any thread may call
/// it.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Replaces each piece by the pieces it is split into. Empty pieces are left out.
  virtual void Apply(Pieces* pieces) const = 0;
  /// Whether it treats the piece at the start of the input in a way of its own.
  virtual bool LooksAtStart() const { return false; }
};

/// A `pre_tokenizer`, null for none, and what the words are that it gives the model.
struct PreTokenization {
  std::unique_ptr<PreTokenizer> splitter;
  Spelling spelling = Spelling::kText;
};

/// The `pre_tokenizer` of a tokenizer.json; null for JSON null. Serves ByteLevel, Split, Digits,
/// Metaspace, Punctuation, Whitespace, WhitespaceSplit and Sequence; throws Error(kInput) that
/// names any other. `normalized` says whether the tokenizer has a normalizer. A last ByteLevel
/// leaves the bytes as they are and says so: the model knows how its vocabulary spells them.
PreTokenization MakePreTokenizer(const Json& json, bool normalized, const std::string& where);

}  // namespace evald::tok
