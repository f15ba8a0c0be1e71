#include "metrics/scoring/program_rule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"
#include "metrics/sandbox/language.h"
#include "metrics/scoring/python_program.h"

namespace evald {
namespace {

constexpr double kCpuSecondsMax = 600;
constexpr int kTabSizeMax = 16;

const std::vector<std::string> kArguments = {
    "language", "language_column", "cases",       "metadata", "files",
    "preamble", "several_files",   "cpu_seconds", "k",        "stub",
    "prompt",   "unittest",        "tab_size"};

std::string KnownLanguage(const std::string& name, const std::string& where) {
  const sandbox::Language* language = sandbox::FindLanguage(name);
  if (language != nullptr) return language->name;
  throw Error(
      ErrorKind::kInput,
      fmt::format("{}: the language '{}' is not known{}", where,
                  PrintableLine(Shortened(name, 100)), Suggestion(name, sandbox::LanguageNames())),
      "known are " + Join(sandbox::LanguageNames(), ", "));
}

/// A text or a list of texts, a number or a list of numbers.
template <typename T>
std::vector<T> OneOrSeveral(const Json& kwargs, const char* key, const std::string& where) {
  const auto found = kwargs.find(key);
  if (found == kwargs.end() || found->is_null()) return {};
  if (found->is_array()) return Field<std::vector<T>>(kwargs, key, where);
  return {Field<T>(kwargs, key, where)};
}

const Json& Column(const Json& doc, const std::string& name) {
  const auto found = doc.find(name);
  if (found != doc.end()) return *found;
  std::vector<std::string> names;
  for (const auto& [key, value] : doc.items()) names.push_back(key);
  throw Error(ErrorKind::kInput,
              fmt::format("the document has no column '{}'{}", name, Suggestion(name, names)),
              "it has " + Join(names, ", "));
}

/// The text in a column. "" for no column.
std::string TextOf(const Json& doc, const std::string& column) {
  if (column.empty()) return "";
  Column(doc, column);
  return Field<std::string>(doc, column, fmt::format("column '{}'", column));
}

void CheckUnittest(const ProgramRule& rule, const std::string& where) {
  if (rule.unittest.empty()) return;
  if (rule.language == "python" && rule.cases.empty() && !rule.several_files) return;
  throw Error(ErrorKind::kInput,
              where +
                  ": found 'unittest' beside 'cases', 'several_files' or "
                  "another language than python",
              "unittest is for programs in python that are one file, and is their only test");
}

void CheckRule(const ProgramRule& rule, const std::string& where) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kInput, where + ": " + what);
  };
  if (!rule.preamble.empty() && rule.preamble != "livecodebench")
    refuse(fmt::format("preamble: found '{}', expected livecodebench", rule.preamble));
  if (rule.cpu_seconds < 0 || rule.cpu_seconds > kCpuSecondsMax)
    refuse(fmt::format("cpu_seconds: found {}, expected more than 0, at most {}", rule.cpu_seconds,
                       kCpuSecondsMax));
  if (rule.tab_size < 0 || rule.tab_size > kTabSizeMax)
    refuse(fmt::format("tab_size: found {}, expected 0 to {}", rule.tab_size, kTabSizeMax));
  CheckUnittest(rule, where);
  for (const int64_t k : rule.ks) {
    if (k < 1) refuse(fmt::format("found k = {}, expected at least 1", k));
  }
}

ProgramRule ReadLanguage(const Json& kwargs, const std::string& where) {
  ProgramRule rule;
  rule.language = FieldOr<std::string>(kwargs, "language", "", where);
  rule.language_column = FieldOr<std::string>(kwargs, "language_column", "", where);
  if (!rule.language_column.empty() && !rule.language.empty()) {
    throw Error(ErrorKind::kInput,
                where + ": found 'language' and 'language_column', expected one of them");
  }
  if (rule.language_column.empty())
    rule.language = KnownLanguage(rule.language.empty() ? "python" : rule.language, where);
  return rule;
}

}  // namespace

ProgramRule ReadProgramRule(const MetricSpec& spec) {
  const std::string where = fmt::format("the metric '{}'", spec.metric);
  if (!spec.function.empty()) return ReadLanguage(spec.kwargs, where);
  for (const auto& [key, value] : spec.kwargs.items()) {
    if (std::count(kArguments.begin(), kArguments.end(), key) > 0) continue;
    throw Error(ErrorKind::kInput,
                fmt::format("{}: unknown argument '{}'{}", where, key, Suggestion(key, kArguments)),
                "known are " + Join(kArguments, ", "));
  }
  ProgramRule rule = ReadLanguage(spec.kwargs, where);
  rule.cases = OneOrSeveral<std::string>(spec.kwargs, "cases", where);
  rule.metadata = FieldOr<std::string>(spec.kwargs, "metadata", "", where);
  rule.files = FieldOr<std::string>(spec.kwargs, "files", "", where);
  rule.preamble = FieldOr<std::string>(spec.kwargs, "preamble", "", where);
  rule.stub = FieldOr<std::string>(spec.kwargs, "stub", "", where);
  rule.prompt = FieldOr<std::string>(spec.kwargs, "prompt", "", where);
  rule.unittest = FieldOr<std::string>(spec.kwargs, "unittest", "", where);
  rule.several_files = FieldOr<bool>(spec.kwargs, "several_files", false, where);
  rule.tab_size = FieldOr<int>(spec.kwargs, "tab_size", 0, where);
  rule.cpu_seconds = FieldOr<double>(spec.kwargs, "cpu_seconds", 0, where);
  rule.ks = OneOrSeveral<int64_t>(spec.kwargs, "k", where);
  CheckRule(rule, where);
  return rule;
}

std::string LanguageOf(const ProgramRule& rule, const Json& doc) {
  if (rule.language_column.empty()) return rule.language;
  const std::string where = fmt::format("column '{}'", rule.language_column);
  Column(doc, rule.language_column);
  return KnownLanguage(Field<std::string>(doc, rule.language_column, where), where);
}

std::string BeforeAnswer(const ProgramRule& rule, const Json& doc) {
  std::string before = LanguageOf(rule, doc) == "python" ? Preamble(rule.preamble) : "";
  if (!rule.stub.empty()) before += TextOf(doc, rule.stub) + "\n    pass\n";
  return before + TextOf(doc, rule.prompt);
}

TestCases CasesOf(const ProgramRule& rule, const Json& doc) {
  TestCases tests;
  if (!rule.metadata.empty())
    tests.function =
        FunctionOf(Column(doc, rule.metadata), fmt::format("column '{}'", rule.metadata));
  for (const std::string& column : rule.cases)
    AddCases(Column(doc, column), fmt::format("column '{}'", column), &tests);
  return tests;
}

void CheckProgramDocument(const ProgramRule& rule, const PreparedDocument& document) {
  const std::string language = LanguageOf(rule, document.doc);
  if (!rule.files.empty()) {
    const Json& files = Column(document.doc, rule.files);
    const bool texts =
        files.is_object() &&
        std::all_of(files.begin(), files.end(), [](const Json& f) { return f.is_string(); });
    if (!texts && !files.is_null()) {
      throw Error(ErrorKind::kInput,
                  fmt::format("column '{}': found {}, expected an object of names and texts",
                              rule.files, Shortened(ToLine(files), 100)));
    }
  }
  BeforeAnswer(rule, document.doc);
  if (!rule.unittest.empty()) {
    TextOf(document.doc, rule.unittest);
    return;
  }
  if (rule.cases.empty()) {
    if (document.target.is_string()) return;
    throw Error(ErrorKind::kInput,
                fmt::format("doc_to_target gives {}, expected the text of a test",
                            Shortened(ToLine(document.target), 200)));
  }
  const TestCases tests = CasesOf(rule, document.doc);
  if (tests.cases.empty())
    throw Error(ErrorKind::kInput,
                fmt::format("the document has no tests in {}", Join(rule.cases, ", ")));
  if (!tests.function.empty() && (language != "python" || rule.several_files)) {
    throw Error(ErrorKind::kInput,
                fmt::format("the tests call the function '{}' of a program in {}, which is served "
                            "for python alone, and for answers of one file",
                            tests.function, language));
  }
}

}  // namespace evald
