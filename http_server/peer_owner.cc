#include "http_server/peer_owner.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iterator>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald::http {
namespace {

const Caller kGone{false, "the caller has closed its socket", true};
const Caller kUnknown{false, "the kernel cannot say now who calls", false, true};
// Sockets come and go while the kernel walks its tables, so a socket that is there may be missed.
constexpr int kLooksMax = 3;

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

std::vector<std::string> WordsOf(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

// Whether other users' processes would have this process's user id. Within a user namespace, all
// users that it does not map are shown as the overflow user.
bool OthersLookLikeUs() {
  try {
    if (std::to_string(::geteuid()) != Trim(ReadFile("/proc/sys/kernel/overflowuid"))) return false;
    return WordsOf(ReadFile("/proc/self/uid_map")) !=
           std::vector<std::string>{"0", "0", "4294967295"};
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

PeerOwner::PeerOwner() {
  const OwnConnection trial;
  const auto own = OwnEnd(trial.caller.get()), other = PeerEnd(trial.caller.get());
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
  const auto peer = PeerEnd(socket), server = OwnEnd(socket);
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
  if ((caller.accepted || !found.socket) && !PeerEnd(socket)) return kGone;
  return caller;
}

}  // namespace evald::http
