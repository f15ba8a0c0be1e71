#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http_server/message.h"

namespace evald::http {

/// The value of a hexadecimal digit, or -1.
int HexDigit(char c);

/// Percent-decoding (RFC 3986, 2.1). Nothing if a "%" is not followed by two hexadecimal digits, or
/// if the result is not UTF-8 or holds a NUL. `plus_is_space`: as in a form's query.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);

/// Percent-encodes all except unreserved characters.
std::string PercentEncode(std::string_view text);

/// Sets `path` and `query` of `request` from its target: origin-form, or absolute-form, whose
/// authority replaces the Host field (RFC 9112, 3.2.2). False for any other form, for segments "."
/// and "..", and for a target that cannot be decoded.
bool ParseTarget(Request* request);

}  // namespace evald::http
