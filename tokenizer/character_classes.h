#pragma once

#include <cstdint>

namespace evald::tok {

/// What the well-known splitting patterns ask of a character, as bits.
enum CharacterClass : uint8_t {
  kLetter = 1,  ///< \p{L}
  kNumber = 2,  ///< \p{N}
  kSpace = 4,   ///< \s
};

/// A table of one byte for each code point: its classes as the patterns of a tokenizer.json take
/// them (see expression.h). Made at the first call; any thread may read.
const uint8_t* CharacterClasses();

}  // namespace evald::tok
