#pragma once

#include <map>
#include <string>
#include <vector>

namespace evald {

/// Texts with placeholders, `{checkpoint}`: a name of lower-case letters and `_` in braces.
/// `{{checkpoint}}` stands for the text `{checkpoint}`; any other brace stands for itself, so that
/// JSON may be written as it is.

/// The first placeholder in `text` that is not in `known`; "" if there is none.
std::string UnknownPlaceholder(const std::string& text, const std::vector<std::string>& known);

/// `text` with the placeholders in `values` replaced.
std::string ReplacePlaceholders(const std::string& text,
                                const std::map<std::string, std::string>& values);

}  // namespace evald
