// Python programs around a function.
#include <fmt/format.h>

#include "evald/json.h"
#include "metrics/scoring/program_tests.h"

namespace evald {
namespace {

// The modules whose names a program may use without importing them, in LiveCodeBench's order.
constexpr const char* kAllNamesOf[] = {
    "string",   "re",   "datetime", "collections", "heapq",     "bisect",
    "copy",     "math", "random",   "statistics",  "itertools", "functools",
    "operator", "io",   "sys",      "json",        "builtins",  "typing"};
constexpr const char* kModules[] = {
    "string", "re",         "datetime",  "collections", "heapq",    "bisect", "copy", "math",
    "random", "statistics", "itertools", "functools",   "operator", "io",     "sys",  "json"};

// The code runs in a module of its own, with what it prints thrown away. A value is taken as the
// tests have it: a tuple as a list, and a list of one value for the value (APPS).
constexpr const char* kAround = R"(import json as _json, os as _os, sys as _sys, types as _types
_told = _os.fdopen(_os.dup(1), 'w')
_os.dup2(_os.open('/dev/null', _os.O_WRONLY), 1)
_case = _json.loads(_sys.stdin.readline())
_module = _types.ModuleType('solution')
_sys.modules['solution'] = _module
_code = _json.loads({code})
exec(compile(_code, 'solution.py', 'exec'), _module.__dict__)
_owner = _module.Solution() if 'class Solution' in _code else _module
_given = _case['arguments']
if isinstance(_given, str):
    _given = [_json.loads(line) for line in _given.split('\n')]
_wanted = _case['expected']
_exact = isinstance(_wanted, str)
if _exact:
    _wanted = _json.loads(_wanted)
_value = getattr(_owner, _json.loads({function}))(*_given)
if isinstance(_value, tuple):
    _value = list(_value)
_same = _value == _wanted
if not _same and not _exact and isinstance(_wanted, list) and _wanted:
    _same = _value == _wanted[0]
if not _same:
    _sys.exit('wrong answer: ' + repr(_value)[:100] + ', expected ' + repr(_wanted)[:100])
_told.write(_case['key'])
_told.flush()
)";

// A text as a literal of Python that holds JSON: all escapes of JSON in ASCII are those of Python,
// but for the backslash itself.
std::string Literal(const std::string& text) {
  const std::string json = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  return Json(json).dump(-1, ' ', true);
}

void ReplaceFirst(std::string* text, const std::string& what, const std::string& with) {
  text->replace(text->find(what), what.size(), with);
}

}  // namespace

std::string Preamble(const std::string& name) {
  if (name.empty()) return "";
  std::string text;
  for (const char* module : kAllNamesOf) text += fmt::format("from {} import *\n", module);
  for (const char* module : kModules) text += fmt::format("import {}\n", module);
  return text + "sys.setrecursionlimit(50000)\n";
}

std::string CallingProgram(const std::string& code, const std::string& function,
                           const std::string& preamble) {
  std::string program = kAround;
  ReplaceFirst(&program, "{code}", Literal(Preamble(preamble) + "\n\n" + code));
  const size_t behind = program.find("_owner = ");
  program.replace(program.find("{function}", behind), 10, Literal(function));
  return program;
}

}  // namespace evald
