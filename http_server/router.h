#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http_server/message.h"

namespace evald::http {

/// One kind of request and its handler.
struct Route {
  std::string method;       ///< GET also answers HEAD
  std::string path;         ///< "/v1/runs/{run}"; a last "{name...}" takes all further segments
  Role role = Role::kRead;  ///< the role that a token must have
  Handler handler;
  uint64_t body_bytes_max = 0;  ///< longer bodies are refused before they are read
};

/// Finds the route of a request. Filled before the server starts, and then read by the server's
/// thread only.
class Router {
 public:
  /// Throws Error(kInternal) if method and path are taken.
  void Add(Route route);

  /// The route for the request's method and path. Sets `request->route` and `->parameters`. Throws
  /// ProblemError: 404, or 405 with Allow. Fixed segments win over parameters.
  const Route& Find(Request* request) const;

  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace evald::http
