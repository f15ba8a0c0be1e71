#include "metrics/scoring/interpreter_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "metrics/scoring/program_tests.h"
#include "metrics/scoring/python_program.h"

namespace evald {
namespace {

constexpr size_t kBytesMax = 4 << 20;  // of code and tests
constexpr double kNoLimitSeconds = 1e9;

/// The test that a program of all tests says to have failed, a word of the program's; else the
/// first.
size_t FailedTest(const ProgramOutcome& outcome, const TestCases& tests) {
  constexpr std::string_view kSaid = "failed: AssertionError: test ";
  size_t index = 0;
  if (!std::string_view(outcome.detail).starts_with(kSaid)) return 0;
  const char* const begin = outcome.detail.data() + kSaid.size();
  std::from_chars(begin, outcome.detail.data() + outcome.detail.size(), index);
  return index < tests.cases.size() ? index : 0;
}

}  // namespace

std::optional<ProgramOutcome> TestInInterpreter(CodeRunner* runner, const std::string& code,
                                                const TestCases& tests, double cpu_seconds,
                                                size_t* first) {
  constexpr std::string_view kSaid = "failed: AssertionError: ";
  const double seconds = cpu_seconds > 0 ? cpu_seconds : kNoLimitSeconds;
  const ProgramOutcome all = runner->Run(AllTestsProgram(code, tests, seconds));
  if (all.status == ProgramStatus::kPassed) return all;
  *first = FailedTest(all, tests);
  if (!std::string_view(all.detail).starts_with(kSaid)) return std::nullopt;
  ProgramOutcome one = runner->Run(OneTestProgram(code, tests, *first));
  if (!std::string_view(one.detail).starts_with(fmt::format("{}wrong answer: ", kSaid)))
    return std::nullopt;
  one.detail = "failed: " + one.detail.substr(kSaid.size());
  one.cpu_seconds += all.cpu_seconds;
  AddCase(&one, *first, tests.cases.size());
  return one;
}

bool FitsInterpreter(const std::string& code, const TestCases& tests) {
  size_t bytes = code.size();
  for (const TestCase& test : tests.cases) {
    bytes += test.input.is_string() ? test.input.get_ref<const std::string&>().size() : 0;
    bytes += test.expected.is_string() ? test.expected.get_ref<const std::string&>().size() : 0;
  }
  return bytes <= kBytesMax;
}

bool LooksAround(std::string_view answer) {
  constexpr std::string_view kWords[] = {
      "frame",      "f_back",    "globals",  "builtins",      "modules",    "__dict__",
      "__import__", "getattr",   "setattr",  "delattr",       "vars(",      "eval(",
      "exec(",      "import gc", "hashlib",  "inspect",       "importlib",  "ctypes",
      "gc.",        "traceback", "settrace", "pread",         "setprofile", "process_time",
      "_run",       "_hash",     "_wanted",  "__subclasses__"};
  return std::any_of(std::begin(kWords), std::end(kWords),
                     [&](std::string_view word) { return answer.find(word) != answer.npos; });
}

}  // namespace evald
