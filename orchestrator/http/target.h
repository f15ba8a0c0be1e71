#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "orchestrator/http/message.h"

namespace evald::http {

/// Percent-decoding (RFC 3986, 2.1). Nothing when a "%" is not followed by two hexadecimal digits,
/// or when the result is not UTF-8 or holds a NUL. `plus_is_space` as in a query of a form.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);

/// Percent-encodes all but unreserved characters.
std::string PercentEncode(std::string_view text);

/// Sets `path` and `query` of `request` from its target: origin-form, or absolute-form, whose
/// authority takes the place of the Host field (RFC 9112, 3.2.2). False for anything else, for
/// segments "." and "..", and for what does not decode.
bool ParseTarget(Request* request);

}  // namespace evald::http
