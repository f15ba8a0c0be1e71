#include "fetch/caller.h"

#include <fmt/format.h>

#include <cstdlib>
#include <random>

#include "base/text.h"
#include "http_client/failure.h"
#include "http_client/url.h"

namespace evald::fetch {
namespace {

using http_client::Outcome;
using http_client::Request;
using http_client::Response;

constexpr int kRedirectsMax = 5;
constexpr std::chrono::seconds kSilence{60};
constexpr double kToldSeconds = 1;  // shorter pauses are not told of

bool IsRedirect(const Response& response) {
  const int status = response.status;
  return response.answered() && !response.location.empty() &&
         (status == 301 || status == 302 || status == 303 || status == 307 || status == 308);
}

std::string TokenFor(const Access& access, const std::string& url) {
  if (access.token.empty() || !http_client::IsSameOrigin(url, access.endpoint)) return "";
  const http_client::Url parts = http_client::ParseUrl(url);
  return parts.tls || http_client::IsLoopback(parts) ? access.token : "";
}

Response Refused(Response response, const std::string& error) {
  response.outcome = Outcome::kUntrusted;
  response.error = error;
  response.remedy = "check the endpoint";
  return response;
}

}  // namespace

Answered Caller::Once(Request request) {
  request.ca_file = access_.ca_file;
  request.keep_fields = true;
  request.limits.silence = kSilence;
  for (int redirects = 0;; ++redirects) {
    request.bearer_token = TokenFor(access_, request.url);
    Response response = client_.Perform(request);
    if (!IsRedirect(response)) return {std::move(response), request.url};
    const std::string to = response.location;
    if (redirects == kRedirectsMax) {
      return {Refused(std::move(response),
                      fmt::format("more than {} redirects follow each other", kRedirectsMax)),
              request.url};
    }
    if (!to.starts_with("http") ||
        (http_client::ParseUrl(request.url).tls && !http_client::ParseUrl(to).tls)) {
      return {Refused(std::move(response), fmt::format("a redirect from https to {}, which is not "
                                                       "followed",
                                                       http_client::Shown(to))),
              request.url};
    }
    request.url = to;
  }
}

Answered Caller::Get(const Request& request) {
  Patience patience(access_);
  while (true) {
    Answered answer = Once(request);
    if (answer.response.ok() || !patience.Another(request.url, answer.response)) {
      answer.response.attempts = patience.attempts();
      return answer;
    }
  }
}

bool Patience::Another(const std::string& url, const Response& response) {
  ++attempts_;
  const bool worth =
      http_client::IsWorthAnother(response) || response.outcome == Outcome::kTimedOut;
  const double asked_s = WaitAskedFor(response);
  const double longest_s = std::chrono::duration<double>(access_.retry.longest_retry_after).count();
  if (!worth || attempts_ >= access_.retry.attempts_max || asked_s > longest_s) return false;
  static thread_local std::mt19937_64 random{std::random_device{}()};
  const double draw = std::uniform_real_distribution<double>(0, 1)(random);
  const auto pause = http_client::RetryPause(access_.retry, attempts_, asked_s, draw);
  const double pause_s = std::chrono::duration<double>(pause).count();
  if (access_.notice && pause_s >= kToldSeconds) {
    access_.notice(fmt::format(
        "{}: {}; waiting {}", http_client::Shown(url),
        response.answered() ? fmt::format("status {}", response.status) : response.error,
        HumanSeconds(pause_s)));
  }
  return http_client::Pause(pause, nullptr);
}

double WaitAskedFor(const Response& response) {
  if (response.retry_after_s > 0) return response.retry_after_s;
  const auto limit = response.fields.find("ratelimit");
  if (response.status != 429 || limit == response.fields.end()) return 0;
  for (const std::string& part : Split(limit->second, ';')) {
    const std::string_view word = Trim(part);
    // The limit is over when the second that it names has passed.
    if (word.starts_with("t=")) return std::max(0.0, std::atof(word.data() + 2)) + 1;
  }
  return 0;
}

Error RefusalOf(const std::string& url, const Response& response) {
  Request request;
  request.url = url;
  if (!response.answered()) return http_client::FailureOf(request, response);
  const std::string shown = http_client::Shown(url);
  if (response.status == 429) {
    const double asked_s = WaitAskedFor(response);
    return Error(
        ErrorKind::kInfrastructure,
        fmt::format("{}: status 429, too many calls{}", shown,
                    asked_s > 0 ? ": the server asks to wait " + HumanSeconds(asked_s) : ""),
        "try again later, with --parallel 1, or with a token (HF_TOKEN), which has higher "
        "limits");
  }
  const ErrorKind kind =
      http_client::IsTemporary(response.status) ? ErrorKind::kInfrastructure : ErrorKind::kInput;
  const std::string remedy = response.status == 401 || response.status == 403
                                 ? "give a token that may read it: HF_TOKEN"
                                 : "";
  return Error(kind, fmt::format("{}: status {}", shown, response.status), remedy);
}

}  // namespace evald::fetch
