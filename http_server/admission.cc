#include "http_server/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "http_server/problem.h"

namespace evald::http {
namespace {

constexpr const char* kChallenge = "Bearer realm=\"evald\"";

bool Changes(const std::string& method) {
  return method != "GET" && method != "HEAD" && method != "OPTIONS";
}

}  // namespace

std::string HostName(const std::string& host) {
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    return end == std::string::npos ? host : host.substr(1, end - 1);
  }
  return host.substr(0, host.find(':'));
}

Admission::Admission(Rules rules, Router router)
    : rules_(std::move(rules)),
      router_(std::move(router)),
      rate_(rules_.requests_per_second, rules_.requests_burst) {}

const Route& Admission::Admit(Request* request, int64_t now_us) {
  CheckHost(*request);
  const std::optional<Principal> holder = HolderOf(*request);
  CheckRate(*request, holder, now_us);
  const Route& route = router_.Find(request);
  CheckToken(request, holder, route);
  CheckOrigin(*request);
  return route;
}

// With tokens no check is needed: a web page with another name cannot know one. Without tokens, a
// name that was made to point at this machine must not reach it from a browser.
void Admission::CheckHost(const Request& request) const {
  const std::string* host = request.headers.Find("Host");
  if (!rules_.tokens.empty() || host == nullptr) return;
  const std::string name = HostName(*host);
  for (const char* own : {"localhost", "127.0.0.1", "::1"}) {
    if (EqualsIgnoringCase(name, own)) return;
  }
  for (const std::string& own : rules_.hosts) {
    if (EqualsIgnoringCase(name, own)) return;
  }
  throw ProblemError({421, "host",
                      fmt::format("the Host field names '{}', which is not this server", name),
                      "use localhost, or allow the name in the service's configuration"});
}

// The holder of the request's token, if the token is known.
std::optional<Principal> Admission::HolderOf(const Request& request) const {
  const std::string* field = request.headers.Find("Authorization");
  const auto token = field == nullptr ? std::nullopt : BearerToken(*field);
  return token ? rules_.tokens.Check(*token) : std::nullopt;
}

// A token has a rate of its own: many people may call from one address, and whoever has no token
// must not use up the rate of those who have one.
void Admission::CheckRate(const Request& request, const std::optional<Principal>& holder,
                          int64_t now_us) {
  const double wait_s = rate_.Take(holder ? "token " + holder->name : request.client, now_us);
  if (wait_s <= 0) return;
  throw ProblemError({429,
                      "rate",
                      fmt::format("more than {} requests a second", rules_.requests_per_second),
                      "",
                      "",
                      {{"Retry-After", std::to_string(static_cast<int>(std::ceil(wait_s)))}}});
}

void Admission::CheckToken(Request* request, const std::optional<Principal>& holder,
                           const Route& route) const {
  if (rules_.tokens.empty()) {
    request->principal = {"", Role::kAdmin};
    return;
  }
  const std::string* field = request->headers.Find("Authorization");
  if (field == nullptr && route.role == Role::kNone) return;
  if (field == nullptr) {
    throw ProblemError({401,
                        "token-missing",
                        "this needs a token",
                        "send Authorization: Bearer <token>",
                        "",
                        {{"WWW-Authenticate", kChallenge}}});
  }
  if (!holder) {
    throw ProblemError(
        {401,
         "token-unknown",
         "the token is not known",
         "",
         "",
         {{"WWW-Authenticate", std::string(kChallenge) + ", error=\"invalid_token\""}}});
  }
  if (!Allows(holder->role, route.role)) {
    throw ProblemError({403, "role",
                        fmt::format("this needs the role {}; the token '{}' has {}",
                                    RoleName(route.role), holder->name, RoleName(holder->role))});
  }
  request->principal = *holder;
}

// A browser names the page that a changing request comes from. Other clients do not send the field.
void Admission::CheckOrigin(const Request& request) const {
  const std::string* origin = request.headers.Find("Origin");
  if (origin == nullptr || !Changes(request.method)) return;
  const size_t scheme = origin->find("://");
  const std::string from = scheme == std::string::npos ? *origin : origin->substr(scheme + 3);
  if (EqualsIgnoringCase(from, request.headers.Get("Host"))) return;
  throw ProblemError({403, "origin", "a page of another origin may not change anything here"});
}

}  // namespace evald::http
