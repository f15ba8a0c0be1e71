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
#include "metrics/scoring/output_match.h"

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

ProgramOutcome RunCases(BuiltProgram* program, const TestCases& tests) {
  ProgramOutcome outcome = {ProgramStatus::kPassed, "passed", 0};
  double seconds = 0;
  for (size_t i = 0; i < tests.cases.size(); ++i) {
    outcome = tests.function.empty() ? RunCase(program, tests.cases[i])
                                     : RunCall(program, tests.cases[i]);
    seconds += outcome.cpu_seconds;
    outcome.cpu_seconds = seconds;
    if (outcome.status == ProgramStatus::kPassed) continue;
    AddCase(&outcome, i, tests.cases.size());
    break;
  }
  return outcome;
}

}  // namespace

ProgramOutcome TestProgram(CodeRunner* runner, const ProgramRule& rule,
                           const PreparedDocument& document, const std::string& target,
                           const std::string& answer) {
  const std::string language = LanguageOf(rule, document.doc);
  const std::string before = language == "python" ? Preamble(rule.preamble) : "";
  const bool by_function = rule.cases.empty() && language == "python" && !rule.several_files &&
                           rule.files.empty() && rule.cpu_seconds == 0;
  if (by_function) return runner->Run(before + answer + "\n" + target);
  ProgramSources sources;
  sources.language = language;
  sources.cpu_seconds = rule.cpu_seconds;
  TestCases tests;
  if (!rule.cases.empty()) tests = CasesOf(rule, document.doc);
  if (rule.several_files) {
    std::optional<std::vector<SourceFile>> files = NamedFiles(answer);
    if (!files)
      return {ProgramStatus::kFailed, "failed: the answer has no files, {name: text} in JSON", 0};
    sources.files = std::move(*files);
    if (rule.cases.empty()) sources.files[0].text += "\n" + target;
  } else if (!tests.function.empty()) {
    sources.files = {{"", CallingProgram(answer, tests.function, rule.preamble)}};
  } else {
    sources.files = {{"", before + answer + (rule.cases.empty() ? "\n" + target : "")}};
  }
  AddFilesOf(rule, document, &sources.files);
  ProgramOutcome outcome;
  const std::unique_ptr<BuiltProgram> program = runner->Build(sources, &outcome);
  if (program == nullptr) return outcome;
  if (rule.cases.empty()) return program->Run("", kIgnoredOutputBytes, false).outcome;
  return RunCases(program.get(), tests);
}

}  // namespace evald
