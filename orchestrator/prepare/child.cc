#include "orchestrator/prepare/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"

extern char** environ;

namespace evald {
namespace {

constexpr size_t kLineBytesMax = size_t{32} << 20;
constexpr size_t kSaidBytesMax = size_t{256} << 20;
constexpr int kPollMs = 100;
// From closing its output, or from SIGKILL, to its end
constexpr int64_t kCollectMicros = 2'000'000;
constexpr useconds_t kWaitMicros = 2'000;

// Whether a variable is passed on: those that say how to run, never a key or token.
bool IsPassedOn(std::string_view variable) {
  static constexpr std::string_view kBegins[] = {"PATH=",         "HOME=",
                                                 "TMPDIR=",       "TZ=",
                                                 "LANG=",         "LC_",
                                                 "LD_",           "MALLOC_",
                                                 "GLIBC_",        "ASAN_OPTIONS=",
                                                 "TSAN_OPTIONS=", "UBSAN_OPTIONS=",
                                                 "LSAN_OPTIONS=", "EVALD_FAIL_POINT",
                                                 "EVALD_DISK_",   "EVALD_CUT_"};
  return std::any_of(std::begin(kBegins), std::end(kBegins),
                     [&](std::string_view begin) { return variable.starts_with(begin); });
}

// The process, and our end of its standard input and output.
class Child {
 public:
  Child(const std::filesystem::path& program, double grace_seconds);
  ~Child() { End(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int socket() const { return socket_.get(); }
  // Sends SIGTERM to the process, then SIGKILL.
  void End();
  // Waits until the process has ended, at most until `until_us`.
  bool Collect(int64_t until_us);
  int wait_status() const { return status_; }

 private:
  double grace_seconds_;
  UniqueFd socket_;
  pid_t pid_ = -1;
  int status_ = 0;
};

Child::Child(const std::filesystem::path& program, double grace_seconds)
    : grace_seconds_(grace_seconds) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    ThrowErrno(program, "socketpair", errno);
  socket_.reset(ends[0]);
  const UniqueFd theirs(ends[1]);
  std::string name = program.string(), parent = std::to_string(::getpid()),
              level = log::LevelName();
  char* const argv[] = {name.data(), parent.data(), level.data(), nullptr};
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (IsPassedOn(*variable)) environment.push_back(*variable);
  }
  environment.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  const int failure =
      posix_spawn(&pid_, name.c_str(), &actions, &attributes, argv, environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    pid_ = -1;
    ThrowErrno(program, "starting", failure);
  }
}

bool Child::Collect(int64_t until_us) {
  while (pid_ > 0) {
    const pid_t ended = ::waitpid(pid_, &status_, WNOHANG);
    if (ended == pid_ || (ended < 0 && errno != EINTR)) pid_ = -1;
    if (pid_ < 0) break;
    if (MonotonicMicros() >= until_us) return false;
    ::usleep(kWaitMicros);
  }
  return true;
}

void Child::End() {
  if (pid_ <= 0) return;
  if (grace_seconds_ > 0) {
    ::kill(pid_, SIGTERM);
    if (Collect(MonotonicMicros() + static_cast<int64_t>(grace_seconds_ * 1e6))) return;
  }
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  while (!Collect(MonotonicMicros() + kCollectMicros)) log::Error("process {} does not end", pid_);
}

// Writes the input while it reads the output, so that neither waits for the other.
class Talk {
 public:
  Talk(const ChildOrder& order, const std::function<void(std::string_view)>& on_line)
      : order_(order),
        on_line_(on_line),
        until_us_(MonotonicMicros() + static_cast<int64_t>(order.seconds * 1e6)) {}

  // Talks until the process closes its output or must be ended.
  ChildEnd::Why With(int socket) {
    while (true) {
      if (order_.cancelled && order_.cancelled()) return ChildEnd::Why::kCancelled;
      if (MonotonicMicros() >= until_us_) return ChildEnd::Why::kTimeout;
      pollfd ready{socket,
                   static_cast<short>(POLLIN | (written_ < order_.input.size() ? POLLOUT : 0)), 0};
      if (::poll(&ready, 1, kPollMs) <= 0) continue;
      if ((ready.revents & POLLOUT) != 0) Write(socket);
      if ((ready.revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      if (!Read(socket)) return ChildEnd::Why::kEnded;
      if (line_.size() > kLineBytesMax || said_ > kSaidBytesMax) return ChildEnd::Why::kTooMuchSaid;
    }
  }

 private:
  void Write(int socket) {
    const ssize_t sent = ::send(socket, order_.input.data() + written_,
                                order_.input.size() - written_, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) written_ += static_cast<size_t>(sent);
    if (written_ == order_.input.size()) ::shutdown(socket, SHUT_WR);
  }

  bool Read(int socket) {
    char piece[64 * 1024];
    const ssize_t got = ::recv(socket, piece, sizeof piece, MSG_DONTWAIT);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    if (got == 0) return false;
    said_ += static_cast<size_t>(got);
    std::string_view rest(piece, static_cast<size_t>(got));
    for (size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      line_ += rest.substr(0, end);
      rest.remove_prefix(end + 1);
      on_line_(line_);
      line_.clear();
    }
    line_ += rest;
    return true;
  }

  const ChildOrder& order_;
  const std::function<void(std::string_view)>& on_line_;
  int64_t until_us_;
  size_t written_ = 0;
  std::string line_;
  size_t said_ = 0;
};

}  // namespace

ChildEnd RunChild(const ChildOrder& order, const std::function<void(std::string_view)>& on_line) {
  Child child(order.program, order.grace_seconds);
  ChildEnd end;
  end.why = Talk(order, on_line).With(child.socket());
  if (end.why != ChildEnd::Why::kEnded) {
    child.End();
    return end;
  }
  if (!child.Collect(MonotonicMicros() + kCollectMicros)) child.End();
  const int status = child.wait_status();
  if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
  if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
  return end;
}

}  // namespace evald
