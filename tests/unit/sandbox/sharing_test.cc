// Data that a program could share with the next program, with one beside it, or with the host.

#include <fcntl.h>
#include <sys/file.h>

#include "base/file.h"
#include "metrics/sandbox/interpreter.h"
#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

TEST_F(Isolated, StandardStreamsAreOpenedAnewForEachProgram) {
  const std::string look =
      "import fcntl, os\n"
      "for fd in (0, 1, 2):\n"
      "  flags = fcntl.fcntl(fd, fcntl.F_GETFL)\n"
      "  assert flags & (os.O_APPEND | os.O_NONBLOCK | os.O_ASYNC) == 0, (fd, flags)\n";
  ExpectPasses(look +
               "for fd in (0, 1, 2):\n"
               "  fcntl.fcntl(fd, fcntl.F_SETFL, os.O_APPEND | os.O_NONBLOCK)\n"
               "assert fcntl.fcntl(0, fcntl.F_GETFL) & os.O_APPEND");
  ExpectPasses(look);
}

TEST_F(Isolated, SignalsFromFilesAreRefused) {
  ExpectPasses(
      "import fcntl, sys\n"
      "F_SETSIG, F_SETOWN_EX = 10, 15\n"
      "file = open(sys.executable, 'rb')\n"
      "folder = __import__('os').open('/', 0)\n"
      "for fd, command, value in [(0, fcntl.F_SETOWN, 1), (0, F_SETSIG, 10), (0, F_SETOWN_EX, "
      "bytes(8)),\n"
      "                           (file, fcntl.F_SETLEASE, fcntl.F_RDLCK), (folder, "
      "fcntl.F_NOTIFY, 1),\n"
      "                           (file, 1036, bytes(8))]:\n"  // F_SET_RW_HINT
      "  try: fcntl.fcntl(fd, command, value)\n"
      "  except OSError: pass\n"
      "  else: raise AssertionError((fd, command))");
}

/// The host holds locks on files that programs can open. A program that asks for the same locks
/// gets an answer as if they were free, since it takes none on the host's inode.
TEST_F(Isolated, LocksDoNotReachTheHostsFiles) {
  const std::string python = sandbox::FindInterpreter(options_.python).executable;
  const UniqueFd executable(open(python.c_str(), O_RDONLY | O_CLOEXEC));
  const UniqueFd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_EQ(flock(executable.get(), LOCK_EX | LOCK_NB), 0);
  ASSERT_EQ(flock(null.get(), LOCK_EX | LOCK_NB), 0);
  struct flock whole = {};
  whole.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(null.get(), F_OFD_SETLK, &whole), 0);
  ExpectPasses("import fcntl\nfile = open('" + python +
               "', 'rb')\n"
               "fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
               "fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)\n"
               "fcntl.flock(0, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
               "fcntl.lockf(0, fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
               "fcntl.lockf(0, fcntl.LOCK_EX)");
}

TEST_F(Isolated, ProgramsThatLockTheirOwnFilesWork) {
  ExpectPasses(
      "import fcntl, sqlite3, tempfile\n"
      "with open('lock', 'w') as file:\n"
      "  fcntl.flock(file, fcntl.LOCK_EX)\n"
      "  fcntl.lockf(file, fcntl.LOCK_EX)\n"
      "  fcntl.flock(file, fcntl.LOCK_UN)\n"
      "base = sqlite3.connect('data.db')\n"
      "base.execute('create table t (x)')\n"
      "base.executemany('insert into t values (?)', [(i,) for i in range(100)])\n"
      "base.commit()\n"
      "base.close()\n"
      "assert sqlite3.connect('data.db').execute('select sum(x) from t').fetchone() == (4950,)\n"
      "with tempfile.NamedTemporaryFile(delete=False) as file: file.write(b'x')");
}

}  // namespace
}  // namespace evald::sandbox_test
