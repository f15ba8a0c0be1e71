#include "http_server/router.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "http_server/problem.h"

namespace evald::http {
namespace {

bool IsParameter(std::string_view part) { return part.starts_with('{') && part.ends_with('}'); }

// Matches a path with a template. Returns the number of fixed segments, or -1.
int Match(const std::string& pattern, const std::vector<std::string>& path,
          std::map<std::string, std::string>* parameters) {
  std::vector<std::string> parts = Split(std::string_view(pattern).substr(1), '/');
  if (pattern == "/") parts.clear();
  int fixed = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (IsParameter(parts[i]) && parts[i].ends_with("...}")) {
      if (i >= path.size()) return -1;
      (*parameters)[parts[i].substr(1, parts[i].size() - 5)] =
          Join(std::vector<std::string>(path.begin() + static_cast<long>(i), path.end()), "/");
      return fixed;
    }
    if (i >= path.size()) return -1;
    if (IsParameter(parts[i])) {
      if (path[i].empty()) return -1;
      (*parameters)[parts[i].substr(1, parts[i].size() - 2)] = path[i];
    } else if (parts[i] == path[i]) {
      ++fixed;
    } else {
      return -1;
    }
  }
  return parts.size() == path.size() ? fixed : -1;
}

bool Serves(const Route& route, const std::string& method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

}  // namespace

void Router::Add(Route route) {
  for (const Route& other : routes_) {
    if (other.method == route.method && other.path == route.path) {
      throw Error(ErrorKind::kInternal,
                  fmt::format("two routes for {} {}", route.method, route.path));
    }
  }
  routes_.push_back(std::move(route));
}

const Route& Router::Find(Request* request) const {
  const Route* best = nullptr;
  int best_fixed = -1;
  std::vector<std::string> allowed;
  for (const Route& route : routes_) {
    std::map<std::string, std::string> parameters;
    const int fixed = Match(route.path, request->path, &parameters);
    if (fixed < 0) continue;
    allowed.push_back(route.method);
    if (route.method == "GET") allowed.push_back("HEAD");
    if (!Serves(route, request->method) || fixed <= best_fixed) continue;
    best = &route;
    best_fixed = fixed;
    request->parameters = std::move(parameters);
    request->route = route.path;
  }
  if (best != nullptr) return *best;
  if (allowed.empty())
    throw ProblemError(
        {404, "not-found",
         fmt::format("nothing is at the path '{}'",
                     PrintableLine(Shortened("/" + Join(request->path, "/"), 200)))});
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  throw ProblemError({405,
                      "method",
                      fmt::format("this path takes {}", Join(allowed, ", ")),
                      "",
                      "",
                      {{"Allow", Join(allowed, ", ")}}});
}

}  // namespace evald::http
