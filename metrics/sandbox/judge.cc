#include "metrics/sandbox/judge.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/shown_output.h"

namespace evald::sandbox {
namespace {

double CpuSeconds(const ProgramReport& report) { return static_cast<double>(report.cpu_us) / 1e6; }

bool Completed(const ProgramReport& report, const ProgramRequest& request) {
  return std::memcmp(report.record, request.nonce, kNonceBytes) == 0;
}

/// The program's own words, made safe: valid UTF-8 that cannot control a terminal or a page, at
/// most kDetailBytes bytes.
std::string Detail(const ProgramReport& report) {
  const size_t bytes = std::min<size_t>(report.detail_bytes, kDetailBytes);
  std::string text = Printable(ReplaceInvalidUtf8(std::string_view(report.detail, bytes)));
  if (text.size() <= kDetailBytes) return text;
  size_t end = kDetailBytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  return text;
}

/// What the program had printed when it failed.
std::string Output(const ProgramReport& report) {
  const size_t bytes = std::min<uint64_t>(report.output_bytes, kOutputBytes);
  return ShownOutput(std::string_view(report.output, bytes), report.output_bytes);
}

std::string SecondsText(double seconds) {
  char text[32];
  snprintf(text, sizeof(text), "%g", seconds);
  return text;
}

}  // namespace

bool KilledByUnknown(const ProgramReport& report, const SandboxOptions& options) {
  const int status = report.wait_status;
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && report.wall_exceeded == 0 &&
         CpuSeconds(report) < options.cpu_seconds;
}

bool NeedsSecondRun(const ProgramReport& report, const SandboxOptions& options) {
  if (KilledByUnknown(report, options)) return true;
  return report.wall_exceeded != 0 && report.slept == 0 && CpuSeconds(report) < options.cpu_seconds;
}

void CheckSecondRun(const ProgramReport& report, const SandboxOptions& options,
                    uint64_t oom_kills) {
  if (oom_kills == 0 || !KilledByUnknown(report, options)) return;
  throw Error(ErrorKind::kInfrastructure,
              "a program was killed twice from outside the sandbox, and the kernel's OOM killer "
              "ended " +
                  std::to_string(oom_kills) + " process(es) meanwhile",
              "free memory on this host, or raise the memory limit of evald's cgroup; a program "
              "may take metrics.sandbox.memory_bytes for each metric process");
}

ProgramOutcome Judge(const ProgramReport& report, const ProgramRequest& request,
                     const SandboxOptions& options) {
  ProgramOutcome outcome;
  outcome.cpu_seconds = CpuSeconds(report);
  const int status = report.wait_status;
  if (outcome.cpu_seconds >= options.cpu_seconds) {
    outcome.status = ProgramStatus::kTimeout;
    outcome.detail = "timed out: " + SecondsText(options.cpu_seconds) + " s of CPU time";
  } else if (report.wall_exceeded != 0) {
    outcome.status = ProgramStatus::kTimeout;
    outcome.detail = "timed out: " + SecondsText(options.wall_seconds) + " s on the clock";
  } else if (Completed(report, request)) {
    outcome.status = ProgramStatus::kPassed;
    outcome.detail = "passed";
  } else if (WIFSIGNALED(status)) {
    outcome.status = ProgramStatus::kKilled;
    outcome.detail = "killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
                     strsignal(WTERMSIG(status)) + ")";
  } else if (report.detail_bytes > 0) {
    outcome.detail = Detail(report);
    outcome.output = Output(report);
  } else {
    outcome.detail = "failed: ended with exit status " + std::to_string(WEXITSTATUS(status)) +
                     " before the tests did";
  }
  return outcome;
}

}  // namespace evald::sandbox
