#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "http_server/message.h"

namespace evald::http {

/// The first and last byte of "Range: bytes=10-19" (RFC 9110, 14.1.2): one range with both ends,
/// within a file of `bytes` bytes. Nothing if the request has no such field. Throws ProblemError
/// 416 for any other range.
std::optional<std::pair<uint64_t, uint64_t>> RangeOf(const Request& request, uint64_t bytes);

/// Answers with an open file, or with the range of it that the request asks for (206). Throws
/// ProblemError: 404 if `file` is not an open regular file, 416 as RangeOf.
Response FileAnswer(const Request& request, UniqueFd file);

}  // namespace evald::http
