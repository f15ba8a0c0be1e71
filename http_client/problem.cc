#include "http_client/problem.h"

#include <fmt/format.h>

#include "base/jsonl.h"
#include "evald/error.h"
#include "http_client/url.h"

namespace evald::http_client {
namespace {

constexpr size_t kValuesMax = 10'000;

}  // namespace

Problem ReadProblem(int status, std::string_view body) {
  Problem problem{fmt::format("status {}", status), ""};
  try {
    const Json document = ParseJson(body, "the answer", kValuesMax);
    problem.detail = FieldOr<std::string>(document, "detail", problem.detail, "the answer");
    problem.remedy = FieldOr<std::string>(document, "remedy", "", "the answer");
  } catch (const Error&) {  // another server's page, or a cut one
  }
  return problem;
}

Problem ProblemOf(const Response& response) {
  if (response.location.empty()) return ReadProblem(response.status, response.body);
  return {fmt::format("status {}: a redirect to {}, which is not followed", response.status,
                      Shown(response.location)),
          "give that URL, if it is the right one"};
}

}  // namespace evald::http_client
