#include "http_client/failure.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include "http_client/url.h"

namespace evald::http_client {
namespace {

Outcome OutcomeOf(CURLcode code) {
  switch (code) {
    case CURLE_OK:
      return Outcome::kAnswered;
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_INTERFACE_FAILED:
      return Outcome::kUnreachable;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_PINNEDPUBKEYNOTMATCH:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return Outcome::kUntrusted;
    case CURLE_OPERATION_TIMEDOUT:
      return Outcome::kTimedOut;
    default:
      return Outcome::kBroken;
  }
}

std::string RemedyOf(CURLcode code, Outcome outcome) {
  if (code == CURLE_COULDNT_RESOLVE_PROXY) {
    return "check http_proxy, https_proxy and no_proxy in the environment";
  }
  if (code == CURLE_COULDNT_RESOLVE_HOST) return "check the host's name";
  if (code == CURLE_SSL_CACERT_BADFILE) return "check the file of trusted certificates (PEM)";
  if (outcome == Outcome::kUnreachable) {
    return "check that the server runs there, and that no firewall or proxy is between";
  }
  if (outcome == Outcome::kUntrusted) {
    return "check the server's certificate and its name, or trust its issuer";
  }
  if (outcome == Outcome::kTimedOut) return "check that the server is at work, or allow more time";
  return "";
}

}  // namespace

void SetFailure(int curl_code, const char* words, Response* response) {
  const auto code = static_cast<CURLcode>(curl_code);
  response->outcome = OutcomeOf(code);
  if (response->answered()) return;
  response->error = *words != '\0' ? words : ::curl_easy_strerror(code);
  response->remedy = RemedyOf(code, response->outcome);
}

Error FailureOf(const Request& request, const Response& response) {
  const std::string tries =
      response.attempts > 1 ? fmt::format(" (attempt {})", response.attempts) : "";
  return Error(
      ErrorKind::kInfrastructure,
      fmt::format("{} {}: {}{}", request.method, Shown(request.url), response.error, tries),
      response.remedy);
}

}  // namespace evald::http_client
