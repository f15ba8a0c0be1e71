// A service without tokens serves its own user only. It asks the kernel for the user at the other
// end.
#include "http_server/peer_owner.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/file.h"
#include "http_server/server.h"
#include "socket_client.h"

namespace evald::http::test {
namespace {

constexpr uid_t kOther = 65534;

TcpEnd End(uint8_t last, uint16_t port) {
  TcpEnd end;
  end.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, last};
  end.port = port;
  return end;
}

ListedSocket Listed(uid_t uid) { return {End(1, 50000), End(1, 8642), TCP_ESTABLISHED, uid, 77}; }

bool Accepts(const std::optional<ListedSocket>& listed) {
  return Judge(listed, End(1, 50000), End(1, 8642), 1000).accepted;
}

TEST(PeerOwner, OnlyTheOwnUserAndRootAreAccepted) {
  EXPECT_TRUE(Accepts(Listed(1000)));
  EXPECT_TRUE(Accepts(Listed(0)));
  EXPECT_FALSE(Accepts(Listed(1001)));
  EXPECT_FALSE(Accepts(Listed(kOther)));
  EXPECT_EQ(Judge(Listed(1001), End(1, 50000), End(1, 8642), 1000).reason,
            "the call comes from uid 1001");
  EXPECT_FALSE(Accepts(std::nullopt));
}

// After a process has closed a socket, the kernel gives uid 0 for that socket, whoever owned it.
TEST(PeerOwner, ASocketThatNobodyHoldsIsRefused) {
  ListedSocket orphan = Listed(0);
  orphan.inode = 0;
  EXPECT_FALSE(Accepts(orphan));
  for (const int state :
       {TCP_TIME_WAIT, TCP_LISTEN, TCP_CLOSE, TCP_SYN_SENT, TCP_SYN_RECV, TCP_LAST_ACK}) {
    ListedSocket socket = Listed(0);
    socket.state = state;
    EXPECT_FALSE(Accepts(socket)) << state;
  }
  ListedSocket half_closed = Listed(1000);
  half_closed.state = TCP_FIN_WAIT2;  // the caller has sent everything and waits for the answer
  EXPECT_TRUE(Accepts(half_closed));
}

// The kernel may answer an exact question with a listener on the same port.
TEST(PeerOwner, AnotherSocketThanTheCallersIsRefused) {
  for (const auto& change : std::vector<std::function<void(ListedSocket*)>>{
           [](ListedSocket* s) { s->own.port = 50001; }, [](ListedSocket* s) { s->other.port = 0; },
           [](ListedSocket* s) { s->own = End(2, 50000); },
           [](ListedSocket* s) { s->other = TcpEnd(); }}) {
    ListedSocket socket = Listed(1000);
    change(&socket);
    EXPECT_FALSE(Accepts(socket));
  }
}

TEST(PeerOwner, LinesOfProcNetAreRead) {
  const auto socket = ParseProcNetLine(
      "   2: 0100007F:C3C8 0100007F:E355 01 00000000:00000000 00:00000000 00000000  1000        0 "
      "59575 2 0 20 0 0 10 -1");
  ASSERT_TRUE(socket);
  EXPECT_EQ(socket->own, End(1, 0xC3C8));
  EXPECT_EQ(socket->other, End(1, 0xE355));
  EXPECT_EQ(socket->state, TCP_ESTABLISHED);
  EXPECT_EQ(socket->uid, 1000u);
  EXPECT_EQ(socket->inode, 59575u);
  const auto mapped = ParseProcNetLine(
      "   0: 0000000000000000FFFF00000100007F:C3C8 0000000000000000FFFF00000100007F:E355 06 0:0 "
      "03:0 0     0        0 0 3 0");
  ASSERT_TRUE(mapped);
  EXPECT_EQ(mapped->own, End(1, 0xC3C8));
  EXPECT_EQ(mapped->state, TCP_TIME_WAIT);
  EXPECT_EQ(mapped->inode, 0u);
  for (const char* wrong : {"",
                            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when "
                            "retrnsmt   uid  timeout inode",
                            "0: 0100007F 0100007F:E355 01 0:0 0:0 0 0 0 5",
                            "0: 010000:1 0100007F:E355 01 0:0 0:0 0 0 0 5",
                            "0: 0100007F:1 0100007F:E355 01 0:0 0:0 0 -1 0 5",
                            "0: 0100007F:1 0100007F:10000 01 0:0 0:0 0 0 0 5"}) {
    EXPECT_FALSE(ParseProcNetLine(wrong)) << wrong;
  }
}

// ---- real sockets

struct Pair {
  UniqueFd listener, caller, accepted;
};

// The caller's family may be IPv6 and the listener's IPv4. The caller's address is then a mapped
// one.
Pair Connect(int listen_family, int call_family) {
  Pair pair{UniqueFd(::socket(listen_family, SOCK_STREAM, 0)),
            UniqueFd(::socket(call_family, SOCK_STREAM, 0)), UniqueFd()};
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  v6.sin6_addr = in6addr_loopback;
  sockaddr* at = listen_family == AF_INET ? reinterpret_cast<sockaddr*>(&v4)
                                          : reinterpret_cast<sockaddr*>(&v6);
  socklen_t bytes = listen_family == AF_INET ? sizeof v4 : sizeof v6;
  if (::bind(pair.listener.get(), at, bytes) != 0 || ::listen(pair.listener.get(), 5) != 0)
    return {};
  ::getsockname(pair.listener.get(), at, &bytes);
  if (listen_family == AF_INET && call_family == AF_INET6) {
    ::inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
    v6.sin6_port = v4.sin_port;
    at = reinterpret_cast<sockaddr*>(&v6);
    bytes = sizeof v6;
  }
  if (::connect(pair.caller.get(), at, bytes) != 0) return {};
  pair.accepted.reset(::accept(pair.listener.get(), nullptr, nullptr));
  return pair;
}

class PeerOwnerSockets : public ::testing::TestWithParam<std::pair<int, int>> {};

TEST_P(PeerOwnerSockets, TheOwnUserIsKnown) {
  const Pair pair = Connect(GetParam().first, GetParam().second);
  if (!pair.accepted) GTEST_SKIP() << "this machine has no IPv6 loopback";
  const Caller caller = PeerOwner().Of(pair.accepted.get());
  EXPECT_TRUE(caller.accepted) << caller.reason;
}

TEST_P(PeerOwnerSockets, ACallerWhoHasGoneIsRefused) {
  Pair pair = Connect(GetParam().first, GetParam().second);
  if (!pair.accepted) GTEST_SKIP() << "this machine has no IPv6 loopback";
  ASSERT_EQ(::send(pair.caller.get(), "x", 1, 0), 1);
  pair.caller.reset();
  EXPECT_FALSE(PeerOwner().Of(pair.accepted.get()).accepted);
}

INSTANTIATE_TEST_SUITE_P(Families, PeerOwnerSockets,
                         ::testing::Values(std::pair(AF_INET, AF_INET),
                                           std::pair(AF_INET6, AF_INET6),
                                           std::pair(AF_INET, AF_INET6)));

// Neither is at fault. The caller is asked to try again, and is not called a stranger.
TEST(PeerOwner, ACallerIsUnknownWhereTheKernelCannotBeAsked) {
  const Pair pair = Connect(AF_INET, AF_INET);
  ASSERT_TRUE(pair.accepted);
  const PeerOwner owner;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few{3, limit.rlim_max};  // no descriptor is left
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Caller caller = owner.Of(pair.accepted.get());
  const LookUp listed = ReadProcNet(End(1, 1), End(1, 2));
  ::setrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_FALSE(caller.accepted);
  EXPECT_TRUE(caller.unknown) << caller.reason;
  EXPECT_FALSE(listed.possible) << "what could not be read may list the caller";
  EXPECT_TRUE(owner.Of(pair.accepted.get()).accepted);
}

TEST(PeerOwner, BothWaysOfAskingSayTheSame) {
  const Pair pair = Connect(AF_INET, AF_INET);
  ASSERT_TRUE(pair.accepted);
  sockaddr_in own{}, other{};
  socklen_t bytes = sizeof own;
  ::getsockname(pair.caller.get(), reinterpret_cast<sockaddr*>(&own), &bytes);
  ::getpeername(pair.caller.get(), reinterpret_cast<sockaddr*>(&other), &bytes);
  const TcpEnd caller = End(1, ntohs(own.sin_port)), server = End(1, ntohs(other.sin_port));
  const LookUp listed = ReadProcNet(caller, server);
  ASSERT_TRUE(listed.socket);
  EXPECT_EQ(listed.socket->uid, ::geteuid());
  const LookUp diag = AskSockDiag(caller, server);
  if (!diag.possible) GTEST_SKIP() << "this kernel has no inet_diag";
  ASSERT_TRUE(diag.socket);
  EXPECT_EQ(diag.socket->uid, listed.socket->uid);
  EXPECT_EQ(diag.socket->inode, listed.socket->inode);
  EXPECT_EQ(diag.socket->state, listed.socket->state);
  EXPECT_FALSE(AskSockDiag(End(1, 1), server).socket);
  EXPECT_FALSE(ReadProcNet(End(1, 1), server).socket);
}

// ---- a server that a process of another user calls

Router OwnerRoutes() {
  Router router;
  const Handler hello = [](const auto&, const Responder& answer) {
    answer(JsonResponse(200, "{}"));
  };
  router.Add({"GET", "/healthz", Role::kNone, hello});
  router.Add({"GET", "/read", Role::kRead, hello});
  return router;
}

// The status that a process of user `uid` gets.
int StatusFor(uid_t uid, uint16_t port, const std::string& request, bool close_at_once = false) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(uid) != 0 || ::setuid(uid) != 0) ::_exit(1);
    SocketClient client(port);
    client.Send(request);
    if (close_at_once) ::_exit(0);
    ::_exit(client.Receive().status % 256);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(PeerOwner, AServerWithoutTokensRefusesOtherUsersWhateverTheyAsk) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can call as another user";
  Server server({}, OwnerRoutes());
  for (const char* path : {"/read", "/healthz", "/none"}) {
    EXPECT_EQ(StatusFor(kOther, server.port(), Ask("GET", path)), 403 % 256) << path;
  }
  EXPECT_EQ(StatusFor(kOther, server.port(), "no HTTP at all\n\n"), 403 % 256);
  EXPECT_EQ(Fetch(server.port(), Ask("GET", "/read")).status, 200);
}

TEST(PeerOwner, AServerWithTokensAsksForThoseOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can call as another user";
  ServerOptions options;
  options.tokens.Add("reader", Role::kRead, "token-of-the-reader");
  Server server(options, OwnerRoutes());
  EXPECT_EQ(StatusFor(kOther, server.port(),
                      Ask("GET", "/read", "Authorization: Bearer token-of-the-reader\r\n")),
            200);
}

TEST(PeerOwner, OtherUsersTakeNoPlaceOfTheOwnUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can call as another user";
  ServerOptions options;
  options.connections_max = 4;
  options.connections_per_client_max = 4;
  Server server(options, OwnerRoutes());
  int ready[2], over[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(over), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(over[1]);
    if (::setuid(kOther) != 0) ::_exit(1);
    std::vector<std::unique_ptr<SocketClient>> held;
    for (int i = 0; i < 10; ++i) held.push_back(std::make_unique<SocketClient>(server.port()));
    char byte = 0;
    static_cast<void>(::write(ready[1], &byte, 1));
    static_cast<void>(::read(over[0], &byte, 1));
    ::_exit(0);
  }
  ::close(over[0]);
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(Fetch(server.port(), Ask("GET", "/read")).status, 200);
  ::close(over[1]);
  ::waitpid(child, nullptr, 0);
  for (const int fd : {ready[0], ready[1]}) ::close(fd);
}

}  // namespace
}  // namespace evald::http::test
