#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Calls of other servers over HTTP. One policy holds for every call of evald's:
///
/// - Schemes: http and https. A URL with another scheme is not called.
/// - Proxies: those of the environment, as libcurl reads it (http_proxy, https_proxy, all_proxy,
///   no_proxy). A loopback address is never reached by way of a proxy. An agent's calls to its
///   orchestrator use none (Proxy::kNone).
/// - TLS: 1.2 or later; certificate and host name are checked, against the system's certificates,
///   the file of SSL_CERT_FILE, or `Request::ca_file`. No switch turns that off.
/// - Redirects: none is followed, so a call, its key and its body reach no other server than the
///   one named. A redirect is an answer like any other.
/// - Limits: every call bounds the answer's header, its body (after decompression) and the time to
///   connect. A call bounds its whole time, or the longest silence, or both.
/// - Retries: only if the caller gives a RetryPolicy (retry.h); a POST only with the field
///   Idempotency-Key; nothing after a limit of time or size. Pauses double, vary, and are at least as
///   long as Retry-After says.
/// - Cancelling: a call ends within 0.1 s of its flag being set. A name that is being looked up
///   cannot be cancelled.
/// - Failures say in one line what was asked of whom, what happened and what can be done
///   (failure.h). They show no user, password or query of a URL.
/// - Cookies, .netrc and HTTP/0.9 are not used. Header fields with control characters are refused.
namespace evald::http_client {

struct Limits {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds total{0};  ///< from the call's begin to the answer's end; 0: none
  std::chrono::seconds silence{0};     ///< the longest time below one byte a second; 0: none
  size_t header_bytes_max = 64u << 10;
  size_t body_bytes_max = 64u << 20;  ///< of `Response::body`, not of what a sink takes
};

enum class Proxy { kEnvironment, kNone };

/// Fields of an answer's header: names in lower case, values without white space at their ends. Of
/// a field that comes several times, the last.
using Fields = std::map<std::string, std::string>;

/// One call.
struct Request {
  std::string method = "GET";  ///< POST, PUT and PATCH send `body`, others send none
  std::string url;
  /// If not empty, the call goes to this Unix socket, whatever host the URL names
  std::filesystem::path unix_socket;
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;  ///< names and values
  std::string bearer_token;                                  ///< "": none is sent
  std::filesystem::path ca_file;  ///< PEM; trusted in place of the system's certificates
  Proxy proxy = Proxy::kEnvironment;
  /// The call is made only if a process of this user or of root holds the server's socket. For a
  /// server on loopback that this process started: any user of the machine may take a free port.
  bool own_server = false;
  bool gzip = false;  ///< whether the server may compress the answer
  Limits limits;
  /// Takes the body of an answer 2xx piece by piece, in place of `Response::body`. The call ends if
  /// the sink returns false or throws. The bodies of other answers are kept as text.
  std::function<bool(std::string_view bytes)> sink;
  /// Called once the header of an answer 2xx is there, before the sink gets a byte. The call ends
  /// if it returns false or throws.
  std::function<bool(int status, const Fields& fields)> begin;
  bool keep_fields = false;  ///< whether the response and `begin` get the header's fields
  /// Called before the call is made again, so that `sink` can begin anew. Without it a call whose
  /// sink has had bytes is not repeated.
  std::function<void()> rewind;
};

/// How a call ended.
enum class Outcome {
  kAnswered,     ///< a whole answer came, of any status
  kUnreachable,  ///< no connection
  kUntrusted,    ///< TLS failed, most often the certificate; or another user's server answers
  kBroken,       ///< the connection ended before the answer did, or what came was no HTTP
  kTimedOut,     ///< a limit of time
  kTooLong,      ///< a limit of size
  kStopped,      ///< the sink wanted no more, or `begin` did not
  kCancelled,
};

struct Response {
  Outcome outcome = Outcome::kAnswered;
  int status = 0;  ///< 0: no status line came. It may have come although the rest did not
  std::string body;
  Fields fields;              ///< if the request keeps them
  std::string location;       ///< of a redirect: the URL that it names
  double retry_after_s = 0;   ///< Retry-After, a number or a date; 0: the server does not say
  std::string error;          ///< what happened, unless answered: "Couldn't resolve host name"
  std::string remedy;         ///< what a person can do
  int attempts = 1;           ///< how often the call was made
  uint64_t sink_bytes = 0;    ///< what the sink took
  std::exception_ptr thrown;  ///< by the sink, or by `begin`

  bool answered() const { return outcome == Outcome::kAnswered; }
  bool ok() const { return answered() && status >= 200 && status < 300; }
};

}  // namespace evald::http_client
