#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/tcp_sockets.h"

namespace evald::http {

/// The caller at the other end of a connection.
struct Caller {
  bool accepted = false;
  std::string reason;    ///< why the caller is not accepted: "the call comes from uid 1000"
  bool gone = false;     ///< the caller has closed its socket, as any client may
  bool unknown = false;  ///< the kernel could not be asked just now; a later call may be answered
};

/// Decides about a caller. A pure function. `listed` is the kernel's entry for the socket whose
/// ends are `peer` and `server`. Only a socket that a process of `own_uid` or of root holds is
/// accepted. A socket that no process holds is refused, since the kernel gives it uid 0, whoever
/// its owner was.
Caller Judge(const std::optional<ListedSocket>& listed, const TcpEnd& peer, const TcpEnd& server,
             uid_t own_uid);

/// Tells, on a loopback listener without tokens, whether a caller is this process's own user. Asks
/// the kernel who holds the caller's socket. One thread at a time.
class PeerOwner {
 public:
  /// Throws Error(kUsage) if the kernel cannot say who calls: neither inet_diag nor /proc/net/tcp
  /// can be used, or this process's user cannot be told from others (the overflow user within a
  /// user namespace).
  PeerOwner();

  /// Judges the peer of the accepted `socket`. Call it at once after accept(), before a byte is
  /// read. If the kernel cannot be asked (no descriptor or memory is left), the caller is neither
  /// accepted nor taken for a stranger.
  Caller Of(int socket) const;

 private:
  LookUp Find(const TcpEnd& own, const TcpEnd& other) const;

  bool diag_ = false;  ///< sock_diag works here; otherwise /proc/net is read
};

}  // namespace evald::http
