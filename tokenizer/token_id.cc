#include <fmt/format.h>

#include "tokenizer/tokenizer.h"

namespace evald {

std::string WrongWithTokenId(const Tokenizer& tokenizer, int32_t id) {
  if (id >= 0 && !tokenizer.Spelling(id).empty()) return "";
  return fmt::format("the tokenizer has no token {}; its ids go from 0 to {}", id,
                     tokenizer.vocabulary_size() - 1);
}

}  // namespace evald
