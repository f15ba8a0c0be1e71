#include "metrics/scoring/program_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/jsonl.h"
#include "base/random_id.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/program_files.h"
#include "metrics/sandbox/shown_output.h"
#include "metrics/scoring/interpreter_tests.h"
#include "metrics/scoring/output_match.h"
#include "metrics/scoring/python_program.h"

namespace evald {
namespace {

constexpr uint64_t kIgnoredOutputBytes = 64 << 10;
constexpr size_t kDetailBytesMax = 500;

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

/// One run: the outcome, with the verdict on the output.
ProgramOutcome RunCase(BuiltProgram* program, const TestCase& test) {
  const std::string& expected = test.expected.get_ref<const std::string&>();
  const uint64_t most = 2 * expected.size() + (1 << 20);
  BuiltProgram::RunResult run = program->Run(test.input.get_ref<const std::string&>(), most, true);
  run.outcome.output = sandbox::ShownOutput(run.output);
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

/// The one file of a program.
std::string OneFile(const ProgramRule& rule, const PreparedDocument& document,
                    const std::string& target, const std::string& code, const TestCases& tests) {
  if (!rule.unittest.empty())
    return UnittestProgram(code, document.doc[rule.unittest].get_ref<const std::string&>());
  if (!tests.function.empty()) return CallingProgram(code, tests.function);
  return rule.cases.empty() ? code + "\n" + target : code;
}

/// The files of a program. `text`: its code, or the answer that should be files; nothing if that is
/// none.
std::vector<SourceFile> FilesOf(const ProgramRule& rule, const PreparedDocument& document,
                                const std::string& target, const std::string& text,
                                const TestCases& tests) {
  std::vector<SourceFile> files;
  if (rule.several_files) {
    files = NamedFiles(text).value_or(files);
    if (files.empty()) return files;
    if (rule.cases.empty()) files[0].text += "\n" + target;
  } else {
    files = {{"", OneFile(rule, document, target, text, tests)}};
  }
  AddFilesOf(rule, document, &files);
  return files;
}

/// Whether a program is a text of Python that the sandbox's interpreter runs without starting anew.
bool RunsInInterpreter(const ProgramRule& rule, const std::string& language) {
  return rule.cases.empty() && rule.unittest.empty() && language == "python" &&
         !rule.several_files && rule.files.empty() && rule.cpu_seconds == 0;
}

/// Whether the interpreter may try the tests of a program first.
bool TestsInInterpreter(const ProgramRule& rule, const PreparedDocument& document,
                        const std::string& language) {
  const bool further_files = !rule.files.empty() && !document.doc[rule.files].empty();
  return !rule.cases.empty() && language == "python" && !rule.several_files && !further_files;
}

/// A process of its own for each test.
ProgramOutcome RunApart(CodeRunner* runner, const ProgramRule& rule, const ProgramSources& sources,
                        const TestCases& tests, size_t first) {
  ProgramOutcome outcome;
  const std::unique_ptr<BuiltProgram> program = runner->Build(sources, &outcome);
  if (program == nullptr) return outcome;
  if (!rule.unittest.empty()) return RunCall(program.get(), {});
  if (rule.cases.empty()) {
    const BuiltProgram::RunResult run = program->Run("", kIgnoredOutputBytes, false);
    outcome = run.outcome;
    outcome.output = sandbox::ShownOutput(run.output);
    return outcome;
  }
  return RunCases(program.get(), tests, first);
}

}  // namespace

void AddCase(ProgramOutcome* outcome, size_t index, size_t count) {
  outcome->detail = Shortened(fmt::format("test {} of {}: {}", index + 1, count, outcome->detail),
                              kDetailBytesMax);
}

ProgramOutcome TestProgram(CodeRunner* runner, const ProgramRule& rule,
                           const PreparedDocument& document, const std::string& target,
                           const std::string& answer) {
  const std::string language = LanguageOf(rule, document.doc);
  const std::string text = rule.several_files ? answer : CodeOf(rule, document, answer);
  if (RunsInInterpreter(rule, language)) return runner->Run(text + "\n" + target);
  const TestCases tests = rule.cases.empty() ? TestCases() : CasesOf(rule, document.doc);
  size_t first = 0;
  if (TestsInInterpreter(rule, document, language) && FitsInterpreter(text, tests) &&
      !LooksAround(answer)) {
    if (auto outcome = TestInInterpreter(runner, text, tests, rule.cpu_seconds, &first))
      return *outcome;
  }
  const ProgramSources sources = {language, FilesOf(rule, document, target, text, tests),
                                  rule.cpu_seconds};
  if (sources.files.empty())
    return {ProgramStatus::kFailed, "failed: the answer has no files, {name: text} in JSON", 0};
  return RunApart(runner, rule, sources, tests, first);
}

}  // namespace evald
