#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"

namespace evald::tok {

/// The "type" of a component of a tokenizer.json. Throws Error(kInput) "<where>: ..." without one.
std::string TypeOf(const Json& component, const std::string& where);

/// Refuses a component that is not understood. `kind` is "normalizer", "decoder", ...
[[noreturn]] void RefuseType(const std::string& kind, const std::string& type,
                             const std::vector<std::string>& served, const std::string& where);

/// Refuses an object that has a member which is not in `known` ("type" always is): a setting that
/// is not understood may change the tokens.
void CheckMembers(const Json& object, std::initializer_list<std::string_view> known,
                  const std::string& where);

/// The one code point of the string member `key`.
std::string OneCharacter(const Json& object, const std::string& key, const std::string& where);

/// Refuses a rewriting that makes a text more than 64 times (and 1 MiB) longer: a chain of rules in
/// a hostile file could double it at each step. Throws Error(kInput).
void CheckGrowth(size_t bytes_before, size_t bytes_after);

}  // namespace evald::tok
