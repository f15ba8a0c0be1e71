#pragma once

#include <string>
#include <string_view>

#include "orchestrator/http/message.h"

namespace evald::http {

/// Makes `response` fit what `request` asked for: an ETag for a successful GET with a body, 304
/// when If-None-Match names it (RFC 9110, 13), gzip when it is accepted and pays, and nosniff.
void Encode(const Request& request, Response* response);

/// "text" as gzip. Throws Error(kInternal).
std::string Gzip(std::string_view text);

/// Whether a value of Accept-Encoding takes gzip: named, or "*", with a quality above 0.
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace evald::http
