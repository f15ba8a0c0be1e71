#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "evald/json.h"

namespace evald {

/// One test of a program: what it reads, and what it must write; or the arguments of a function,
/// and what the function must give.
struct TestCase {
  Json input;     ///< text; for a function also the list of its arguments
  Json expected;  ///< text; for a function also a value
};

/// The tests of a document.
struct TestCases {
  std::vector<TestCase> cases;
  std::string function;  ///< the function to call; "" for programs that read and write
};

/// Adds the tests in a column. These forms are read, each also as the text of its JSON:
/// - LiveCodeBench's list of {"input": text, "output": text, "testtype": "stdin" or "functional"},
///   also packed (UnpackCases)
/// - APPS' {"inputs": [...], "outputs": [...], "fn_name": name}
/// An empty column adds nothing. Throws Error(kInput) "<where>: ...".
void AddCases(const Json& column, const std::string& where, TestCases* tests);

/// The function that LiveCodeBench's column `metadata` names, {"func_name": name}; "" for none.
/// Throws like AddCases.
std::string FunctionOf(const Json& metadata, const std::string& where);

/// The text within LiveCodeBench's private tests: JSON, pickled as a Python string, packed by zlib,
/// and written in base64 (lcb_runner/benchmarks/code_generation.py). Throws Error(kInput).
std::string UnpackCases(std::string_view packed, const std::string& where);

}  // namespace evald
