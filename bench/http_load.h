#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace evald::bench {

/// Load on an HTTP service of this machine.
struct HttpLoad {
  uint16_t port = 0;
  int followers = 0;               ///< connections that read `events` all the time
  std::string events;              ///< path of an event stream
  std::vector<std::string> paths;  ///< requested in turn
  int connections = 16;            ///< for requests of `paths`; kept alive
  double per_second = 0;           ///< requests, all connections together
  double seconds = 0;
};

/// The result of the load.
struct HttpLoadResult {
  /// The latency of each answered request, sorted. It counts from the time at which the request was
  /// due, so a late service is charged for requests that had to wait.
  std::vector<double> latencies_s;
  std::map<int, int64_t> statuses;
  int64_t failed = 0;           ///< requests without an answer
  double seconds = 0;           ///< from the first to the last answer
  std::vector<int64_t> events;  ///< seen by each follower
  int64_t followers_lost = 0;   ///< connections that ended or were refused
  double cpu_seconds = 0;       ///< of the thread that made the load
};

/// Makes the load from one thread.
HttpLoadResult RunHttpLoad(const HttpLoad& load);

/// Sends one request on its own connection. Returns the body of a 2xx answer. Throws
/// Error(kInfrastructure).
std::string HttpRequest(uint16_t port, const std::string& method, const std::string& path,
                        const std::string& body = "");

}  // namespace evald::bench
