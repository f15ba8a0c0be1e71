#include "metrics/sandbox/zygote.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "evald/error.h"
#include "metrics/sandbox/embedded.h"
#include "metrics/sandbox/filter.h"

namespace evald::sandbox {
namespace {

constexpr int64_t kAnswerGraceUs = 30'000'000;

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

Zygote::Zygote(const SandboxOptions& options, const Interpreter& interpreter) {
  const UniqueFd guest = options.unsafe ? GuestMemfd() : UniqueFd();
  // Opened here, where /proc is the host's. Programs do not inherit it.
  const UniqueFd proc(open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (options.allow_processes && !proc) ThrowErrno("/proc", "opening", errno);

  ContainPlan plan;
  plan.namespaces = !options.unsafe;
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
  process_.emplace(plan);
  SendConfig(options, plan.user.own_ids);
  AwaitReady(options);
}

void Zygote::SendConfig(const SandboxOptions& options, bool own_ids) {
  const std::vector<sock_filter> filter =
      BuildFilter({options.allow_processes, options.allow_ctypes});
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
  if (!SendWithin(process_->control(), &config, sizeof(config), deadline) ||
      !SendWithin(process_->control(), filter.data(), filter.size() * sizeof(sock_filter),
                  deadline)) {
    process_->ThrowDead("being set up");
  }
}

void Zygote::AwaitReady(const SandboxOptions& options) {
  ZygoteReady ready = {};
  const int64_t deadline = MonotonicMicros() + kStartTimeoutUs;
  const size_t got = ReadWithin(process_->control(), &ready, sizeof(ready), deadline);
  if (got != sizeof(ready) || ready.magic != kWireMagic) process_->ThrowDead("warming up");
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
  if (!SendWithin(process_->control(), &request, sizeof(request), deadline) ||
      !SendWithin(process_->control(), source.data(), source.size(), deadline)) {
    process_->ThrowDead("taking a program");
  }
  ProgramReport report = {};
  const size_t got = ReadWithin(process_->control(), &report, sizeof(report), deadline);
  if (got != sizeof(report) || report.magic != kWireMagic) process_->ThrowDead("running a program");
  if (report.setup_errno != 0) {
    report.setup_step[kStepBytes - 1] = '\0';
    throw Infrastructure("a program's sandbox cannot be set up: " + std::string(report.setup_step) +
                             ": " + std::strerror(report.setup_errno),
                         SetupRemedy(report.setup_errno));
  }
  return report;
}

}  // namespace evald::sandbox
