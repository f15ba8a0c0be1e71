#include "base/tcp_sockets.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr timeval kAnswerLimit{1, 0};  // the kernel answers within the asking call

bool IsIpv4(const TcpEnd& end) {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), end.ip.begin());
}

TcpEnd Ipv4End(const void* address, uint16_t port) {
  TcpEnd end;
  std::copy(kMappedPrefix.begin(), kMappedPrefix.end(), end.ip.begin());
  std::memcpy(end.ip.data() + kMappedPrefix.size(), address, 4);
  end.port = port;
  return end;
}

TcpEnd Ipv6End(const void* address, uint16_t port) {
  TcpEnd end;
  std::memcpy(end.ip.data(), address, end.ip.size());
  end.port = port;
  return end;
}

// The end that `ask`, getsockname or getpeername, gives for the socket. Nothing if it is not
// connected.
std::optional<TcpEnd> EndOf(int socket, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof storage;
  if (ask(socket, reinterpret_cast<sockaddr*>(&storage), &bytes) != 0) return std::nullopt;
  if (storage.ss_family == AF_INET) {
    const auto& address = reinterpret_cast<const sockaddr_in&>(storage);
    return Ipv4End(&address.sin_addr, ntohs(address.sin_port));
  }
  if (storage.ss_family != AF_INET6) return std::nullopt;
  const auto& address = reinterpret_cast<const sockaddr_in6&>(storage);
  return Ipv6End(&address.sin6_addr, ntohs(address.sin6_port));
}

// ---- sock_diag

struct DiagRequest {
  nlmsghdr header{};
  inet_diag_req_v2 body{};
};

DiagRequest RequestFor(const TcpEnd& own, const TcpEnd& other) {
  DiagRequest request;
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST;
  const bool ipv4 = IsIpv4(own);
  request.body.sdiag_family = ipv4 ? AF_INET : AF_INET6;
  request.body.sdiag_protocol = IPPROTO_TCP;
  request.body.idiag_states = ~0u;
  inet_diag_sockid& id = request.body.id;
  id.idiag_sport = htons(own.port);
  id.idiag_dport = htons(other.port);
  const size_t skipped = ipv4 ? kMappedPrefix.size() : 0;
  std::memcpy(id.idiag_src, own.ip.data() + skipped, own.ip.size() - skipped);
  std::memcpy(id.idiag_dst, other.ip.data() + skipped, other.ip.size() - skipped);
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return request;
}

ListedSocket SocketOf(const inet_diag_msg& message) {
  const auto end = [&](const __be32* address, __be16 port) {
    return message.idiag_family == AF_INET ? Ipv4End(address, ntohs(port))
                                           : Ipv6End(address, ntohs(port));
  };
  return {end(message.id.idiag_src, message.id.idiag_sport),
          end(message.id.idiag_dst, message.id.idiag_dport), message.idiag_state, message.idiag_uid,
          message.idiag_inode};
}

// ---- /proc/net

// Parses "0100007F:1F90": words of four bytes in this machine's byte order, then the port.
std::optional<TcpEnd> ParseProcNetEnd(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != 8 && colon != 32) return std::nullopt;
  std::array<uint32_t, 4> words{};
  for (size_t i = 0; i < colon / 8; ++i) {
    const char* begin = text.data() + i * 8;
    if (std::from_chars(begin, begin + 8, words[i], 16).ptr != begin + 8) return std::nullopt;
  }
  uint16_t port = 0;
  const char* end = text.data() + text.size();
  if (const auto read = std::from_chars(text.data() + colon + 1, end, port, 16);
      read.ec != std::errc() || read.ptr != end) {
    return std::nullopt;
  }
  return colon == 8 ? Ipv4End(words.data(), port) : Ipv6End(words.data(), port);
}

template <typename T>
bool ReadNumber(std::string_view text, int base, T* value) {
  const auto read = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  return read.ec == std::errc() && read.ptr == text.data() + text.size();
}

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = line.find_first_not_of(' '); at != std::string_view::npos;) {
    const size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(' ', end);
  }
  return words;
}

}  // namespace

LookUp AskSockDiag(const TcpEnd& own, const TcpEnd& other) {
  const UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink) return {};
  ::setsockopt(netlink.get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerLimit, sizeof kAnswerLimit);
  const DiagRequest request = RequestFor(own, other);
  if (::send(netlink.get(), &request, sizeof request, 0) != static_cast<ssize_t>(sizeof request))
    return {};
  alignas(nlmsghdr) char answer[8192];
  const ssize_t bytes = ::recv(netlink.get(), answer, sizeof answer, 0);
  if (bytes < static_cast<ssize_t>(sizeof(nlmsghdr))) return {};
  const auto* header = reinterpret_cast<const nlmsghdr*>(answer);
  if (header->nlmsg_len > static_cast<size_t>(bytes)) return {};
  if (header->nlmsg_type == NLMSG_ERROR && header->nlmsg_len >= NLMSG_LENGTH(sizeof(nlmsgerr))) {
    const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(header));
    // A kernel without the module for TCP also answers ENOENT. PeerOwner finds that out with a
    // socket of its own.
    return {error->error == -ENOENT, std::nullopt};
  }
  if (header->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      header->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg)))
    return {};
  return {true, SocketOf(*static_cast<const inet_diag_msg*>(NLMSG_DATA(header)))};
}

std::optional<ListedSocket> ParseProcNetLine(std::string_view line) {
  // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid timeout inode
  const std::vector<std::string_view> words = Words(line);
  if (words.size() < 10) return std::nullopt;
  const auto own = ParseProcNetEnd(words[1]), other = ParseProcNetEnd(words[2]);
  ListedSocket socket;
  if (!own || !other || !ReadNumber(words[3], 16, &socket.state) ||
      !ReadNumber(words[7], 10, &socket.uid) || !ReadNumber(words[9], 10, &socket.inode)) {
    return std::nullopt;
  }
  socket.own = *own;
  socket.other = *other;
  return socket;
}

LookUp ReadProcNet(const TcpEnd& own, const TcpEnd& other) {
  bool read = false, failed = false;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) {  // an IPv6 socket may speak IPv4
    if (::access(file, F_OK) != 0 && errno == ENOENT) continue;   // IPv6 may be absent
    try {
      const std::string text = ReadFile(file);
      read = true;
      for (const std::string& line : Split(text, '\n')) {
        const auto socket = ParseProcNetLine(line);
        if (socket && socket->own == own && socket->other == other) return {true, socket};
      }
    } catch (const Error&) {
      failed = true;  // the socket may be listed there
    }
  }
  return {read && !failed, std::nullopt};
}

LookUp FindSocket(const TcpEnd& own, const TcpEnd& other) {
  const LookUp found = AskSockDiag(own, other);
  return found.socket ? found : ReadProcNet(own, other);
}

LookUp FindListener(const TcpEnd& server) {
  const TcpEnd nobody = IsIpv4(server) ? Ipv4End("\0\0\0", 0) : TcpEnd();
  const LookUp found = AskSockDiag(server, nobody);
  if (found.possible && found.socket && found.socket->state == TCP_LISTEN) return found;
  LookUp last;
  for (TcpEnd end : {server, Ipv4End("\0\0\0", server.port), TcpEnd()}) {
    end.port = server.port;
    for (const TcpEnd& other : {Ipv4End("\0\0\0", 0), TcpEnd()}) {
      last = ReadProcNet(end, other);
      if (last.socket && last.socket->state == TCP_LISTEN) return last;
    }
  }
  return {found.possible || last.possible, std::nullopt};
}

std::optional<TcpEnd> TcpEndOf(const std::string& ip, uint16_t port) {
  in_addr ipv4{};
  in6_addr ipv6{};
  if (::inet_pton(AF_INET, ip.c_str(), &ipv4) == 1) return Ipv4End(&ipv4, port);
  if (::inet_pton(AF_INET6, ip.c_str(), &ipv6) == 1) return Ipv6End(&ipv6, port);
  return std::nullopt;
}

std::optional<TcpEnd> OwnEnd(int socket) { return EndOf(socket, ::getsockname); }
std::optional<TcpEnd> PeerEnd(int socket) { return EndOf(socket, ::getpeername); }

}  // namespace evald
