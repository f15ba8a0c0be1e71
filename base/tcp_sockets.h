#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace evald {

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

/// The same by the first of the two ways that finds the socket. A kernel without inet_diag says
/// that there is none.
LookUp FindSocket(const TcpEnd& own, const TcpEnd& other);

/// The socket that listens for connections to `server`, whether on that address or on all.
LookUp FindListener(const TcpEnd& server);

/// The end of an IP address in text ("127.0.0.1", "::1"). Nothing for other text.
std::optional<TcpEnd> TcpEndOf(const std::string& ip, uint16_t port);
/// This process's end of a socket, and its peer's. Nothing if it is not connected.
std::optional<TcpEnd> OwnEnd(int socket);
std::optional<TcpEnd> PeerEnd(int socket);

}  // namespace evald
