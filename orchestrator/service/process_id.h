#pragma once

#include <string>

namespace evald {

/// The name of the orchestrator's own host.
inline constexpr const char* kLocalHost = "local";

/// What a host's process `id` is called among those of all hosts.
inline std::string FullProcessId(const std::string& host, const std::string& id) {
  return host == kLocalHost ? id : host + "." + id;
}

}  // namespace evald
