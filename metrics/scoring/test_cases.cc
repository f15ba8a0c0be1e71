#include "metrics/scoring/test_cases.h"

#include <fmt/format.h>

#include "base/jsonl.h"
#include "base/text.h"
#include "evald/error.h"

namespace evald {
namespace {

constexpr size_t kShownBytes = 100;

[[noreturn]] void RefuseTests(const std::string& where, const Json& found) {
  throw Error(ErrorKind::kInput,
              fmt::format("{}: found {}, expected tests: a list of {{\"input\", \"output\"}}, or "
                          "{{\"inputs\": [...], \"outputs\": [...]}}",
                          where, Shortened(ToLine(found), kShownBytes)));
}

/// The JSON that a column holds as text, packed or not.
Json Parsed(const Json& column, const std::string& where) {
  if (!column.is_string()) return column;
  const std::string& text = column.get_ref<const std::string&>();
  const std::string_view trimmed = Trim(text);
  if (trimmed.empty()) return nullptr;
  if (trimmed[0] == '[' || trimmed[0] == '{') return ParseJson(trimmed, where);
  return ParseJson(UnpackCases(trimmed, where), where);
}

/// Texts of several lines may be a list of lines, as APPS has them.
Json Joined(const Json& value, bool function) {
  if (function || !value.is_array()) return value;
  std::string text;
  for (const Json& line : value) {
    if (!line.is_string()) return value;
    text += line.get_ref<const std::string&>() + "\n";
  }
  return text;
}

void Add(const Json& input, const Json& expected, const std::string& where, TestCases* tests) {
  const bool function = !tests->function.empty();
  TestCase added = {Joined(input, function), Joined(expected, function)};
  if (!function && (!added.input.is_string() || !added.expected.is_string())) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: test {} has the input {} and the output {}, expected texts", where,
                            tests->cases.size() + 1, Shortened(ToLine(input), kShownBytes),
                            Shortened(ToLine(expected), kShownBytes)));
  }
  tests->cases.push_back(std::move(added));
}

void AddList(const Json& list, const std::string& where, TestCases* tests) {
  for (const Json& one : list) {
    if (!one.is_object() || !one.contains("input") || !one.contains("output"))
      RefuseTests(where, one);
    const bool functional = one.value("testtype", Json()) == "functional";
    if (functional && tests->function.empty()) {
      throw Error(ErrorKind::kInput, where + ": the tests call a function, and nothing names it",
                  "name the column with {\"func_name\": ...} by 'metadata' of the metric");
    }
    Add(one["input"], one["output"], where, tests);
  }
}

void AddPairs(const Json& pairs, const std::string& where, TestCases* tests) {
  const Json inputs = pairs.value("inputs", Json());
  const Json outputs = pairs.value("outputs", Json());
  if (!inputs.is_array() || !outputs.is_array()) RefuseTests(where, pairs);
  if (inputs.size() != outputs.size()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: found {} inputs and {} outputs, expected as many of each", where,
                            inputs.size(), outputs.size()));
  }
  if (pairs.contains("fn_name") && pairs["fn_name"].is_string())
    tests->function = pairs["fn_name"].get<std::string>();
  for (size_t i = 0; i < inputs.size(); ++i) Add(inputs[i], outputs[i], where, tests);
}

}  // namespace

void AddCases(const Json& column, const std::string& where, TestCases* tests) {
  const Json found = Parsed(column, where);
  if (found.is_null()) return;
  if (found.is_array()) {
    AddList(found, where, tests);
  } else if (found.is_object()) {
    AddPairs(found, where, tests);
  } else {
    RefuseTests(where, found);
  }
}

std::string FunctionOf(const Json& metadata, const std::string& where) {
  const Json found = metadata.is_string()
                         ? (Trim(metadata.get_ref<const std::string&>()).empty()
                                ? Json()
                                : ParseJson(metadata.get_ref<const std::string&>(), where))
                         : metadata;
  if (found.is_null()) return "";
  if (!found.is_object()) {
    throw Error(ErrorKind::kInput, fmt::format("{}: found {}, expected an object with 'func_name'",
                                               where, Shortened(ToLine(found), kShownBytes)));
  }
  return FieldOr<std::string>(found, "func_name", "", where);
}

}  // namespace evald
