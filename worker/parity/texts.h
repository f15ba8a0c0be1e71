#pragma once

#include <string>
#include <vector>

namespace evald::parity {

/// Texts of different kinds, the shortest first: prose, sums, code, a chat, other languages and
/// scripts. A tokenizer that differs from the checkpoint's in any usual part encodes one of them
/// differently.
const std::vector<std::string>& Texts();

}  // namespace evald::parity
