#pragma once

#include <string>
#include <utility>

namespace evald {

/// The name of the orchestrator's own host.
inline constexpr const char* kLocalHost = "local";

/// The prefix of a host's process ids among the processes of all hosts.
inline std::string ProcessPrefix(const std::string& host) {
  return host == kLocalHost ? "" : host + ".";
}

/// The name of a host's process `id` among the processes of all hosts.
inline std::string FullProcessId(const std::string& host, const std::string& id) {
  return ProcessPrefix(host) + id;
}

/// The host of a process, and the process's name there. Host names contain no dot (IsHostName).
inline std::pair<std::string, std::string> PlaceOfProcess(const std::string& full) {
  const size_t dot = full.find('.');
  if (dot == std::string::npos) return {kLocalHost, full};
  return {full.substr(0, dot), full.substr(dot + 1)};
}

}  // namespace evald
