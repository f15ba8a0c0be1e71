#include "orchestrator/fleet/peer_user.h"

#include <sys/socket.h>
#include <unistd.h>

namespace evald {

bool IsOwnUser(int socket) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == ::geteuid();
}

}  // namespace evald
