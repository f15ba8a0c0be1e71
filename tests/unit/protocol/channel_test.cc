#include "protocol/channel.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "evald/error.h"
#include "protocol/parent_death.h"
#include "tests/unit/support/caught.h"
#include "tests/unit/support/temporary_folder.h"

namespace evald::protocol {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

/// The longest wait for an event that must come, on a machine with any load.
constexpr milliseconds kPatience{60'000};

struct Pair {
  UniqueFd ours;
  UniqueFd theirs;
};

Pair MakePair() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

UniqueFd Listen(const std::filesystem::path& path) {
  const SocketName name(path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, name.text().c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(::listen(fd.get(), 4), 0);
  return fd;
}

void ExpectConnects(const std::filesystem::path& path) {
  const UniqueFd listener = Listen(path);
  Channel client = Channel::Connect(path);
  Channel server(UniqueFd(::accept(listener.get(), nullptr, nullptr)));
  client.Send(Want{3});
  const auto message = server.Receive(kPatience);
  ASSERT_TRUE(message);
  EXPECT_EQ(std::get<Want>(*message).count, 3);
}

TEST(Channel, ConnectsToAShortName) {
  const TemporaryFolder folder;
  ExpectConnects(folder.path() / "agent.sock");
}

TEST(Channel, ConnectsToAPathTooLongForASocketAddress) {
  const TemporaryFolder folder;
  const auto deep = folder.path() / std::string(90, 'a') / std::string(90, 'b');
  std::filesystem::create_directories(deep);
  ExpectConnects(deep / "agent.sock");
  EXPECT_THROW(SocketName(deep / std::string(120, 'c')), Error);
  EXPECT_THROW(SocketName(folder.path() / std::string(120, 'n') / "x"), Error);
}

TEST(Channel, ASocketThatIsNotThereIsNamed) {
  const Error e = Caught([&] { Channel::Connect("/tmp/evald-no-such-socket"); });
  EXPECT_EQ(e.kind(), ErrorKind::kInfrastructure);
  EXPECT_THAT(e.what(), HasSubstr("/tmp/evald-no-such-socket"));
}

TEST(Channel, ReceiveTimesOutAndSeesTheEnd) {
  Pair pair = MakePair();
  Channel channel(std::move(pair.ours));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(channel.Receive(milliseconds(60)));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(55));
  EXPECT_FALSE(channel.closed());
  const std::string line = Encode(Want{1}) + Encode(Stop{});
  ASSERT_EQ(::send(pair.theirs.get(), line.data(), line.size(), 0),
            static_cast<ssize_t>(line.size()));
  pair.theirs.reset();
  EXPECT_TRUE(channel.Receive(kPatience));
  EXPECT_FALSE(channel.closed());
  EXPECT_TRUE(channel.Receive(kPatience));
  EXPECT_FALSE(channel.Receive(kPatience));
  EXPECT_TRUE(channel.closed());
}

TEST(Channel, AMessageThatMakesNoSenseDoesNotEndTheConnection) {
  Pair pair = MakePair();
  Channel channel(std::move(pair.ours));
  const std::string lines = "nonsense\n" + Encode(Drain{});
  ::send(pair.theirs.get(), lines.data(), lines.size(), 0);
  EXPECT_THROW(channel.Receive(kPatience), Error);
  const auto next = channel.Receive(kPatience);
  ASSERT_TRUE(next);
  EXPECT_TRUE(std::holds_alternative<Drain>(*next));
}

TEST(Channel, SendingToNobodyIsAnErrorAndNoSignal) {
  Pair pair = MakePair();
  Channel channel(std::move(pair.ours));
  pair.theirs.reset();
  EXPECT_THROW(
      {
        for (int i = 0; i < 100; ++i) channel.Send(Want{1});
      },
      Error);
}

TEST(Channel, LinesOfSeveralSendersDoNotMix) {
  constexpr int kThreads = 4, kEach = 500;
  Pair pair = MakePair();
  Channel sender(std::move(pair.ours));
  Channel receiver(std::move(pair.theirs));
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&sender, t] {
      for (int i = 0; i < kEach; ++i) {
        sender.Send(TrialFailed{t, i, true, std::string(static_cast<size_t>(i % 50) * 20, 'x')});
      }
    });
  }
  std::vector<int> next(kThreads, 0);
  for (int i = 0; i < kThreads * kEach; ++i) {
    const auto message = receiver.Receive(kPatience);
    ASSERT_TRUE(message);
    const auto& failed = std::get<TrialFailed>(*message);
    EXPECT_EQ(failed.attempt, next[static_cast<size_t>(failed.trial)]++);
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Channel, IsNotInheritedOverExec) {
  Pair pair = MakePair();
  const int fd = pair.ours.get();
  Channel channel(std::move(pair.ours));
  EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

// A child of a child: when the middle process dies, the last one must end too.
TEST(DieWithParent, AnOrphanIsKilled) {
  Pair pair = MakePair();
  const pid_t middle = ::fork();
  if (middle == 0) {
    const pid_t parent = ::getpid();
    if (::fork() == 0) {
      DieWithParent(SIGKILL, parent);
      [[maybe_unused]] const ssize_t written = ::write(pair.theirs.get(), "x", 1);
      while (true) ::pause();
    }
    while (true) ::pause();
  }
  pair.theirs.reset();
  char byte;
  ASSERT_EQ(::read(pair.ours.get(), &byte, 1), 1);
  ::kill(middle, SIGKILL);
  ::waitpid(middle, nullptr, 0);
  EXPECT_EQ(::read(pair.ours.get(), &byte, 1), 0);  // the last holder of the other end is gone
}

TEST(DieWithParent, AParentThatIsGoneAlreadyEndsTheChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    DieWithParent(SIGKILL, 1 << 22);  // no process has this id
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

}  // namespace
}  // namespace evald::protocol
