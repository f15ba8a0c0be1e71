#include "worker/server/server_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/program.h"
#include "base/text.h"

extern char** environ;

namespace evald::server {
namespace {

constexpr size_t kTailBytes = 64 << 10;
constexpr int kGraceMilliseconds = 5000;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Pipe MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) ThrowErrno("pipe", "create", errno);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// Between fork and exec, and in the guardian, only system calls are allowed: the process that
// forked has other threads.

[[noreturn]] void RunServer(char* const* command, char* const* environment, int log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvpe(command[0], command, environment);
  constexpr char kMessage[] = "cannot execute the command\n";
  [[maybe_unused]] const ssize_t written = ::write(2, kMessage, sizeof kMessage - 1);
  ::_exit(127);
}

[[noreturn]] void EndGroup(pid_t server, int pidfd) {
  ::kill(-server, SIGTERM);
  pollfd entry{pidfd, POLLIN, 0};
  if (pidfd >= 0) ::poll(&entry, 1, kGraceMilliseconds);
  ::kill(-server, SIGKILL);
  int status = 0;
  ::waitpid(server, &status, 0);
  ::_exit(0);
}

// The guardian keeps only these two of the worker's descriptors: not its socket, not its leases.
void CloseAllBut(int a, int b) {
  const unsigned low = static_cast<unsigned>(a < b ? a : b);
  const unsigned high = static_cast<unsigned>(a < b ? b : a);
  if (low > 3) ::syscall(SYS_close_range, 3u, low - 1, 0u);
  if (high > low + 1) ::syscall(SYS_close_range, low + 1, high - 1, 0u);
  ::syscall(SYS_close_range, high + 1, ~0u, 0u);
}

// Watches the server, and the pipe whose other end the worker holds. Exits as the server ended.
[[noreturn]] void RunGuardian(char* const* command, char* const* environment, int life, int log) {
  ::setsid();
  CloseAllBut(life, log);
  const pid_t server = ::fork();
  if (server < 0) ::_exit(127);
  if (server == 0) RunServer(command, environment, log);
  ::setpgid(server, server);
  ::close(log);
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, server, 0));
  pollfd entries[2] = {{life, POLLIN, 0}, {pidfd, POLLIN, 0}};
  while (true) {
    ::poll(entries, 2, pidfd < 0 ? 200 : -1);  // a negative descriptor is passed over
    if (entries[0].revents != 0) EndGroup(server, pidfd);
    int status = 0;
    if (::waitpid(server, &status, WNOHANG) != server) continue;
    ::kill(-server, SIGKILL);  // processes that the server left behind
    if (WIFSIGNALED(status)) ::_exit(128 + WTERMSIG(status));
    ::_exit(WEXITSTATUS(status));
  }
}

std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) merged.push_back(text);
  }
  for (const auto& [name, value] : added) merged.push_back(name + "=" + value);
  return merged;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& command,
                             const std::map<std::string, std::string>& environment)
    : name_(command.at(0)) {
  Pipe life = MakePipe();
  Pipe log = MakePipe();
  std::vector<std::string> words = command;
  std::vector<std::string> variables = MergedEnvironment(environment);
  const std::vector<char*> arguments = ExecPointers(&words);
  const std::vector<char*> merged = ExecPointers(&variables);
  guardian_ = ::fork();
  if (guardian_ < 0) ThrowErrno(name_, "fork", errno);
  if (guardian_ == 0) {
    ::close(life.write.get());
    RunGuardian(arguments.data(), merged.data(), life.read.get(), log.write.get());
  }
  life_ = std::move(life.write);
  log_ = std::move(log.read);
  reader_ = std::thread([this] {
    ReadLog();
    log_read_ = true;
  });
}

ServerProcess::~ServerProcess() {
  life_.reset();
  if (guardian_ > 0) ::waitpid(guardian_, nullptr, 0);
  stopping_ = true;
  reader_.join();
}

bool ServerProcess::running() {
  if (guardian_ < 0) return false;
  int status = 0;
  if (::waitpid(guardian_, &status, WNOHANG) != guardian_) return true;
  guardian_ = -1;
  // The group is dead, so the pipe ends; the wait has an end in case a process left the group.
  for (int i = 0; i < 100 && !log_read_; ++i) ::usleep(10'000);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ending_ = code > 128 ? fmt::format("signal {}", code - 128) : fmt::format("exit status {}", code);
  return false;
}

std::string ServerProcess::LogTail() const {
  const std::lock_guard lock(mutex_);
  return ReplaceInvalidUtf8(tail_);
}

void ServerProcess::ReadLog() {
  char bytes[4096];
  while (true) {
    pollfd entry{log_.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, 200);
    if (ready <= 0) {
      if (stopping_) return;
      continue;
    }
    const ssize_t got = ::read(log_.get(), bytes, sizeof bytes);
    if (got == 0 || (got < 0 && errno != EINTR)) return;
    if (got < 0) continue;
    [[maybe_unused]] const ssize_t shown = ::write(2, bytes, static_cast<size_t>(got));
    const std::lock_guard lock(mutex_);
    tail_.append(bytes, static_cast<size_t>(got));
    if (tail_.size() > kTailBytes) tail_.erase(0, tail_.size() - kTailBytes);
  }
}

int FreePort() {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (!socket || ::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    ThrowErrno("127.0.0.1", "find a free port", errno);
  }
  return ::ntohs(address.sin_port);
}

}  // namespace evald::server
