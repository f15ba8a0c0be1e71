#pragma once

#include <memory>
#include <string>

#include "evald/json.h"
#include "tokenizer/byte_level.h"
#include "tokenizer/pieces.h"

namespace evald::tok {

/// Splits (and spells) pieces of text before the model gets them. Immutable; any thread may call
/// it.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Replaces each piece by its parts. Empty parts are left out.
  virtual void Apply(Pieces* pieces) const = 0;
  /// Whether the piece at the beginning of the input is treated differently.
  virtual bool LooksAtStart() const { return false; }
};

/// A `pre_tokenizer` (null for none), and the form of the words that it gives to the model.
struct PreTokenization {
  std::unique_ptr<PreTokenizer> splitter;
  Spelling spelling = Spelling::kText;
};

/// The `pre_tokenizer` of a tokenizer.json; null for JSON null. Supports ByteLevel, Split, Digits,
/// Metaspace, Punctuation, Whitespace, WhitespaceSplit and Sequence. For any other type, throws
/// Error(kInput), which names the type. `normalized`: the tokenizer has a normalizer. If ByteLevel
/// comes last, words go to the model as bytes (PreTokenization::spelling): the model itself knows
/// how its vocabulary spells them.
PreTokenization MakePreTokenizer(const Json& json, bool normalized, const std::string& where);

}  // namespace evald::tok
