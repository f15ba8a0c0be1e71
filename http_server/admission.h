#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "http_server/rate_limit.h"
#include "http_server/router.h"

namespace evald::http {

/// Decides about a request from its header alone, before a byte of its body is read. No socket and
/// no clock; one thread at a time.
class Admission {
 public:
  struct Rules {
    TokenAuth tokens;                ///< empty: every caller is admin, and `hosts` are enforced
    std::vector<std::string> hosts;  ///< names, besides loopback's, that a Host field may hold
    double requests_per_second = 2000;
    double requests_burst = 4000;
  };

  Admission(Rules rules, Router router);

  /// Finds the request's route, and sets its route, parameters and principal. Throws ProblemError:
  /// 421 for a Host field that is not this server's (DNS rebinding), 429, 404, 405, 401, 403.
  const Route& Admit(Request* request, int64_t now_us);

  const Router& router() const { return router_; }

 private:
  void CheckHost(const Request& request) const;
  std::optional<Principal> HolderOf(const Request& request) const;
  void CheckRate(const Request& request, const std::optional<Principal>& holder, int64_t now_us);
  void CheckToken(Request* request, const std::optional<Principal>& holder,
                  const Route& route) const;
  void CheckOrigin(const Request& request) const;

  Rules rules_;
  Router router_;
  RateLimit rate_;
};

/// The name in a Host field without port and brackets: "[::1]:80" gives "::1".
std::string HostName(const std::string& host);

}  // namespace evald::http
