#include "metrics/sandbox/guest/control.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "metrics/sandbox/wire.h"

namespace evald::guest {

using sandbox::kControlFd;

bool ReadAll(void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = read(kControlFd, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool SendAll(const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(kControlFd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool RunnerHasGone() {
  char byte;
  return recv(kControlFd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

}  // namespace evald::guest
