#include "http_server/problem.h"

#include "base/jsonl.h"

namespace evald::http {

Response ProblemResponse(const Problem& problem) {
  Json document = Json::object();
  document["type"] = problem.code.empty() ? "about:blank" : "urn:evald:problem:" + problem.code;
  document["title"] = ReasonPhrase(problem.status);
  document["status"] = problem.status;
  document["detail"] = problem.detail;
  if (!problem.remedy.empty()) document["remedy"] = problem.remedy;
  if (!problem.pointer.empty()) {
    document["errors"] = Json::array({{{"pointer", problem.pointer}, {"detail", problem.detail}}});
  }
  Response response;
  response.status = problem.status;
  response.headers.Add("Content-Type", "application/problem+json");
  response.headers.Add("Cache-Control", "no-store");
  for (const auto& [name, value] : problem.headers) response.headers.Add(name, value);
  response.body = ToLine(document) + "\n";
  return response;
}

Problem ProblemFor(const Error& error) {
  switch (error.kind()) {
    case ErrorKind::kUsage:
      return {409, "conflict", error.message(), error.remedy()};
    case ErrorKind::kInput:
      return {422, "invalid", error.message(), error.remedy()};
    case ErrorKind::kInfrastructure:
      return {503, "unavailable", error.message(), error.remedy(), "", {{"Retry-After", "5"}}};
    case ErrorKind::kInternal:
      break;
  }
  return {500, "internal", "an internal error; the service's log says more"};
}

}  // namespace evald::http
