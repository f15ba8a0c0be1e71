#include "metrics/sandbox/contained.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "metrics/sandbox/wire.h"

namespace evald::sandbox {
namespace {

struct Pair {
  UniqueFd first;
  UniqueFd second;
};

Pair SocketPair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    ThrowErrno("socketpair", "opening", errno);
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Pair Pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) ThrowErrno("pipe", "opening", errno);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Error Infrastructure(const std::string& message, const std::string& remedy) {
  return Error(ErrorKind::kInfrastructure, message, remedy);
}

bool AwaitReadable(int fd, int64_t deadline_us) {
  for (;;) {
    const int64_t left_us = deadline_us - MonotonicMicros();
    pollfd watched = {fd, POLLIN, 0};
    const int ready = poll(&watched, 1, left_us <= 0 ? 0 : static_cast<int>(left_us / 1000) + 1);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

size_t ReadWithin(int fd, void* data, size_t bytes, int64_t deadline_us) {
  size_t used = 0;
  while (used < bytes && AwaitReadable(fd, deadline_us)) {
    const ssize_t got = read(fd, static_cast<char*>(data) + used, bytes - used);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    used += static_cast<size_t>(got);
  }
  return used;
}

bool SendWithin(int fd, const void* data, size_t bytes, int64_t deadline_us) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EAGAIN) {
      pollfd watched = {fd, POLLOUT, 0};
      if (MonotonicMicros() > deadline_us || poll(&watched, 1, 1000) < 0) return false;
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

std::string SetupRemedy(int error_number) {
  const std::string otherwise =
      "or run code without isolation, knowingly, with metrics.sandbox.unsafe: true";
  switch (error_number) {
    case EPERM:
    case EACCES:
      return "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1; "
             "kernel.apparmor_restrict_unprivileged_userns=0; not inside a chroot; in Docker "
             "--security-opt seccomp=unconfined --security-opt apparmor=unconfined), " +
             otherwise;
    case ENOSPC:
    case EUSERS:
      return "raise the sysctl user.max_user_namespaces and its kin (pid, mnt, net, ipc, uts), " +
             otherwise;
    case EINVAL:
    case ENOSYS:
      return "the sandbox needs Linux 5.14 with user, pid, mount, net, ipc and uts namespaces, " +
             otherwise;
    case ENOENT:
      return "check that metrics.sandbox.python is an installed interpreter";
    case EAGAIN:
    case ENOMEM:
      return "free memory or processes on this host";
    default:
      return "see 'evald doctor', " + otherwise;
  }
}

Contained::Contained(ContainPlan plan) {
  Pair control = SocketPair();
  Pair errors = Pipe();
  Pair report = Pipe();
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) ThrowErrno("/dev/null", "opening", errno);
  plan.control = control.second.get();
  plan.null = null.get();
  plan.errors = errors.second.get();
  plan.report = report.second.get();
  pid_ = StartContained(plan);
  if (pid_ < 0) {
    const int error_number = errno;
    throw Infrastructure(
        "the sandbox cannot be set up: clone(new user, pid, mount, net, ipc and uts "
        "namespaces): " +
            std::string(std::strerror(error_number)),
        SetupRemedy(error_number));
  }
  control_ = std::move(control.first);
  errors_ = std::move(errors.first);
  try {
    control.second.reset();
    errors.second.reset();
    report.second.reset();
    if (plan.namespaces) WriteIdMaps(pid_, plan.user);
    if (!SendWithin(control_.get(), "g", 1, MonotonicMicros() + kStartTimeoutUs))
      ThrowDead("being set up");
    AwaitExec(report.first.get());
  } catch (...) {
    Stop(0);
    throw;
  }
}

Contained::~Contained() { Stop(2000); }

void Contained::AwaitExec(int report) {
  SetupFailure failure = {};
  const int64_t deadline = MonotonicMicros() + kStartTimeoutUs;
  const size_t got = ReadWithin(report, &failure, sizeof(failure), deadline);
  if (got == 0) return;
  failure.step[sizeof(failure.step) - 1] = '\0';
  throw Infrastructure("the sandbox cannot be set up: " + std::string(failure.step) + ": " +
                           std::strerror(failure.error_number),
                       SetupRemedy(failure.error_number));
}

void Contained::ThrowDead(const std::string& doing) {
  char text[2000];
  const int64_t soon = MonotonicMicros() + 200'000;
  const size_t got = ReadWithin(errors_.get(), text, sizeof(text), soon);
  std::string last(Trim(std::string_view(text, got)));
  last = last.substr(last.rfind('\n') == std::string::npos ? 0 : last.rfind('\n') + 1);
  throw Infrastructure("the sandbox's interpreter ended or hung while " + doing +
                           (last.empty() ? "" : ": " + ReplaceInvalidUtf8(last)),
                       "see 'evald doctor'");
}

int Contained::Stop(int grace_ms) {
  if (pid_ < 0) return -1;
  control_.reset();
  int status = -1;
  for (int waited_ms = 0; pid_ > 0 && waited_ms < grace_ms; ++waited_ms) {
    const pid_t reaped = waitpid(pid_, &status, WNOHANG);
    if (reaped == pid_ || (reaped < 0 && errno == ECHILD)) pid_ = -1;
    if (pid_ > 0) usleep(1000);
  }
  if (pid_ < 0) return status;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

}  // namespace evald::sandbox
