#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace evald::http {

/// One end of a TCP connection. An IPv4 address is written as an IPv6 address, ::ffff:a.b.c.d, so
/// that both spellings of one address are equal.
struct TcpEnd {
  std::array<uint8_t, 16> ip{};
  uint16_t port = 0;
  bool operator==(const TcpEnd&) const = default;
};

/// A TCP socket as the kernel lists it.
struct ListedSocket {
  TcpEnd own, other;
  int state = 0;  ///< TCP_ESTABLISHED and so on, of netinet/tcp.h
  /// The user who made the socket; the kernel says 0 for a socket that no process holds any more
  uid_t uid = 0;
  uint64_t inode = 0;  ///< 0: no process holds the socket (closed by its process, or in TIME_WAIT)
};

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

/// The result of looking up one socket.
struct LookUp {
  bool possible = false;  ///< the kernel was asked, and answered
  std::optional<ListedSocket> socket;
};

/// The socket whose own end is `own`, by NETLINK_SOCK_DIAG (sock_diag(7)): one exact question.
LookUp AskSockDiag(const TcpEnd& own, const TcpEnd& other);
/// The same by /proc/net/tcp and /proc/net/tcp6 (proc(5)), which list all sockets of the network
/// namespace.
LookUp ReadProcNet(const TcpEnd& own, const TcpEnd& other);
/// Parses a line of /proc/net/tcp or tcp6. Nothing for the heading and for an unknown form.
std::optional<ListedSocket> ParseProcNetLine(std::string_view line);

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
