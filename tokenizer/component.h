#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"

namespace evald::tok {

/// The "type" of a component of a tokenizer.json. Throws Error(kInput) "<where>: ..." if there is
/// none.
std::string TypeOf(const Json& component, const std::string& where);

/// Refuses a component that evald does not know. `kind` is "normalizer", "decoder", ...
[[noreturn]] void RefuseType(const std::string& kind, const std::string& type,
                             const std::vector<std::string>& served, const std::string& where);

/// Refuses an object with a member that is not in `known` ("type" always is): an unknown setting
/// may change the tokens.
void CheckMembers(const Json& object, std::initializer_list<std::string_view> known,
                  const std::string& where);

/// The one code point of the string member `key`.
std::string OneCharacter(const Json& object, const std::string& key, const std::string& where);

/// Refuses a rewriting that makes a text more than 64 times (and 1 MiB) longer. A chain of rules in
/// a hostile file could double the text at each step. Throws Error(kInput).
void CheckGrowth(size_t bytes_before, size_t bytes_after);

}  // namespace evald::tok
