// Servers on this machine's ports, of this user and of another one.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string_view>

#include "http_client/client.h"
#include "scripted_server.h"

namespace evald::http_client::test {
namespace {

constexpr uid_t kNobody = 65534;
constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

// A process of `uid` that listens on a port, and answers if `answers`.
class OtherProcess {
 public:
  OtherProcess(uid_t uid, bool answers) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) Serve(uid, answers, pipe[1]);
    EXPECT_EQ(::read(pipe[0], &port_, sizeof port_), static_cast<ssize_t>(sizeof port_));
    ::close(pipe[0]);
    ::close(pipe[1]);
  }
  ~OtherProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  Response Ask(std::chrono::milliseconds limit) const {
    Request request;
    request.url = "http://127.0.0.1:" + std::to_string(port_) + "/";
    request.own_server = true;
    request.limits.total = limit;
    return Client().Perform(request);
  }

 private:
  [[noreturn]] static void Serve(uid_t uid, bool answers, int told) {
    if (uid != ::geteuid() && ::setuid(uid) != 0) ::_exit(1);
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    ::bind(listener, reinterpret_cast<sockaddr*>(&address), bytes);
    ::listen(listener, 8);
    ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes);
    const uint16_t port = ntohs(address.sin_port);
    static_cast<void>(::write(told, &port, sizeof port));
    while (answers && Answer(listener)) {
    }
    ::pause();
    ::_exit(0);
  }

  static bool Answer(int listener) {
    const int connection = ::accept(listener, nullptr, nullptr);
    char request[4096];
    static_cast<void>(::read(connection, request, sizeof request));
    static_cast<void>(::write(connection, kAnswer.data(), kAnswer.size()));
    return ::close(connection) == 0;
  }

  pid_t pid_ = 0;
  uint16_t port_ = 0;
};

TEST(OwnServerTest, AServerOfThisUserIsAsked) {
  const OtherProcess server(::geteuid(), true);
  for (int call = 0; call < 3; ++call) EXPECT_EQ(server.Ask(kPatience).body, "hi");
}

TEST(OwnServerTest, AServerOfThisUserThatAcceptsLateIsWaitedFor) {
  const OtherProcess server(::geteuid(), false);
  EXPECT_EQ(server.Ask(std::chrono::milliseconds(300)).outcome, Outcome::kTimedOut);
}

TEST(OwnServerTest, AnotherUsersServerGetsNoRequest) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  for (const bool answers : {true, false}) {
    const OtherProcess server(kNobody, answers);
    const Response response = server.Ask(kPatience);
    EXPECT_EQ(response.outcome, Outcome::kUntrusted);
    EXPECT_EQ(response.body, "");
    EXPECT_THAT(response.error, testing::HasSubstr("uid 65534"));
  }
}

}  // namespace
}  // namespace evald::http_client::test
