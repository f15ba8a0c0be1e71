#pragma once

#include <string>
#include <string_view>

#include "http_client/request.h"

namespace evald::http_client {

/// A server's explanation of a refusal.
struct Problem {
  std::string detail;
  std::string remedy;
};

/// Reads a problem document (RFC 9457, with evald's member "remedy"). If `body` is none, the detail
/// is "status <status>".
Problem ReadProblem(int status, std::string_view body);

/// The same for an answer. A redirect's detail names where it points, since none is followed.
Problem ProblemOf(const Response& response);

}  // namespace evald::http_client
