#pragma once

#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "evald/error.h"
#include "http_server/message.h"

namespace evald::http {

/// A fault of a request in the form of RFC 9457 (Problem Details for HTTP APIs):
/// {"type","title","status","detail"} and evald's own "remedy" and "errors". `code` names the kind
/// of problem: the document's "type" is "urn:evald:problem:<code>", or "about:blank" for "".
struct Problem {
  int status = 500;
  std::string code;
  std::string detail;  ///< one sentence: what was found and what was expected
  std::string remedy;  ///< what the caller can do; may be empty
  std::string
      pointer;  ///< the place in the body (RFC 6901) or "query:limit", "header:Idempotency-Key"
  std::vector<std::pair<std::string, std::string>> headers;  ///< Allow, Retry-After, ...
};

/// Thrown by a handler. The server answers with the problem.
class ProblemError : public std::exception {
 public:
  explicit ProblemError(Problem problem) : problem_(std::move(problem)) {}
  const char* what() const noexcept override { return problem_.detail.c_str(); }
  const Problem& problem() const { return problem_; }

 private:
  Problem problem_;
};

/// application/problem+json, not to be cached.
Response ProblemResponse(const Problem& problem);

/// kUsage gives 409, kInput 422, kInfrastructure 503 with Retry-After, kInternal 500. The text of
/// an internal error stays in the log.
Problem ProblemFor(const Error& error);

}  // namespace evald::http
