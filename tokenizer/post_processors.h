#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::tok {

/// The tokens put around an encoded text when special tokens are asked for.
struct Surround {
  std::vector<int32_t> before;
  std::vector<int32_t> after;
};

/// What the `post_processor` of a tokenizer.json does to a single text. Serves TemplateProcessing,
/// ByteLevel (which touches offsets only) and Sequence; throws Error(kInput) that names any other.
Surround ReadPostProcessor(const Json& json, const std::string& where);

}  // namespace evald::tok
