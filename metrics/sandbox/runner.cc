#include <sys/random.h>

#include <cerrno>
#include <optional>

#include "base/file.h"
#include "base/log.h"
#include "evald/error.h"
#include "metrics/sandbox/host_turn.h"
#include "metrics/sandbox/interpreter.h"
#include "metrics/sandbox/judge.h"
#include "metrics/sandbox/oom_kills.h"
#include "metrics/sandbox/program_runner.h"
#include "metrics/sandbox/sandbox.h"
#include "metrics/sandbox/zygote.h"

namespace evald {
namespace {

using sandbox::HostTurn;
using sandbox::ProgramReport;
using sandbox::ProgramRequest;
using sandbox::TurnFolder;
using sandbox::Zygote;

class ZygoteRunner : public CodeRunner {
 public:
  explicit ZygoteRunner(const SandboxOptions& options)
      : options_(options), interpreter_(sandbox::FindInterpreter(options.python)) {
    zygote_.emplace(options_, interpreter_);
    seccomp_ = zygote_->seccomp();
  }

  ProgramOutcome Run(const std::string& source) override {
    if (source.size() > sandbox::kSourceBytesMax) {
      return {ProgramStatus::kFailed, "failed: the program is longer than 64 MiB", 0};
    }
    ProgramRequest request = MakeRequest(source);
    ProgramReport report = RunInTurn(HostTurn::Shared(turns_, LongestUs(request)), request, source);
    if (sandbox::NeedsSecondRun(report, options_)) report = RunAlone(request, source);
    return sandbox::Judge(report, request, options_);
  }

  std::unique_ptr<BuiltProgram> Build(const ProgramSources& sources,
                                      ProgramOutcome* outcome) override {
    if (!programs_) programs_.emplace(options_, interpreter_, turns_);
    return programs_->Build(sources, outcome);
  }

  Json Isolation() const override {
    Json limits = {{"cpu_seconds", options_.cpu_seconds},
                   {"wall_seconds", options_.wall_seconds},
                   {"memory_bytes", options_.memory_bytes},
                   {"tmpfs_bytes", options_.tmpfs_bytes},
                   {"processes", options_.processes}};
    Json isolation = {{"isolation", options_.unsafe ? "none" : "namespaces"},
                      {"seccomp", seccomp_},
                      {"python", interpreter_.version},
                      {"limits", std::move(limits)}};
    if (options_.unsafe) {
      isolation["unsafe"] = true;
    } else {
      isolation["namespaces"] = {"user", "pid", "mount", "net", "ipc", "uts"};
    }
    if (options_.allow_processes) isolation["allow_processes"] = true;
    if (options_.allow_ctypes) isolation["allow_ctypes"] = true;
    if (!turns_.usable()) isolation["alone"] = false;
    return isolation;
  }

 private:
  ProgramRequest MakeRequest(const std::string& source) const {
    ProgramRequest request = {};
    request.magic = sandbox::kWireMagic;
    request.source_bytes = source.size();
    request.wall_limit_us = static_cast<uint64_t>(options_.wall_seconds * 1e6);
    request.wall_windows = sandbox::kWallWindowsMax;
    if (getrandom(request.nonce, sizeof(request.nonce), 0) !=
        static_cast<ssize_t>(sizeof(request.nonce))) {
      ThrowErrno("getrandom", "drawing a nonce with", errno);
    }
    return request;
  }

  /// The longest time of a turn: the program's wall limits, the zygote's start, and what
  /// Zygote::Run adds to them; all twice, since a failing zygote is replaced.
  static int64_t LongestUs(const ProgramRequest& request) {
    constexpr int64_t kAroundUs = 90'000'000;
    return 2 * (static_cast<int64_t>(request.wall_limit_us) * request.wall_windows + kAroundUs);
  }

  /// Runs the program a second time. Throws Error(kInfrastructure) if the kernel ran out of memory.
  ProgramReport RunAlone(ProgramRequest& request, const std::string& source) {
    request.wall_windows = 1;  // no program of this user slows it now
    const HostTurn turn = HostTurn::Alone(turns_, LongestUs(request));
    const uint64_t before = sandbox::CountOomKills();
    const ProgramReport report = RunInTurn(turn, request, source);
    sandbox::CheckSecondRun(report, options_, sandbox::CountOomKills() - before);
    return report;
  }

  /// Holds the turn until the program has ended. A failing zygote is replaced once.
  ProgramReport RunInTurn(const HostTurn&, const ProgramRequest& request,
                          const std::string& source) {
    for (bool again = false;; again = true) {
      try {
        if (!zygote_) zygote_.emplace(options_, interpreter_);
        return zygote_->Run(request, source);
      } catch (const Error& error) {
        zygote_.reset();
        if (again) throw;
        log::Warn("{}; starting the sandbox anew", error.what());
      }
    }
  }

  const SandboxOptions options_;
  const sandbox::Interpreter& interpreter_;
  const TurnFolder turns_{sandbox::DefaultTurnFolders()};
  std::optional<Zygote> zygote_;
  std::optional<sandbox::ProgramRunner> programs_;
  bool seccomp_ = false;
};

void CheckOptions(const SandboxOptions& options) {
  const bool sensible = options.cpu_seconds > 0 && options.cpu_seconds <= 86400 &&
                        options.wall_seconds > 0 && options.wall_seconds <= 86400 &&
                        options.processes > 0 && options.processes <= 4096 &&
                        options.memory_bytes >= (64ull << 20) && options.tmpfs_bytes >= (1 << 16);
  if (!sensible) {
    throw Error(ErrorKind::kUsage, "metrics.sandbox: a limit is out of range",
                "seconds within (0, 86400], processes within 1..4096, memory of at least 64 MiB, "
                "tmpfs of at least 64 KiB");
  }
}

}  // namespace

std::unique_ptr<CodeRunner> MakeCodeRunner(const SandboxOptions& options) {
  CheckOptions(options);
  return std::make_unique<ZygoteRunner>(options);
}

}  // namespace evald
