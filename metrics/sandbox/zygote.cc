#include "metrics/sandbox/zygote.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/contain.h"
#include "metrics/sandbox/embedded.h"
#include "metrics/sandbox/filter.h"

namespace evald::sandbox {
namespace {

constexpr int64_t kStartTimeoutUs = 60'000'000;
constexpr int64_t kAnswerGraceUs = 30'000'000;

Error Infrastructure(const std::string& message, const std::string& remedy = "") {
  return Error(ErrorKind::kInfrastructure, message, remedy);
}

/// Waits until `fd` can be read. False at the deadline.
bool AwaitReadable(int fd, int64_t deadline_us) {
  for (;;) {
    const int64_t left_us = deadline_us - MonotonicMicros();
    pollfd watched = {fd, POLLIN, 0};
    const int ready = poll(&watched, 1, left_us <= 0 ? 0 : static_cast<int>(left_us / 1000) + 1);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

/// Reads up to `bytes`. Returns fewer at the end of the stream or at the deadline.
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

/// False if the zygote is gone, or takes nothing until the deadline.
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

UniqueFd GuestMemfd() {
  UniqueFd file(memfd_create("evald-guest", MFD_CLOEXEC));
  const std::string_view library = GuestLibrary();
  if (!file ||
      write(file.get(), library.data(), library.size()) != static_cast<ssize_t>(library.size())) {
    ThrowErrno("memfd", "writing the guest library to", errno);
  }
  return file;
}

std::vector<std::string> Arguments(const SandboxOptions& options, const Interpreter& interpreter) {
  const std::string guest =
      options.unsafe ? "/proc/self/fd/" + std::to_string(kGuestFd) : std::string(kGuestPath);
  std::vector<std::string> arguments = {interpreter.executable, "-S", "-s", "-B", "-c"};
  arguments.emplace_back(ZygoteScript());
  arguments.push_back(guest);
  arguments.push_back(std::to_string(options.output_bytes));
  arguments.insert(arguments.end(), interpreter.packages.begin(), interpreter.packages.end());
  return arguments;
}

}  // namespace

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

Zygote::Zygote(const SandboxOptions& options, const Interpreter& interpreter) {
  try {
    Start(options, interpreter);
  } catch (...) {
    Stop();
    throw;
  }
}

Zygote::~Zygote() { Stop(); }

void Zygote::Start(const SandboxOptions& options, const Interpreter& interpreter) {
  Pair control = SocketPair();
  Pair errors = Pipe();
  Pair report = Pipe();
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) ThrowErrno("/dev/null", "opening", errno);
  const UniqueFd guest = options.unsafe ? GuestMemfd() : UniqueFd();
  // Opened here, where /proc is the host's. Programs do not inherit it.
  const UniqueFd proc(open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (options.allow_processes && !proc) ThrowErrno("/proc", "opening", errno);

  ContainPlan plan;
  plan.namespaces = !options.unsafe;
  plan.control = control.second.get();
  plan.null = null.get();
  plan.errors = errors.second.get();
  plan.report = report.second.get();
  plan.guest = guest.get();
  plan.proc = proc.get();
  plan.arguments = Arguments(options, interpreter);
  // One heap for all threads. A heap for each would reserve 64 to 128 MiB of the memory limit's
  // address space, at random moments.
  plan.environment = {"PYTHONHASHSEED=0", "OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1",
                      "MALLOC_ARENA_MAX=1"};
  if (plan.namespaces) {
    plan.user = ChooseUser();
    plan.root = PlanRoot(interpreter);
    plan.root.guest_library = GuestLibrary();
  }

  pid_ = StartContained(plan);
  if (pid_ < 0) {
    const int error_number = errno;
    throw Infrastructure(
        "the sandbox cannot be set up: clone(new user, pid, mount, net, ipc and uts "
        "namespaces): " +
            std::string(std::strerror(error_number)),
        SetupRemedy(error_number));
  }
  control.second.reset();
  errors.second.reset();
  report.second.reset();
  control_ = std::move(control.first);
  errors_ = std::move(errors.first);
  if (plan.namespaces) WriteIdMaps(pid_, plan.user);
  const int64_t deadline = MonotonicMicros() + kStartTimeoutUs;
  if (!SendWithin(control_.get(), "g", 1, deadline)) ThrowDead("being set up");
  AwaitExec(report.first.get());
  SendConfig(options, plan.user.own_ids);
  AwaitReady(options);
}

void Zygote::AwaitExec(int report) {
  SetupFailure failure = {};
  const int64_t deadline = MonotonicMicros() + kStartTimeoutUs;
  const size_t got = ReadWithin(report, &failure, sizeof(failure), deadline);
  if (got == 0) return;
  failure.step[sizeof(failure.step) - 1] = '\0';
  throw Infrastructure("the sandbox cannot be set up: " + std::string(failure.step) + ": " +
                           std::strerror(failure.error_number),
                       SetupRemedy(failure.error_number));
}

void Zygote::SendConfig(const SandboxOptions& options, bool own_ids) {
  const std::vector<sock_filter> filter =
      BuildFilter(options.allow_processes, options.allow_ctypes);
  ZygoteConfig config = {};
  config.magic = kWireMagic;
  config.namespaces = options.unsafe ? 0 : 1;
  config.filter_required = options.unsafe ? 0 : 1;
  config.program_uid = !options.unsafe && own_ids ? kProgramUid : 0;
  // If all share one id, the zygote and the first process of the pid namespace count, too.
  if (!options.unsafe) {
    config.task_limit = static_cast<uint32_t>(options.processes) + (own_ids ? 0 : 2);
  }
  config.allow_processes = options.allow_processes ? 1 : 0;
  config.allow_ctypes = options.allow_ctypes ? 1 : 0;
  config.cpu_limit_us = static_cast<uint64_t>(options.cpu_seconds * 1e6);
  config.memory_bytes = options.memory_bytes;
  config.tmpfs_bytes = options.tmpfs_bytes;
  config.filter_instructions = static_cast<uint32_t>(filter.size());
  const int64_t deadline = MonotonicMicros() + kStartTimeoutUs;
  if (!SendWithin(control_.get(), &config, sizeof(config), deadline) ||
      !SendWithin(control_.get(), filter.data(), filter.size() * sizeof(sock_filter), deadline)) {
    ThrowDead("being set up");
  }
}

void Zygote::AwaitReady(const SandboxOptions& options) {
  ZygoteReady ready = {};
  const int64_t deadline = MonotonicMicros() + kStartTimeoutUs;
  const size_t got = ReadWithin(control_.get(), &ready, sizeof(ready), deadline);
  if (got != sizeof(ready) || ready.magic != kWireMagic) ThrowDead("warming up");
  seccomp_ = ready.seccomp != 0;
  if (options.allow_processes && ready.sees_processes == 0) {
    throw Infrastructure(
        "metrics.sandbox.allow_processes: /proc does not show the sandbox its own processes, "
        "expected "
        "/proc/PID/task/TID/children, by which their CPU time is counted",
        "use a kernel with CONFIG_PROC_CHILDREN and a /proc without the mount option hidepid, or "
        "set "
        "metrics.sandbox.allow_processes: false");
  }
}

ProgramReport Zygote::Run(const ProgramRequest& request, const std::string& source) {
  const int64_t longest_us = static_cast<int64_t>(request.wall_limit_us) * request.wall_windows;
  const int64_t deadline = MonotonicMicros() + longest_us + kAnswerGraceUs;
  if (!SendWithin(control_.get(), &request, sizeof(request), deadline) ||
      !SendWithin(control_.get(), source.data(), source.size(), deadline)) {
    ThrowDead("taking a program");
  }
  ProgramReport report = {};
  const size_t got = ReadWithin(control_.get(), &report, sizeof(report), deadline);
  if (got != sizeof(report) || report.magic != kWireMagic) ThrowDead("running a program");
  if (report.setup_errno != 0) {
    report.setup_step[kStepBytes - 1] = '\0';
    throw Infrastructure("a program's sandbox cannot be set up: " + std::string(report.setup_step) +
                             ": " + std::strerror(report.setup_errno),
                         SetupRemedy(report.setup_errno));
  }
  return report;
}

void Zygote::ThrowDead(const std::string& doing) {
  char text[2000];
  const int64_t soon = MonotonicMicros() + 200'000;
  const size_t got = ReadWithin(errors_.get(), text, sizeof(text), soon);
  std::string last(Trim(std::string_view(text, got)));
  last = last.substr(last.rfind('\n') == std::string::npos ? 0 : last.rfind('\n') + 1);
  throw Infrastructure("the sandbox's interpreter ended or hung while " + doing +
                           (last.empty() ? "" : ": " + ReplaceInvalidUtf8(last)),
                       "see 'evald doctor'");
}

/// Ends the zygote. As the first process of its pid namespace it ends everything in it. Without
/// namespaces it gets time to do so itself.
void Zygote::Stop() {
  if (pid_ < 0) return;
  control_.reset();
  for (int waited_ms = 0; waited_ms < 2000; ++waited_ms) {
    const pid_t reaped = waitpid(pid_, nullptr, WNOHANG);
    if (reaped == pid_ || (reaped < 0 && errno == ECHILD)) {
      pid_ = -1;
      return;
    }
    usleep(1000);
  }
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

}  // namespace evald::sandbox
