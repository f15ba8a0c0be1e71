#pragma once

#include <string>
#include <string_view>

#include "http_server/message.h"

namespace evald::http {

/// Adapts `response` to `request`: adds an ETag to a successful GET with a body, answers 304 if
/// If-None-Match names it (RFC 9110, 13), compresses with gzip if that is accepted and pays, and
/// adds nosniff.
void Encode(const Request& request, Response* response);

/// "text" as gzip. Throws Error(kInternal).
std::string Gzip(std::string_view text);

/// Whether a value of Accept-Encoding takes gzip: by name or "*", with a quality above 0.
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace evald::http
