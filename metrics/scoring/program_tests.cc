#include "metrics/scoring/program_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/jsonl.h"
#include "base/random_id.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/program_files.h"
#include "metrics/scoring/output_match.h"
#include "metrics/scoring/python_program.h"

namespace evald {
namespace {

constexpr uint64_t kIgnoredOutputBytes = 64 << 10;
constexpr size_t kDetailBytesMax = 500;
constexpr size_t kInInterpreterBytesMax = 4 << 20;  // of code and tests
constexpr double kNoLimitSeconds = 1e9;

/// The files of an answer that is {name: text} in JSON. Nothing for any other answer.
std::optional<std::vector<SourceFile>> NamedFiles(const std::string& answer) {
  Json given;
  try {
    given = ParseJson(answer, "the answer");
  } catch (const Error&) {
  }
  if (!given.is_object() || given.empty()) return std::nullopt;
  std::vector<SourceFile> files;
  for (const auto& [name, text] : given.items()) {
    if (!text.is_string() || !sandbox::IsProgramPath(name)) return std::nullopt;
    files.push_back({name, text.get<std::string>()});
  }
  return files;
}

/// Adds the document's files, but those that the answer has.
void AddFilesOf(const ProgramRule& rule, const PreparedDocument& document,
                std::vector<SourceFile>* files) {
  if (rule.files.empty() || document.doc[rule.files].is_null()) return;
  for (const auto& [name, text] : document.doc[rule.files].items()) {
    const bool taken = std::any_of(files->begin(), files->end(),
                                   [&](const SourceFile& file) { return file.path == name; });
    if (!taken) files->push_back({name, text.get<std::string>()});
  }
}

void AddCase(ProgramOutcome* outcome, size_t index, size_t count) {
  outcome->detail = Shortened(fmt::format("test {} of {}: {}", index + 1, count, outcome->detail),
                              kDetailBytesMax);
}

/// One run: the outcome, with the verdict on the output.
ProgramOutcome RunCase(BuiltProgram* program, const TestCase& test) {
  const std::string& expected = test.expected.get_ref<const std::string&>();
  const uint64_t most = 2 * expected.size() + (1 << 20);
  BuiltProgram::RunResult run = program->Run(test.input.get_ref<const std::string&>(), most, true);
  if (run.outcome.status != ProgramStatus::kPassed) return run.outcome;
  std::string why;
  if (!SameOutput(ReplaceInvalidUtf8(run.output), expected, &why)) {
    run.outcome.status = ProgramStatus::kFailed;
    run.outcome.detail = "failed: wrong answer: " + Printable(why);
  }
  return run.outcome;
}

/// One call of a function. The key is in the output only if the value is right.
ProgramOutcome RunCall(BuiltProgram* program, const TestCase& test) {
  const std::string key = RandomId(8);
  const Json input = {{"key", key}, {"arguments", test.input}, {"expected", test.expected}};
  BuiltProgram::RunResult run = program->Run(ToLine(input) + "\n", kIgnoredOutputBytes, false);
  if (run.outcome.status == ProgramStatus::kPassed && run.output != key) {
    run.outcome.status = ProgramStatus::kFailed;
    run.outcome.detail = "failed: ended before the test did";
  }
  return run.outcome;
}

/// Runs test `first`, then the others.
ProgramOutcome RunCases(BuiltProgram* program, const TestCases& tests, size_t first) {
  ProgramOutcome outcome = {ProgramStatus::kPassed, "passed", 0};
  double seconds = 0;
  const size_t count = tests.cases.size();
  for (size_t step = 0; step < count; ++step) {
    const size_t i = step == 0 ? first : step - (step <= first ? 1 : 0);
    outcome = tests.function.empty() ? RunCase(program, tests.cases[i])
                                     : RunCall(program, tests.cases[i]);
    seconds += outcome.cpu_seconds;
    outcome.cpu_seconds = seconds;
    if (outcome.status == ProgramStatus::kPassed) continue;
    AddCase(&outcome, i, count);
    break;
  }
  return outcome;
}

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

bool IsSmall(const std::string& code, const TestCases& tests) {
  size_t bytes = code.size();
  for (const TestCase& test : tests.cases) {
    bytes += test.input.is_string() ? test.input.get_ref<const std::string&>().size() : 0;
    bytes += test.expected.is_string() ? test.expected.get_ref<const std::string&>().size() : 0;
  }
  return bytes <= kInInterpreterBytesMax;
}

std::string WithoutTabs(const std::string& answer, int tab_size) {
  std::string text;
  for (const char c : answer) {
    if (c == '\t' && tab_size > 0)
      text.append(static_cast<size_t>(tab_size), ' ');
    else
      text += c;
  }
  return text;
}

std::string CodeOf(const ProgramRule& rule, const PreparedDocument& document,
                   const std::string& answer) {
  return BeforeAnswer(rule, document.doc) + WithoutTabs(answer, rule.tab_size);
}

/// The program of an answer that is one text.
std::string OneFile(const ProgramRule& rule, const PreparedDocument& document,
                    const std::string& target, const std::string& answer, const TestCases& tests) {
  const std::string code = CodeOf(rule, document, answer);
  if (!rule.unittest.empty())
    return UnittestProgram(code, document.doc[rule.unittest].get_ref<const std::string&>());
  if (!tests.function.empty()) return CallingProgram(code, tests.function);
  return rule.cases.empty() ? code + "\n" + target : code;
}

/// The files of an answer's program. Nothing if the answer should be files, and is none.
std::vector<SourceFile> FilesOf(const ProgramRule& rule, const PreparedDocument& document,
                                const std::string& target, const std::string& answer,
                                const TestCases& tests) {
  std::vector<SourceFile> files;
  if (rule.several_files) {
    files = NamedFiles(answer).value_or(files);
    if (files.empty()) return files;
    if (rule.cases.empty()) files[0].text += "\n" + target;
  } else {
    files = {{"", OneFile(rule, document, target, answer, tests)}};
  }
  AddFilesOf(rule, document, &files);
  return files;
}

/// Whether a program is a text of Python that the sandbox's interpreter runs without starting anew.
bool RunsInInterpreter(const ProgramRule& rule, const std::string& language) {
  return rule.cases.empty() && rule.unittest.empty() && language == "python" &&
         !rule.several_files && rule.files.empty() && rule.cpu_seconds == 0;
}

bool TestsInInterpreter(const ProgramRule& rule, const ProgramSources& sources) {
  return sources.language == "python" && !rule.cases.empty() && !rule.several_files &&
         sources.files.size() == 1;
}

/// Whether a program may look at the interpreter around it, where it could find the tests or
/// replace their judge. A text, not a proof: docs/sandbox.md ("What can still be forged").
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

/// Tests a Python program in the warm interpreter, where a process for each test would spend most
/// of its time on its start. Certain are a pass of all tests, and a wrong answer to one of them
/// that has an interpreter to itself. Nothing for all else; `first` is then the test to begin with.
std::optional<ProgramOutcome> TestInInterpreter(CodeRunner* runner, const ProgramRule& rule,
                                                const std::string& code, const TestCases& tests,
                                                size_t* first) {
  constexpr std::string_view kSaid = "failed: AssertionError: ";
  const double seconds = rule.cpu_seconds > 0 ? rule.cpu_seconds : kNoLimitSeconds;
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

/// A process of its own for each test.
ProgramOutcome RunApart(CodeRunner* runner, const ProgramRule& rule, const ProgramSources& sources,
                        const TestCases& tests, size_t first) {
  ProgramOutcome outcome;
  const std::unique_ptr<BuiltProgram> program = runner->Build(sources, &outcome);
  if (program == nullptr) return outcome;
  if (!rule.unittest.empty()) return RunCall(program.get(), {});
  if (rule.cases.empty()) return program->Run("", kIgnoredOutputBytes, false).outcome;
  return RunCases(program.get(), tests, first);
}

}  // namespace

ProgramOutcome TestProgram(CodeRunner* runner, const ProgramRule& rule,
                           const PreparedDocument& document, const std::string& target,
                           const std::string& answer) {
  ProgramSources sources;
  sources.language = LanguageOf(rule, document.doc);
  if (RunsInInterpreter(rule, sources.language))
    return runner->Run(OneFile(rule, document, target, answer, {}));
  sources.cpu_seconds = rule.cpu_seconds;
  const TestCases tests = rule.cases.empty() ? TestCases() : CasesOf(rule, document.doc);
  sources.files = FilesOf(rule, document, target, answer, tests);
  if (sources.files.empty())
    return {ProgramStatus::kFailed, "failed: the answer has no files, {name: text} in JSON", 0};
  size_t first = 0;
  const std::string code = CodeOf(rule, document, answer);
  if (TestsInInterpreter(rule, sources) && IsSmall(code, tests) && !LooksAround(answer)) {
    if (auto outcome = TestInInterpreter(runner, rule, code, tests, &first)) return *outcome;
  }
  return RunApart(runner, rule, sources, tests, first);
}

}  // namespace evald
