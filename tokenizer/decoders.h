#pragma once

#include <memory>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::tok {

/// Turns the spellings of tokens back into text. Immutable; any thread may call it.
class Decoder {
 public:
  virtual ~Decoder() = default;
  /// Rewrites the spellings; joined they are the text. Valid UTF-8 in, valid UTF-8 out.
  virtual void Apply(std::vector<std::string>* tokens) const = 0;
};

/// The `decoder` of a tokenizer.json; null for JSON null. Serves ByteLevel, ByteFallback, Fuse,
/// Metaspace, Replace, Strip and Sequence; throws Error(kInput) that names any other.
std::unique_ptr<Decoder> MakeDecoder(const Json& json, const std::string& where);

}  // namespace evald::tok
