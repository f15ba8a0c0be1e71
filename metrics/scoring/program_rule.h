#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "evald/json.h"
#include "evald/task.h"
#include "metrics/scoring/test_cases.h"
#include "prepared/prepared_task.h"

namespace evald {

/// How a metric makes a program of an answer, and tests it (docs/metrics.md, "Programs"): the
/// arguments of `passes`, and `language` of pass_at_k.
struct ProgramRule {
  std::string language;         ///< a name of metrics/sandbox/language.h
  std::string language_column;  ///< the column that names each document's; "" for none
  std::vector<std::string>
      cases;                   ///< columns with tests; empty: the target is the test, or `unittest`
  std::string metadata;        ///< the column that may name a function to call; "" for none
  std::string files;           ///< the column with further files of the program; "" for none
  std::string preamble;        ///< "" or "livecodebench"
  std::string stub;            ///< the column with a function's head; "" for none
  std::string prompt;          ///< the column with the text that answers go on from; "" for none
  std::string unittest;        ///< the column with a class TestCases of unittest; "" for none
  bool several_files = false;  ///< an answer is {name: text} in JSON
  int tab_size = 0;            ///< spaces for each tab of an answer; 0: tabs stay
  double cpu_seconds = 0;      ///< of each run; 0: the sandbox's limit
  std::vector<int64_t> ks;     ///< of pass@k
};

/// Of a function of lm_eval's tasks only the language is read: the harness takes other arguments of
/// such a metric without a look. Throws Error(kInput) for an unknown argument or language, with the
/// nearest known one.
ProgramRule ReadProgramRule(const MetricSpec& spec);

/// The language of a document's programs. Throws Error(kInput).
std::string LanguageOf(const ProgramRule& rule, const Json& doc);

/// The text before an answer in its program: preamble, stub and prompt. Throws Error(kInput).
std::string BeforeAnswer(const ProgramRule& rule, const Json& doc);

/// The tests of a document; no cases if the rule names no columns. Throws Error(kInput).
TestCases CasesOf(const ProgramRule& rule, const Json& doc);

/// Throws Error(kInput) for a document that cannot be tested whatever the answer is.
void CheckProgramDocument(const ProgramRule& rule, const PreparedDocument& document);

}  // namespace evald
