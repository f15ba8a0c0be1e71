#pragma once

#include <string>
#include <string_view>

#include "evald/json.h"
#include "tokenizer/vocabulary.h"

namespace evald::tok {

/// A tokenizer.json without the model's vocab. The vocab has up to hundreds of thousands of
/// members, and Json finds a member by looking through all.
struct TokenizerJson {
  Json json;
  Vocabulary vocabulary;
};

/// Throws Error(kInput) "<where>: ..." if the text is not JSON, is larger than 256 MiB, nests
/// deeper than 64 levels, or has an object other than the vocab with more than 10,000 members.
TokenizerJson ParseTokenizerJson(std::string_view text, const std::string& where);

}  // namespace evald::tok
