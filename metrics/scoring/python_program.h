#pragma once

#include <string>

#include "metrics/scoring/test_cases.h"

namespace evald {

/// The Python program that calls `function` of `code` once for its input, a line of JSON: {"key",
/// "arguments", "expected"}. The program writes the key if the function's value is the expected
/// one. `arguments` are texts of JSON, a line each, or a list of values.
std::string CallingProgram(const std::string& code, const std::string& function);

/// The Python program that makes all runs, or calls, of `tests` one after the other in the warm
/// interpreter (CodeRunner::Run). The program comes to its end if every test passed, each within
/// `cpu_seconds`; else it raises AssertionError "test N", by which nobody should judge: tests share
/// a process, and this interpreter allows less than a process of its own. A run is not told the
/// expected output, only its hash.
std::string AllTestsProgram(const std::string& code, const TestCases& tests, double cpu_seconds);

/// The Python program that makes one of the runs or calls in the warm interpreter. The program
/// raises AssertionError "wrong answer: ..." if the code came to a normal end with a wrong answer.
std::string OneTestProgram(const std::string& code, const TestCases& tests, size_t index);

/// The Python program that runs the class TestCases of `tests`, which uses unittest, after `code`,
/// both in one module `__test__`, as BigCodeBench does (bigcodebench/eval/__init__.py). Its input
/// is a line of JSON with "key", which the program writes if no test failed or raised.
std::string UnittestProgram(const std::string& code, const std::string& tests);

/// The imports that LiveCodeBench puts before each program (lcb_runner/evaluation/testing_util.py)
/// for "livecodebench", nothing for "".
std::string Preamble(const std::string& name);

}  // namespace evald
