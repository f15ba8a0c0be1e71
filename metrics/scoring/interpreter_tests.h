#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "metrics/sandbox/sandbox.h"
#include "metrics/scoring/test_cases.h"

namespace evald {

/// Tests a Python program in the warm interpreter, where a process for each test would spend most
/// of its time on its start. Certain are a pass of all tests, each within `cpu_seconds` (0: no
/// limit but the sandbox's), and a wrong answer to one of them that has an interpreter to itself.
/// Nothing for all else; `first` is then the test to begin with. Throws like CodeRunner.
std::optional<ProgramOutcome> TestInInterpreter(CodeRunner* runner, const std::string& code,
                                                const TestCases& tests, double cpu_seconds,
                                                size_t* first);

/// Whether code and tests are small enough for one source.
bool FitsInterpreter(const std::string& code, const TestCases& tests);

/// Whether a program may look at the interpreter around it, where it could find the tests or
/// replace their judge. A text, not a proof: docs/sandbox.md ("What can still be forged").
bool LooksAround(std::string_view answer);

}  // namespace evald
