#pragma once

#include <chrono>

#include "http_client/request.h"

namespace evald::http_client {

/// How often a call is made, and the pauses between.
struct RetryPolicy {
  int attempts_max = 4;
  std::chrono::microseconds first_pause{250'000};  ///< doubled with each attempt
  std::chrono::microseconds longest_pause{10'000'000};
  std::chrono::microseconds longest_retry_after{60'000'000};  ///< a server cannot ask for more
};

/// The pause after `attempts` attempts (1 or more): first_pause, doubled with each, at most
/// longest_pause; of that between half and all, by `draw` in [0, 1), so that many callers do not
/// return together. At least what the server's Retry-After says.
std::chrono::microseconds RetryPause(const RetryPolicy& policy, int attempts, double retry_after_s,
                                     double draw);

/// Whether a server that answers with this status may answer otherwise later: 408, 425, 429, 5xx.
bool IsTemporary(int status);

/// Whether a call that ended like this may be made again: no connection, a broken one, or a
/// temporary status. A call that ran into a limit would do so again.
bool IsWorthAnother(const Response& response);

}  // namespace evald::http_client
