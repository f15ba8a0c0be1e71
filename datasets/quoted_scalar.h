#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace evald {

/// The quoted YAML scalar that begins at byte `at` of `text`, behind its anchor and tag if it has
/// any; nothing when there is a plain or block scalar. As libyaml reads it, which PyYAML uses:
/// yaml-cpp 0.7 loses a line break before the closing quote and makes raw bytes of "\xE9".
std::optional<std::string> ReadQuotedScalar(std::string_view text, size_t at);

/// The literal or folded YAML scalar that begins at byte `at` of `text`, behind its anchor and tag
/// if it has any; nothing when there is another scalar. `indent` is the column of the mapping or
/// list that it lies in. As libyaml reads it, which PyYAML uses: yaml-cpp 0.7 loses line breaks at
/// the end of folded text.
std::optional<std::string> ReadBlockScalar(std::string_view text, size_t at, int indent);

}  // namespace evald
