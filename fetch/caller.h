#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "evald/error.h"
#include "http_client/client.h"
#include "http_client/request.h"
#include "http_client/retry.h"

// Files of other servers.
namespace evald::fetch {

/// What the calls of one fetch have in common.
struct Access {
  std::string endpoint;  ///< the URL that others begin with, without a slash at its end
  /// Sent to the endpoint's scheme, host and port and to no other; "": none is sent. Over http it
  /// is sent to this machine only.
  std::string token;
  std::filesystem::path ca_file;  ///< PEM; trusted in place of the system's certificates; "": none
  http_client::RetryPolicy retry = {.attempts_max = 6,
                                    .first_pause = std::chrono::milliseconds(500),
                                    .longest_pause = std::chrono::seconds(20),
                                    .longest_retry_after = std::chrono::minutes(15)};
  /// Gets a line before each pause of a second or more. Any thread may call it. May be null.
  std::function<void(const std::string& line)> notice;
};

/// How a call ended.
struct Answered {
  http_client::Response response;
  std::string url;  ///< which answered, after redirects
};

/// Makes GET calls. Unlike http_client's own calls, these follow redirects, five at most: the hub's
/// files lie on other hosts. A redirect to another scheme, host or port gets no token. One from
/// https to http is not followed. One thread at a time.
class Caller {
 public:
  /// `access` outlives this.
  explicit Caller(const Access& access) : access_(access) {}

  /// Makes the call once. The request's method, token and certificates are set here.
  Answered Once(http_client::Request request);
  /// The same, made again as access.retry says. For answers that are kept as a whole, not for
  /// sinks.
  Answered Get(const http_client::Request& request);

  const Access& access() const { return access_; }

 private:
  const Access& access_;
  http_client::Client client_;
};

/// Counts the attempts of one piece of work, and waits between them.
class Patience {
 public:
  explicit Patience(const Access& access) : access_(access) {}

  /// Whether the work may be tried again after this answer; waits before it says yes: as long as
  /// the server asks (Retry-After, or RateLimit), else access.retry's pause. No if all attempts are
  /// used up, if another one would bring the same, or if the server asks for more time than
  /// access.retry allows.
  bool Another(const std::string& url, const http_client::Response& response);
  /// The last attempt brought the work forward: the count begins anew.
  void Renew() { attempts_ = 0; }
  int attempts() const { return attempts_; }

 private:
  const Access& access_;
  int attempts_ = 0;
};

/// The error for a call that brought no answer 2xx: the URL, what happened, and the remedy.
Error RefusalOf(const std::string& url, const http_client::Response& response);

/// The seconds for which the server asks to wait: Retry-After, else the time to the end of a
/// used-up rate limit in the field RateLimit (draft-ietf-httpapi-ratelimit-headers,
/// `"api";r=0;t=55`). 0: the server does not say. The response must have kept its fields.
double WaitAskedFor(const http_client::Response& response);

}  // namespace evald::fetch
