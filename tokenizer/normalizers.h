#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "evald/json.h"

namespace evald::tok {

/// Rewrites a text before it is split. Immutable; any thread may call it.
class Normalizer {
 public:
  virtual ~Normalizer() = default;
  /// Input and output are valid UTF-8.
  virtual std::string Apply(std::string text) const = 0;
};

/// The `normalizer` of a tokenizer.json; null for JSON null. Supports NFC, NFD, NFKC, NFKD,
/// Lowercase, Strip, StripAccents, Prepend, Replace, ByteLevel and Sequence. For any other type,
/// throws Error(kInput), which names the type.
std::unique_ptr<Normalizer> MakeNormalizer(const Json& json, const std::string& where);

}  // namespace evald::tok
