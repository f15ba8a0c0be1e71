#include "worker/command/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <initializer_list>
#include <iterator>

namespace evald::command {
namespace {

constexpr int kReapMilliseconds = 500;     // between two looks for processes that ended unseen
constexpr int kKillPauseMilliseconds = 5;  // between two rounds of killing
constexpr int64_t kKillMilliseconds = 30'000;

int64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000} + now.tv_nsec / 1'000'000;
}

void CloseAllBut(std::initializer_list<int> kept) {
  int sorted[8] = {};
  const size_t count = std::min(kept.size(), std::size(sorted));
  std::copy_n(kept.begin(), count, sorted);
  std::sort(sorted, sorted + count);
  unsigned next = 3;
  for (size_t i = 0; i < count; ++i) {
    const auto fd = static_cast<unsigned>(sorted[i]);
    if (fd > next) ::syscall(SYS_close_range, next, fd - 1, 0u);
    next = std::max(next, fd + 1);
  }
  ::syscall(SYS_close_range, next, ~0u, 0u);
}

void Report(int fd, ProgramEnd::Why why, int value) {
  const ProgramEnd end{why, value};
  [[maybe_unused]] const ssize_t written = ::write(fd, &end, sizeof end);
}

[[noreturn]] void RunProgram(const GuardianOrder& order) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setsid();
  ::dup2(order.output, 1);
  ::dup2(order.output, 2);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
  if (::chdir(order.folder) == 0) ::execve(order.program, order.words, order.environment);
  Report(order.report, ProgramEnd::Why::kNotStarted, errno);
  ::_exit(127);
}

// Kills this process's children: those of its own and those that lost their parents.
void KillChildren() {
  char list[4096];
  const int fd = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  const ssize_t size = fd < 0 ? 0 : ::read(fd, list, sizeof list);
  if (fd >= 0) ::close(fd);
  pid_t child = 0;
  for (ssize_t i = 0; i < size; ++i) {
    if (list[i] >= '0' && list[i] <= '9') {
      child = child * 10 + (list[i] - '0');
    } else if (child > 0) {
      ::kill(child, SIGKILL);
      child = 0;
    }
  }
}

class Guardian {
 public:
  explicit Guardian(const GuardianOrder& order)
      : order_(order), deadline_(Now() + order.time_limit_ms) {}

  [[noreturn]] void Run() {
    const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::dup2(nothing, 0);
    program_ = ::fork();
    if (program_ < 0) {
      Report(order_.report, ProgramEnd::Why::kNotStarted, errno);
      ::_exit(0);
    }
    if (program_ == 0) RunProgram(order_);
    ::close(order_.output);
    pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, program_, 0));
    const bool in_time = Watch();
    if (!ended_) EndProgram();
    KillAll();
    Tell(in_time);
    ::_exit(0);
  }

 private:
  // Until the program ends, its time is over or the worker is gone. Returns false for the second.
  bool Watch() {
    while (true) {
      pollfd entries[2] = {{order_.life, POLLIN, 0}, {pidfd_, POLLIN, 0}};
      const int64_t left = deadline_ - Now();
      ::poll(entries, 2, static_cast<int>(std::clamp<int64_t>(left, 0, kReapMilliseconds)));
      while (Reap()) {
      }
      if (ended_ || entries[0].revents != 0) return true;
      if (left <= 0) return false;
    }
  }

  // Whether a child had ended.
  bool Reap() {
    int status = 0;
    const pid_t child = ::waitpid(-1, &status, WNOHANG);
    has_children_ = child >= 0 || errno != ECHILD;
    if (child <= 0) return false;
    if (child == program_) {
      ended_ = true;
      status_ = status;
    }
    return true;
  }

  void EndProgram() {
    ::kill(-program_, SIGTERM);
    ::kill(program_, SIGTERM);  // if it has no session of its own yet
    const int64_t until = Now() + order_.grace_ms;
    while (!ended_ && Now() < until) {
      pollfd entry{pidfd_, POLLIN, 0};
      ::poll(&entry, 1, kReapMilliseconds / 10);
      while (Reap()) {
      }
    }
  }

  // Killed processes leave their children to this one, so that in the end there are none.
  void KillAll() {
    ::kill(-program_, SIGKILL);
    const int64_t until = Now() + kKillMilliseconds;
    while (Now() < until) {
      KillChildren();
      while (Reap()) {
      }
      if (!has_children_) return;
      const timespec pause{0, kKillPauseMilliseconds * 1'000'000};
      ::nanosleep(&pause, nullptr);
    }
  }

  void Tell(bool in_time) const {
    if (!in_time) return Report(order_.report, ProgramEnd::Why::kTimeLimit, 0);
    if (WIFSIGNALED(status_))
      return Report(order_.report, ProgramEnd::Why::kSignalled, WTERMSIG(status_));
    Report(order_.report, ProgramEnd::Why::kExited, WEXITSTATUS(status_));
  }

  const GuardianOrder& order_;
  int64_t deadline_;
  pid_t program_ = -1;
  int pidfd_ = -1;
  bool has_children_ = true;
  bool ended_ = false;  ///< the program, with
  int status_ = 0;
};

}  // namespace

void RunGuardian(const GuardianOrder& order) {
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  CloseAllBut({order.life, order.report, order.output});
  Guardian(order).Run();
}

}  // namespace evald::command
