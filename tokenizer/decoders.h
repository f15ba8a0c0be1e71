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
  /// Rewrites the spellings. Joined, they are the text. Input and output are valid UTF-8.
  virtual void Apply(std::vector<std::string>* tokens) const = 0;
};

/// The `decoder` of a tokenizer.json; null for JSON null. Supports ByteLevel, ByteFallback,
/// Fuse, Metaspace, Replace, Strip and Sequence. For any other type, throws Error(kInput), which
/// names the type.
std::unique_ptr<Decoder> MakeDecoder(const Json& json, const std::string& where);

}  // namespace evald::tok
