#include "orchestrator/fleet/process_end.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

namespace evald {
namespace {

using boost::asio::local::stream_protocol;
using std::chrono::milliseconds;

// A child that ends with `status` as soon as this process closes `end`.
struct Child {
  explicit Child(int status) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    pid = ::fork();
    if (pid == 0) {
      ::close(pipe[1]);
      char byte = 0;
      static_cast<void>(::read(pipe[0], &byte, 1));
      ::_exit(status);
    }
    ::close(pipe[0]);
    end = pipe[1];
  }
  pid_t pid = 0;
  int end = -1;
};

TEST(WhenEndedTest, TellsTheStatusOnceTheChildHasEnded) {
  boost::asio::io_context context;
  Child child(7);
  std::optional<int> status;
  WhenEnded(context, child.pid, [&](int told) { status = told; });
  context.run_for(milliseconds(50));
  EXPECT_FALSE(status) << "the child runs";
  ::close(child.end);
  context.run();
  ASSERT_TRUE(status);
  EXPECT_TRUE(WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 7);
  EXPECT_EQ(::waitpid(child.pid, nullptr, WNOHANG), -1) << "it is reaped";
}

TEST(WhenEndedTest, TellsOfAChildThatHasEndedAlready) {
  boost::asio::io_context context;
  Child child(0);
  ::kill(child.pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOWAIT), 0);
  std::optional<int> status;
  WhenEnded(context, child.pid, [&](int told) { status = told; });
  EXPECT_FALSE(status) << "told by a handler";
  context.run();
  ::close(child.end);
  ASSERT_TRUE(status);
  EXPECT_EQ(WTERMSIG(*status), SIGKILL);
}

// Asio gives a socket's record, with an event in it, to the descriptor of the next process.
TEST(WhenEndedTest, TheEventOfASocketClosedBeforeIsNoEnd) {
  boost::asio::io_context context;
  std::array<stream_protocol::socket, 2> here{stream_protocol::socket(context),
                                              stream_protocol::socket(context)};
  std::array<std::array<int, 2>, 2> pairs{};
  Child child(3);
  std::optional<int> status;
  std::array<char, 2> bytes{};
  bool begun = false;
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i].data()), 0);
    here[i].assign(stream_protocol(), pairs[i][0]);
    here[i].async_read_some(boost::asio::buffer(&bytes[i], 1),
                            [&, i](const boost::system::error_code& error, size_t) {
                              if (error || std::exchange(begun, true)) return;
                              here[1 - i].close();  // with an event that waits its turn
                              WhenEnded(context, child.pid, [&](int told) { status = told; });
                            });
  }
  for (const auto& pair : pairs) ASSERT_EQ(::write(pair[1], "x", 1), 1);
  boost::asio::steady_timer clock(context, milliseconds(50));
  clock.async_wait([&](const boost::system::error_code&) {
    EXPECT_FALSE(status) << "the loop goes on, and the child runs";
    ::close(child.end);
  });
  const auto guard = ::fork();  // a loop that waits for the child never gets to the clock
  if (guard == 0) {
    ::close(child.end);
    ::sleep(20);
    ::kill(child.pid, SIGKILL);
    ::_exit(0);
  }
  context.run();
  ::kill(guard, SIGKILL);
  ::waitpid(guard, nullptr, 0);
  for (const auto& pair : pairs) ::close(pair[1]);
  ASSERT_TRUE(begun && status);
  EXPECT_TRUE(WIFEXITED(*status)) << "the loop waited for the child";
  EXPECT_EQ(WEXITSTATUS(*status), 3);
}

}  // namespace
}  // namespace evald
