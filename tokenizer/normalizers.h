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
  /// Valid UTF-8 in, valid UTF-8 out.
  virtual std::string Apply(std::string text) const = 0;
};

/// The `normalizer` of a tokenizer.json; null for JSON null. Serves NFC, NFD, NFKC, NFKD,
/// Lowercase, Strip, StripAccents, Prepend, Replace, ByteLevel and Sequence; throws Error(kInput)
/// that names any other.
std::unique_ptr<Normalizer> MakeNormalizer(const Json& json, const std::string& where);

}  // namespace evald::tok
