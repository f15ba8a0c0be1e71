#include "worker/endpoint/api_error.h"

#include "base/jsonl.h"

namespace evald::endpoint {
namespace {

const char* TypeOf(int status) {
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::string WithRemedy(const std::string& message, const std::string& remedy) {
  return remedy.empty() ? message : message + " (" + remedy + ")";
}

}  // namespace

Json ApiError::ToJson() const {
  return {{"error",
           {{"message", message_},
            {"type", TypeOf(status_)},
            {"param", OrNull(param_)},
            {"code", OrNull(code_)}}}};
}

ApiError ApiErrorFor(const Error& error) {
  const std::string text = WithRemedy(error.message(), error.remedy());
  switch (error.kind()) {
    case ErrorKind::kUsage:
    case ErrorKind::kInput:
      return ApiError(400, text);
    case ErrorKind::kInfrastructure:
      return ApiError(503, text, "", "engine");
    case ErrorKind::kInternal:
      break;
  }
  return ApiError(500, "an internal error; the endpoint's log says more", "", "internal");
}

http::Response ErrorResponse(const ApiError& error) {
  http::Response response = http::JsonResponse(error.status(), ToLine(error.ToJson()));
  response.headers.Add("Cache-Control", "no-store");
  if (error.status() == 429 || error.status() == 503) response.headers.Add("Retry-After", "1");
  return response;
}

http::Response ErrorResponseFor(const http::Problem& problem) {
  const bool key = problem.status == 401;
  const std::string message = key ? "the key is missing or wrong; send Authorization: Bearer <key>"
                                  : WithRemedy(problem.detail, problem.remedy);
  const ApiError error(problem.status, message, "", key ? "invalid_api_key" : problem.code);
  http::Response response = http::JsonResponse(error.status(), ToLine(error.ToJson()));
  response.headers.Add("Cache-Control", "no-store");
  for (const auto& [name, value] : problem.headers) response.headers.Add(name, value);
  return response;
}

}  // namespace evald::endpoint
