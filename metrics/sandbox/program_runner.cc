#include "metrics/sandbox/program_runner.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/filter.h"
#include "metrics/sandbox/language.h"
#include "metrics/sandbox/oom_kills.h"
#include "metrics/sandbox/program_files.h"

namespace evald::sandbox {
namespace {

constexpr uint64_t kRunOpenFiles = 256;
constexpr uint64_t kBuildOpenFiles = 1024;
constexpr uint64_t kBuildTasks = 256;
constexpr size_t kDetailBytesMax = kDetailBytes;
constexpr int64_t kAroundStepUs =
    180'000'000;  // what a turn takes beside the program's wall limits

uint64_t Micros(double seconds) { return static_cast<uint64_t>(seconds * 1e6); }

std::string SecondsOf(double seconds) {
  char text[32];
  snprintf(text, sizeof(text), "%g", seconds);
  return text;
}

/// A program's own words, made safe: valid UTF-8 that cannot control a terminal or a page.
std::string Words(const std::string& text) {
  return Shortened(Printable(ReplaceInvalidUtf8(text)), kDetailBytesMax);
}

/// The line of a program's errors that says most: the last that names an error and is no part of a
/// trace, else the last.
std::string Complaint(const std::string& text) {
  std::string last;
  std::string error;
  for (const std::string& line : Split(text, '\n')) {
    if (Trim(line).empty() || line[0] == ' ' || line[0] == '\t') continue;
    last = line;
    for (const char* word : {"rror", "xception", "panic", "ailed"}) {
      if (line.find(word) != std::string::npos) error = line;
    }
  }
  return error.empty() ? last : error;
}

/// The line of a compiler's output that says most: the first that names an error.
std::string ErrorLine(const std::string& text) {
  std::string first;
  for (const std::string& line : Split(text, '\n')) {
    if (Trim(line).empty()) continue;
    if (first.empty()) first = line;
    if (line.find("error") != std::string::npos || line.find("Error") != std::string::npos)
      return line;
  }
  return first;
}

/// Whether a step's end is not its own doing, or may not be: the machine was busy, or a SIGKILL
/// came that the sandbox did not send.
bool IsUnclear(const KeeperReport& report) {
  if (report.end == StepEnd::kWall) return report.slept == 0;
  return report.end == StepEnd::kItself && report.setup_errno == 0 &&
         WIFSIGNALED(report.wait_status) && WTERMSIG(report.wait_status) == SIGKILL;
}

/// The same as a verdict on any step. Detail "" means that it ended with status 0.
ProgramOutcome OutcomeOf(const StepResult& step, const StepLimits& limits) {
  const KeeperReport& report = step.report;
  ProgramOutcome outcome;
  outcome.cpu_seconds = static_cast<double>(report.cpu_us) / 1e6;
  const auto set = [&](ProgramStatus status, const std::string& detail) {
    outcome.status = status;
    outcome.detail = detail;
  };
  const int status = report.wait_status;
  if (report.end == StepEnd::kCpu || report.cpu_us >= limits.cpu_us) {
    set(ProgramStatus::kTimeout,
        "timed out: " + SecondsOf(static_cast<double>(limits.cpu_us) / 1e6) + " s of CPU time");
  } else if (report.end == StepEnd::kWall) {
    set(ProgramStatus::kTimeout,
        "timed out: " + SecondsOf(static_cast<double>(limits.wall_us) / 1e6) + " s on the clock");
  } else if (report.end == StepEnd::kMemory) {
    set(ProgramStatus::kKilled, "killed: more memory than " + HumanBytes(limits.memory_bytes));
  } else if (report.end == StepEnd::kOutput) {
    set(ProgramStatus::kFailed, "failed: more output than " + HumanBytes(limits.output_bytes));
  } else if (WIFSIGNALED(status)) {
    set(ProgramStatus::kKilled, "killed by signal " + std::to_string(WTERMSIG(status)) + " (" +
                                    strsignal(WTERMSIG(status)) + ")");
  } else if (WEXITSTATUS(status) != 0) {
    const std::string said = Complaint(step.errors);
    set(ProgramStatus::kFailed,
        Words("failed: ended with exit status " + std::to_string(WEXITSTATUS(status)) +
              (said.empty() ? "" : ": " + said)));
  } else {
    set(ProgramStatus::kPassed, "passed");
  }
  return outcome;
}

/// Runs a step in its turn; a second time, alone on this host, if its end is unclear.
StepResult RunInTurns(ProgramBox* box, const TurnFolder& turns,
                      const std::vector<std::string>& words,
                      const std::vector<std::string>& environment, StepLimits limits,
                      std::string_view input) {
  const int64_t longest_us =
      static_cast<int64_t>(limits.wall_us) * limits.wall_windows + kAroundStepUs;
  {
    const HostTurn turn = HostTurn::Shared(turns, longest_us);
    StepResult result = box->Run(words, environment, limits, input);
    if (!IsUnclear(result.report)) return result;
  }
  limits.wall_windows = 1;  // no program of this user slows it now
  const HostTurn turn = HostTurn::Alone(turns, longest_us);
  const uint64_t before = CountOomKills();
  StepResult result = box->Run(words, environment, limits, input);
  const bool killed = result.report.end == StepEnd::kItself && IsUnclear(result.report);
  if (killed && CountOomKills() > before) {
    throw Infrastructure(
        "a program was killed twice from outside the sandbox, and the kernel's OOM killer ended "
        "processes meanwhile",
        "free memory on this host, or raise the memory limit of evald's cgroup");
  }
  return result;
}

/// The same bound as for Python functions.
void RequireSmall(const ProgramSources& sources) {
  uint64_t bytes = 0;
  for (const SourceFile& file : sources.files) bytes += file.text.size();
  if (bytes <= kSourceBytesMax) return;
  throw Error(ErrorKind::kInput, "the program's files have " + HumanBytes(bytes) +
                                     ", expected at most " + HumanBytes(kSourceBytesMax));
}

class Program : public BuiltProgram {
 public:
  Program(const SandboxOptions& options, const Language& language, const Interpreter& interpreter,
          const TurnFolder& turns, double cpu_seconds, const ProgramBoxPlan& plan)
      : turns_(turns), box_(plan) {
    SetEnvironment(options, language);
    if (language.name == "python" && !interpreter.packages.empty())
      environment_.push_back("PYTHONPATH=" + Join(interpreter.packages, ":"));
    const double allowed = cpu_seconds > 0 ? cpu_seconds : options.cpu_seconds;
    run_.cpu_us = Micros(allowed + language.startup_seconds);
    run_.wall_us = Micros(options.wall_seconds * std::max(1.0, allowed / options.cpu_seconds));
    run_.memory_bytes = options.memory_bytes + language.overhead_bytes;
    run_.address_bytes = std::max(run_.memory_bytes, language.address_bytes);
    run_.file_bytes = options.tmpfs_bytes;
    run_.open_files = kRunOpenFiles;
    run_.tasks = options.unsafe ? 0 : static_cast<uint64_t>(options.processes) + 2;
    run_.wall_windows = kWallWindowsMax;
    run_.processes = options.allow_processes || language.processes ? 1 : 0;
    build_ = run_;
    build_.cpu_us = Micros(kBuildCpuSeconds);
    build_.wall_us = Micros(kBuildWallSeconds);
    build_.memory_bytes = kBuildMemoryBytes;
    build_.address_bytes = std::max(2 * kBuildMemoryBytes, language.address_bytes);
    build_.file_bytes = kBuildFileBytes;
    build_.open_files = kBuildOpenFiles;
    build_.tasks = options.unsafe ? 0 : kBuildTasks;
    build_.processes = 1;
    build_.errors_too = 1;
  }

  /// Writes the files and compiles them. The outcome is `passed` if the program can be run.
  ProgramOutcome Make(ProgramPlan plan) {
    for (const SourceFile& file : plan.files) {
      const std::string wrong = box_.Write(file);
      if (wrong.empty()) continue;
      return {ProgramStatus::kFailed, Words("failed: writing " + file.path + ": " + wrong), 0};
    }
    words_ = std::move(plan.run);
    if (plan.build.empty()) return {ProgramStatus::kPassed, "passed", 0};
    const StepResult step = RunInTurns(&box_, turns_, plan.build, environment_, build_, "");
    RequireExecuted(step, plan.build[0]);
    ProgramOutcome outcome = OutcomeOf(step, build_);
    if (outcome.status == ProgramStatus::kFailed)
      outcome.detail = Words("failed: does not compile: " + ErrorLine(step.errors));
    if (outcome.status != ProgramStatus::kPassed && outcome.status != ProgramStatus::kFailed)
      outcome.detail = "compiling " + outcome.detail;
    return outcome;
  }

  RunResult Run(std::string_view input, uint64_t output_bytes_max, bool ends_at_output) override {
    StepLimits limits = run_;
    limits.output_bytes = output_bytes_max;
    limits.ends_at_output = ends_at_output ? 1 : 0;
    StepResult step = RunInTurns(&box_, turns_, words_, environment_, limits, input);
    if (step.report.setup_errno != 0) {
      if (words_[0].starts_with('/')) RequireExecuted(step, words_[0]);
      return {{ProgramStatus::kFailed, "failed: the compiler made no program", 0}, ""};
    }
    return {OutcomeOf(step, limits), std::move(step.output)};
  }

 private:
  void SetEnvironment(const SandboxOptions& options, const Language& language) {
    environment_ = {"PATH=/usr/bin:/bin",      "HOME=" + box_.folder() + "/home",
                    "TMPDIR=" + box_.folder(), "LANG=C.UTF-8",
                    "LC_ALL=C.UTF-8",          "TZ=UTC",
                    "MALLOC_ARENA_MAX=1"};
    const std::string tmp = "/tmp/";
    for (std::string setting : language.environment) {
      const size_t at = setting.find("=" + tmp);
      if (options.unsafe && at != std::string::npos)
        setting.replace(at + 1, tmp.size(), box_.folder() + "/");
      environment_.push_back(std::move(setting));
    }
  }

  static void RequireExecuted(const StepResult& step, const std::string& program) {
    if (step.report.setup_errno == 0) return;
    throw Infrastructure("the sandbox cannot execute " + program + ": " +
                         std::strerror(step.report.setup_errno));
  }

  const TurnFolder& turns_;
  ProgramBox box_;
  std::vector<std::string> environment_;
  std::vector<std::string> words_;
  StepLimits build_ = {};
  StepLimits run_ = {};
};

}  // namespace

ProgramRunner::ProgramRunner(const SandboxOptions& options, const Interpreter& interpreter,
                             const TurnFolder& turns)
    : options_(options), interpreter_(interpreter), turns_(turns) {
  plan_.unsafe = options.unsafe;
  plan_.tmpfs_bytes = options.tmpfs_bytes;
  if (!options.unsafe) plan_.root = PlanToolRoot(interpreter);
  FilterOptions allowed;
  allowed.machine_code = true;
  allowed.interpreter = true;
  plan_.filters[0] = BuildFilter(allowed);
  allowed.processes = true;
  allowed.child_signals = true;
  plan_.filters[1] = BuildFilter(allowed);
}

std::unique_ptr<BuiltProgram> ProgramRunner::Build(const ProgramSources& sources,
                                                   ProgramOutcome* outcome) {
  const Language* language = FindLanguage(sources.language);
  if (language == nullptr) {
    throw Error(ErrorKind::kInput,
                "the language '" + PrintableLine(Shortened(sources.language, 100)) +
                    "' is not known" + Suggestion(sources.language, LanguageNames()),
                "known are " + Join(LanguageNames(), ", "));
  }
  const std::string missing = MissingTool(*language);
  if (!missing.empty()) {
    throw Error(ErrorKind::kInput,
                "programs in " + language->name + " need " + missing + ", which is not there",
                "install it on this host: " + InstallLine(*language));
  }
  RequireSmall(sources);
  ProgramPlan plan =
      PlanProgram(*language, sources.files, interpreter_.executable, options_.memory_bytes);
  ProgramBoxPlan box = plan_;
  if (!plan.build.empty()) box.tmpfs_bytes += kBuildFileBytes;
  auto program = std::make_unique<Program>(options_, *language, interpreter_, turns_,
                                           sources.cpu_seconds, box);
  *outcome = program->Make(std::move(plan));
  if (outcome->status != ProgramStatus::kPassed) return nullptr;
  return program;
}

}  // namespace evald::sandbox
