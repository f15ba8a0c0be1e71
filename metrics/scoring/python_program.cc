#include "metrics/scoring/python_program.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "evald/json.h"
#include "metrics/scoring/output_match.h"

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

// A call runs in a module of its own. Values are taken as the tests have them: a tuple as a list,
// and a list of one value for the value (APPS).
constexpr const char* kCall = R"(import json as _json, os as _os, sys as _sys, types as _types
_text = _json.loads({code})
_code = compile(_text, 'solution.py', 'exec')
def _wrong(function, given, wanted):
    module = _types.ModuleType('solution')
    _sys.modules['solution'] = module
    exec(_code, module.__dict__)
    owner = module.Solution() if 'class Solution' in _text else module
    if isinstance(given, str):
        given = [_json.loads(line) for line in given.split('\n')]
    exact = isinstance(wanted, str)
    if exact:
        wanted = _json.loads(wanted)
    value = getattr(owner, function)(*given)
    if isinstance(value, tuple):
        value = list(value)
    same = value == wanted
    if not same and not exact and isinstance(wanted, list) and wanted:
        same = value == wanted[0]
    return None if same else 'wrong answer: ' + repr(value)[:100] + ', expected ' + repr(wanted)[:100]
)";

// One call, with what it prints thrown away.
constexpr const char* kOneCall = R"(_told = _os.fdopen(_os.dup(1), 'w')
_os.dup2(_os.open('/dev/null', _os.O_WRONLY), 1)
_case = _json.loads(_sys.stdin.readline())
_why = _wrong(_json.loads({function}), _case['arguments'], _case['expected'])
if _why:
    _sys.exit(_why)
_told.write(_case['key'])
_told.flush()
)";

// All calls, one after the other, in the interpreter of pass_at_k.
constexpr const char* kAllCalls = R"(import time as _time
for _index, (_given, _wanted) in enumerate(_json.loads({tests})):
    _start = _time.process_time()
    try:
        _why = _wrong(_json.loads({function}), _given, _wanted)
    except BaseException:
        _why = 'raised'
    if _why or _time.process_time() - _start > {seconds}:
        raise AssertionError('test ' + str(_index))
)";

constexpr const char* kOneOfAllCalls =
    R"(_why = _wrong(_json.loads({function}), *_json.loads({tests})[0])
if _why:
    raise AssertionError(_why)
)";

// A run within the interpreter of pass_at_k. Descriptors 0 and 1 are files, so that `open(0)`,
// `os.write` and the like work. A run is over when its threads are.
constexpr const char* kRun =
    R"(import atexit as _atexit, decimal as _decimal, hashlib as _hashlib, json as _json, os as _os
import sys as _sys, threading as _threading, time as _time, types as _types
_code = compile(_json.loads({code}), 'main.py', 'exec')
_in, _out = (_os.open('/tmp', _os.O_RDWR | _os.O_TMPFILE, 0o600) for _ in range(2))
def _start(text):
    for file in (_in, _out):
        _os.ftruncate(file, 0)
        _os.lseek(file, 0, 0)
    data = memoryview(text.encode())
    while len(data):
        data = data[_os.write(_in, data):]
    _os.lseek(_in, 0, 0)
    _os.dup2(_in, 0)
    _os.dup2(_out, 1)
    _sys.stdin = open(0, encoding='utf-8', errors='surrogateescape', closefd=False)
    _sys.stdout = open(1, 'w', encoding='utf-8', errors='surrogateescape', closefd=False)
def _lines(text):
    return [line.strip() for line in text.strip().split('\n')]
# The lines of the output; None if the status is not 0
def _run(text):
    _start(text)
    module = _types.ModuleType('__main__')
    module.__dict__.update(__file__='main.py', exit=_sys.exit, quit=_sys.exit)
    _sys.modules['__main__'] = module
    own = _sys.stdout
    status = 0
    try:
        exec(_code, module.__dict__)
    except SystemExit as end:
        status = end.code
    for thread in _threading.enumerate():
        if thread is not _threading.current_thread() and not thread.daemon:
            thread.join()
    _atexit._run_exitfuncs()
    for stream in (_sys.stdout, own):
        if not stream.closed:
            stream.flush()
    if status not in (None, 0):
        return None
    return _lines(_os.pread(_out, _os.fstat(_out).st_size, 0).decode('utf-8', 'replace'))
)";

// All runs, one after the other. Of the expected output only a hash is here.
constexpr const char* kAllRuns = R"(def _hash(lines):
    return _hashlib.sha256('\n'.join(lines).encode()).hexdigest()
for _index, (_given, _wanted) in enumerate(_json.loads({tests})):
    _began = _time.process_time()
    try:
        _found = _run(_given)
        _right = _found is not None and _hash(_found) == _wanted
    except BaseException:
        _right = False
    if not _right or _time.process_time() - _began > {seconds}:
        raise AssertionError('test ' + str(_index))
)";

// One run, whose output is compared as LiveCodeBench does.
constexpr const char* kOneRun = R"(def _numbers(line):
    return [_decimal.Decimal(word) for word in line.split()]
def _same(found, wanted):
    try:
        return found == wanted or _numbers(found) == _numbers(wanted)
    except _decimal.InvalidOperation:
        return False
_given, _wanted = _json.loads({tests})[0]
_found, _wanted = _run(_given), _lines(_wanted)
if _found is None:
    raise ValueError('the status is not 0')
for _index, (_left, _right) in enumerate(zip(_found, _wanted)):
    if not _same(_left, _right):
        raise AssertionError('wrong answer: line %d is %.60r, expected %.60r' % (_index + 1, _left, _right))
if len(_found) != len(_wanted):
    raise AssertionError('wrong answer: found %d lines, expected %d' % (len(_found), len(_wanted)))
)";

// Whoever ends the process before the last line has not passed. Tests are given by unittest's own
// loader, in the order of their names.
constexpr const char* kAroundTests =
    R"(import json as _json, os as _os, sys as _sys, types as _types, unittest as _unittest
_told = _os.fdopen(_os.dup(1), 'w')
_os.dup2(_os.open('/dev/null', _os.O_WRONLY), 1)
_key = _json.loads(_sys.stdin.readline())['key']
_module = _types.ModuleType('__test__')
_module.__dict__.update(__file__='__test__.py', __package__=None, sys=_sys, os=_os, environ=_os.environ)
exec(compile(_json.loads({code}), '__test__.py', 'exec'), _module.__dict__)
_sys.modules['__test__'] = _module
_result = _unittest.TestResult()
_unittest.TestLoader().loadTestsFromTestCase(_module.TestCases).run(_result)
_wrong = _result.failures + _result.errors
if _wrong:
    _sys.exit(_wrong[0][0].id() + ': ' + _wrong[0][1].strip().rsplit('\n', 1)[-1][:300])
_told.write(_key)
_told.flush()
_os._exit(0)
)";

// JSON as a literal of Python, a text of it: all escapes of JSON in ASCII are those of Python, but
// for the backslash itself.
std::string Literal(const Json& value) {
  const auto ascii = [](const Json& json) {
    return json.dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  return ascii(Json(ascii(value)));
}

// The program with its places filled, which are named in their order. What is filled in may hold
// the names of others.
std::string Filled(std::string program,
                   const std::vector<std::pair<std::string_view, std::string>>& places) {
  size_t at = 0;
  for (const auto& [name, text] : places) {
    at = program.find(name, at);
    program.replace(at, name.size(), text);
    at += text.size();
  }
  return program;
}

}  // namespace

std::string Preamble(const std::string& name) {
  if (name.empty()) return "";
  std::string text;
  for (const char* module : kAllNamesOf) text += fmt::format("from {} import *\n", module);
  for (const char* module : kModules) text += fmt::format("import {}\n", module);
  return text + "sys.setrecursionlimit(50000)\n";
}

std::string CallingProgram(const std::string& code, const std::string& function) {
  return Filled(kCall, {{"{code}", Literal(code)}}) +
         Filled(kOneCall, {{"{function}", Literal(function)}});
}

std::string AllTestsProgram(const std::string& code, const TestCases& tests, double cpu_seconds) {
  Json cases = Json::array();
  for (const TestCase& test : tests.cases) {
    const Json expected = tests.function.empty()
                              ? Json(HashOfOutput(test.expected.get_ref<const std::string&>()))
                              : test.expected;
    cases.push_back(Json::array({test.input, expected}));
  }
  const std::string seconds = fmt::format("{}", cpu_seconds);
  if (tests.function.empty()) {
    return Filled(kRun, {{"{code}", Literal(code)}}) +
           Filled(kAllRuns, {{"{tests}", Literal(cases)}, {"{seconds}", seconds}});
  }
  return Filled(kCall, {{"{code}", Literal(code)}}) +
         Filled(kAllCalls, {{"{tests}", Literal(cases)},
                            {"{function}", Literal(tests.function)},
                            {"{seconds}", seconds}});
}

std::string OneTestProgram(const std::string& code, const TestCases& tests, size_t index) {
  const TestCase& test = tests.cases[index];
  const std::string cases = Literal(Json::array({Json::array({test.input, test.expected})}));
  if (tests.function.empty())
    return Filled(kRun, {{"{code}", Literal(code)}}) + Filled(kOneRun, {{"{tests}", cases}});
  return Filled(kCall, {{"{code}", Literal(code)}}) +
         Filled(kOneOfAllCalls, {{"{function}", Literal(tests.function)}, {"{tests}", cases}});
}

std::string UnittestProgram(const std::string& code, const std::string& tests) {
  return Filled(kAroundTests, {{"{code}", Literal(code + "\n" + tests)}});
}

}  // namespace evald
