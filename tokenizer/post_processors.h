#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::tok {

/// The tokens of a text and the tokens put around it, in order: once for a text with special
/// tokens, once for a text without.
struct Arrangement {
  static constexpr int32_t kText =
      -1;  ///< represents the tokens of the text, once or several times

  std::vector<int32_t> with_special = {kText};
  std::vector<int32_t> without_special = {kText};
};

/// The effect of a tokenizer.json's `post_processor` on a single text. Supports TemplateProcessing,
/// ByteLevel (which changes only offsets) and Sequence. For any other type of post-processor,
/// throws Error(kInput), which names the type.
///
/// In a Sequence, a template gets the parts that the template before it put together. As in
/// tokenizers 0.23, two parts are a pair of texts to the next template. If there are more than two,
/// ReadPostProcessor throws: the library cannot handle that either.
Arrangement ReadPostProcessor(const Json& json, const std::string& where);

}  // namespace evald::tok
