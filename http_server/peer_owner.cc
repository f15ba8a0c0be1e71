#include "http_server/peer_owner.h"

#include <arpa/inet.h>
#include <fmt/format.h>
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

namespace evald::http {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
const Caller kGone{false, "the caller has closed its socket", true};
const Caller kUnknown{false, "the kernel cannot say now who calls", false, true};
// Sockets come and go while the kernel walks its tables, so a socket that is there may be missed.
constexpr int kLooksMax = 3;
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

// ---- whether the kernel can say

// Two connected sockets of this process, for a trial of the look-ups.
struct OwnConnection {
  OwnConnection()
      : listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        caller(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    connected = ::bind(listener.get(), any, bytes) == 0 && ::listen(listener.get(), 1) == 0 &&
                ::getsockname(listener.get(), any, &bytes) == 0 &&
                ::connect(caller.get(), any, bytes) == 0;
  }
  UniqueFd listener, caller;
  bool connected = false;
};

// Whether other users' processes would have this process's user id. Within a user namespace, all
// users that it does not map are shown as the overflow user.
bool OthersLookLikeUs() {
  try {
    if (std::to_string(::geteuid()) != Trim(ReadFile("/proc/sys/kernel/overflowuid"))) return false;
    return Words(Trim(ReadFile("/proc/self/uid_map"))) !=
           std::vector<std::string_view>{"0", "0", "4294967295"};
  } catch (const Error&) {
    return false;
  }
}

[[noreturn]] void CannotSay(const std::string& why) {
  throw Error(
      ErrorKind::kUsage,
      "without tokens the service serves its own user only, but it cannot tell who calls: " + why,
      "set 'tokens' in serve.yaml to a token file (docs/rest.md says how to make one)");
}

}  // namespace

Caller Judge(const std::optional<ListedSocket>& listed, const TcpEnd& peer, const TcpEnd& server,
             uid_t own_uid) {
  if (!listed) return {false, "the kernel does not list the caller's socket", false};
  if (listed->own != peer || listed->other != server)
    return {false, "the kernel names another socket than the caller's", false};
  const bool open = listed->state == TCP_ESTABLISHED || listed->state == TCP_FIN_WAIT1 ||
                    listed->state == TCP_FIN_WAIT2;
  if (!open || listed->inode == 0) return kGone;
  if (listed->uid == own_uid || listed->uid == 0) return {true, "", false};
  return {false, fmt::format("the call comes from uid {}", listed->uid), false};
}

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

PeerOwner::PeerOwner() {
  const OwnConnection trial;
  const auto own = EndOf(trial.caller.get(), ::getsockname),
             other = EndOf(trial.caller.get(), ::getpeername);
  if (!trial.connected || !own || !other)
    CannotSay("this machine's loopback address cannot be connected to");
  const auto right = [&](const LookUp& found) {
    return Judge(found.socket, *own, *other, ::geteuid()).accepted;
  };
  diag_ = right(AskSockDiag(*own, *other));
  if (!diag_ && !right(ReadProcNet(*own, *other))) {
    CannotSay("the kernel answers neither inet_diag nor by /proc/net/tcp");
  }
  if (OthersLookLikeUs())
    CannotSay(fmt::format("in this container all users that it does not know have its own uid, {}",
                          ::geteuid()));
}

LookUp PeerOwner::Find(const TcpEnd& own, const TcpEnd& other) const {
  if (!diag_) return ReadProcNet(own, other);
  const LookUp found = AskSockDiag(own, other);
  return found.possible ? found : ReadProcNet(own, other);
}

Caller PeerOwner::Of(int socket) const {
  const auto peer = EndOf(socket, ::getpeername), server = EndOf(socket, ::getsockname);
  if (!peer || !server) return kGone;
  LookUp found;
  Caller caller = kUnknown;
  for (int look = 0; look < kLooksMax && !found.socket; ++look) {
    found = Find(*peer, *server);
    if (found.possible) caller = Judge(found.socket, *peer, *server, ::geteuid());
  }
  if (!found.possible) return kUnknown;
  // While this end is connected, no one else can have a socket with the caller's address and port.
  // After a reset someone could, and bytes from the reset caller could still be read: hence a
  // second look.
  if ((caller.accepted || !found.socket) && !EndOf(socket, ::getpeername)) return kGone;
  return caller;
}

}  // namespace evald::http
