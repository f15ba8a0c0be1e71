#pragma once

#include <exception>
#include <string>
#include <utility>

#include "evald/error.h"
#include "evald/json.h"
#include "http_server/message.h"
#include "http_server/problem.h"

namespace evald::endpoint {

/// A fault of a call, answered in the form of OpenAI's API: {"error": {"message", "type", "param",
/// "code"}} (platform.openai.com/docs/api-reference, "Errors").
class ApiError : public std::exception {
 public:
  /// `param` is the key of the body that is at fault, and may be empty; so may `code`.
  ApiError(int status, std::string message, std::string param = "", std::string code = "")
      : status_(status),
        message_(std::move(message)),
        param_(std::move(param)),
        code_(std::move(code)) {}

  const char* what() const noexcept override { return message_.c_str(); }
  int status() const { return status_; }
  const std::string& param() const { return param_; }
  const std::string& code() const { return code_; }

  /// {"error": ...}
  Json ToJson() const;

 private:
  int status_;
  std::string message_;
  std::string param_;
  std::string code_;
};

/// An engine's error as the answer to a call: kInput and kUsage are the call's fault (400), others
/// the server's (503; 500 for kInternal).
ApiError ApiErrorFor(const Error& error);

http::Response ErrorResponse(const ApiError& error);

/// The answer to a call that the HTTP server refuses, in the same form.
http::Response ErrorResponseFor(const http::Problem& problem);

}  // namespace evald::endpoint
