#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evald/json.h"

namespace evald::tok {

/// The tokens of a text and those put around it, in their order.
struct Arrangement {
  static constexpr int32_t kText =
      -1;  ///< stands for the tokens of the text, once or several times

  std::vector<int32_t> with_special = {kText};
  std::vector<int32_t> without_special = {kText};
};

/// What the `post_processor` of a tokenizer.json does to a single text. Serves TemplateProcessing,
/// ByteLevel (which touches offsets only) and Sequence; throws Error(kInput) that names any other.
/// The parts that one template puts together are a pair of texts to the next template of a
/// Sequence, as in tokenizers 0.23; more than two parts are refused, which the library cannot do.
Arrangement ReadPostProcessor(const Json& json, const std::string& where);

}  // namespace evald::tok
