#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "http_client/request.h"

namespace evald::http_client {

/// Makes many calls at once over connections that are kept and used again (libcurl's multi
/// interface). The policy is that of request.h. One thread at a time.
class Transfers {
 public:
  struct Ended {
    uint64_t id = 0;  ///< the one given to Start
    Response response;
  };

  Transfers();
  ~Transfers();

  /// Begins a call. Throws Error(kUsage) for a URL or a header field that cannot be sent; every
  /// other failure is a response.
  void Start(uint64_t id, Request request);
  /// Returns the calls that ended; waits at most `budget` for the first.
  std::vector<Ended> Poll(std::chrono::milliseconds budget);
  size_t pending() const;
  /// Drops all calls under way, and their connections.
  void CancelAll();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace evald::http_client
