#pragma once

#include <cstdint>

namespace evald::tok {

/// The classes of a character that well-known splitting patterns distinguish, as bits.
enum CharacterClass : uint8_t {
  kLetter = 1,  ///< \p{L}
  kNumber = 2,  ///< \p{N}
  kSpace = 4,   ///< \s
};

/// A table of one byte for each code point: its classes in the patterns of a tokenizer.json (see
/// expression.h). The first call makes the table. Any thread may read.
const uint8_t* CharacterClasses();

}  // namespace evald::tok
