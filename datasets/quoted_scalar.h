#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace evald {

/// The quoted YAML scalar that begins at byte `at` of `text`, after its anchor and tag if it has
/// any. Nothing for a plain or block scalar. Reads like libyaml, which PyYAML uses: yaml-cpp 0.7
/// loses a line break before the closing quote and makes raw bytes of "\xE9".
std::optional<std::string> ReadQuotedScalar(std::string_view text, size_t at);

/// The literal or folded YAML scalar that begins at byte `at` of `text`, after its anchor and tag
/// if it has any. Nothing for any other scalar. `indent` is the column of the mapping or list
/// around it. Reads like libyaml, which PyYAML uses: yaml-cpp 0.7 loses line breaks at the end of
/// folded text.
std::optional<std::string> ReadBlockScalar(std::string_view text, size_t at, int indent);

}  // namespace evald
