#pragma once

#include <string>

#include "metrics/sandbox/sandbox.h"
#include "metrics/scoring/program_rule.h"

namespace evald {

/// Tests the program of one answer against a document's tests. An answer that is no program has
/// failed. Throws like CodeRunner.
ProgramOutcome TestProgram(CodeRunner* runner, const ProgramRule& rule,
                           const PreparedDocument& document, const std::string& target,
                           const std::string& answer);

/// The Python program that calls `function` of `code` once for its input, a line of JSON: {"key",
/// "arguments", "expected"}. The program writes the key if the function's value is the expected
/// one. `arguments` are texts of JSON, a line each, or a list of values.
std::string CallingProgram(const std::string& code, const std::string& function,
                           const std::string& preamble);

/// What LiveCodeBench imports before each program (lcb_runner/evaluation/testing_util.py).
std::string Preamble(const std::string& name);

}  // namespace evald
