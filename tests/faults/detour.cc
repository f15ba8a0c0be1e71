// Preloaded by tests into workers and metric processes. A connection to the agent's socket goes to
// EVALD_DETOUR instead. Its first line names the socket that the process meant.
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/faults/layer.h"

namespace {

constexpr const char* kAgentSocket = "/agent.sock";

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// A long path is given by way of its open folder.
std::string Resolved(const std::string& path) {
  const std::string prefix = "/proc/self/fd/";
  if (path.compare(0, prefix.size(), prefix) != 0) return path;
  return layer::PathOf(std::atoi(path.c_str() + prefix.size())) + kAgentSocket;
}

}  // namespace

extern "C" int connect(int fd, const sockaddr* address, socklen_t bytes) {
  static const auto next = layer::Next<int (*)(int, const sockaddr*, socklen_t)>("connect");
  const std::string detour = layer::Variable("EVALD_DETOUR");
  const auto* unix_address = reinterpret_cast<const sockaddr_un*>(address);
  if (detour.empty() || address->sa_family != AF_UNIX ||
      !EndsWith(unix_address->sun_path, kAgentSocket)) {
    return next(fd, address, bytes);
  }
  sockaddr_un instead{};
  instead.sun_family = AF_UNIX;
  if (detour.size() >= sizeof instead.sun_path) ::abort();
  std::memcpy(instead.sun_path, detour.c_str(), detour.size() + 1);
  if (next(fd, reinterpret_cast<const sockaddr*>(&instead), sizeof instead) != 0) return -1;
  const std::string line = Resolved(unix_address->sun_path) + "\n";
  return ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size())
             ? 0
             : -1;
}
