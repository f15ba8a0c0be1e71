#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::tok {

/// A stretch of normalized text on its way to the model.
struct Piece {
  std::string text;
  bool at_start = false;  ///< begins where the input begins
};

/// Splits (and spells) pieces of text before the model sees them. Immutable; any thread may call
/// it.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  /// Replaces each piece by the pieces it is split into. Empty pieces are left out.
  virtual void Apply(std::vector<Piece>* pieces) const = 0;
  /// Whether it treats the piece at the start of the input in a way of its own.
  virtual bool LooksAtStart() const { return false; }
};

/// The `pre_tokenizer` of a tokenizer.json; null for JSON null. Serves ByteLevel, Split, Digits,
/// Metaspace, Punctuation, Whitespace, WhitespaceSplit and Sequence; throws Error(kInput) that
/// names any other. `normalized` says whether the tokenizer has a normalizer.
std::unique_ptr<PreTokenizer> MakePreTokenizer(const Json& json, bool normalized,
                                               const std::string& where);

}  // namespace evald::tok
