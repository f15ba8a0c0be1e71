// Programs that try to read or write memory by address, or to run their own machine code, without
// ctypes.

#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

/// `refused(attempt, ...)`: the attempt ends with the sandbox's own message, and not with an error
/// of the function that was called. CPython 3.13 and later refuse names themselves that are no text
/// or hold a NUL, before a library is looked for.
std::string Refused() {
  return "import glob, importlib, importlib.util, os, sys, types\n"
         "def refused(attempt, *arguments):\n"
         "  try: attempt(*arguments)\n"
         "  except (ImportError, OSError) as error: assert 'the sandbox refuses' in str(error), "
         "(arguments, error)\n"
         "  except ValueError: assert sys.version_info >= (3, 13), arguments\n"
         "  else: raise AssertionError(arguments)\n";
}

/// A library without executable pages loads from /tmp although /tmp is mounted noexec. The dynamic
/// loader would then call any address that the library's tables hold. A file of zeros tells a
/// refusal from the loader's own error.
TEST_F(Isolated, NoLibraryOfAProgramIsLoaded) {
  ExpectPasses(
      Refused() +
      "import _imp\n"
      "library = os.path.dirname(os.__file__)\n"
      "up = library + '/..' * library.count('/')\n"
      "def load(path): return _imp.create_dynamic(types.SimpleNamespace(name='x', origin=path))\n"
      "os.mkdir('sub')\n"
      "for path in ['x.so', 'sub/\\u00e9.so', '\\udcff.so', 'y.so']: open(path, "
      "'wb').write(bytes(4096))\n"
      "for path in ['/tmp/x.so', 'x.so', './x.so', '/dev/shm/x.so', '/tmp/sub/\\u00e9.so', "
      "'/tmp/\\udcff.so',\n"
      "             '/tmp//x.so', up + '/tmp/x.so', library + '/..' + '/../..' * "
      "library.count('/') + '/tmp/x.so',\n"
      "             library, library + '-x/x.so', '/', '', '/tmp/x.so\\0' + library, '..', library "
      "+ '/..']:\n"
      "  refused(load, path)\n"
      "sys.path.insert(0, '/tmp')\n"
      "refused(importlib.import_module, 'x')\n"
      "loader = importlib.machinery.ExtensionFileLoader('y', '/tmp/y.so')\n"
      "refused(importlib.util.module_from_spec, importlib.util.spec_from_loader('y', loader))\n"
      "open('own.py', 'w').write('answer = 42')\n"
      "assert importlib.import_module('own').answer == 42");
}

/// The hook that makes SQLite safe loads the file that the audit event names.
TEST_F(Isolated, AForgedAuditEventLoadsNothing) {
  ExpectPasses(Refused() +
               "os.mkdir('sub')\n"
               "open('sub/_sqlite3.so', 'wb').write(bytes(4096))\n"
               "json = [f for folder in sys.path for f in glob.glob(folder + '/_json.*so')]\n"
               "for path in ['/tmp/sub/_sqlite3.so', 'sub/_sqlite3.so', b'/tmp/sub/_sqlite3.so', "
               "['/tmp/sub/_sqlite3.so'], '\\udcff'] + json:\n"
               "  refused(sys.audit, 'import', '_sqlite3', path, None, None, None)\n"
               "  refused(sys.audit, 'import', 'a._sqlite3', path)\n"
               "sys.audit('import', '_sqlite3', None, None, None, None)\n"
               "sys.audit('import')\n"
               "import sqlite3\n"
               "assert sqlite3.connect(':memory:').execute('select 1').fetchone() == (1,)");
}

/// OpenSSL loads the libraries that its configuration names. It reads the configuration once,
/// before any program.
TEST_F(Isolated, OpenSslHasItsConfigurationAlready) {
  ExpectPasses(
      "import posix\n"
      "with open('own.cnf', 'w') as file:\n"
      "  "
      "file.write('openssl_conf=a\\n[a]\\nssl_conf=b\\n[b]\\nsystem_default=c\\n[c]\\nCiphersuites="
      "TLS_AES_128_GCM_SHA256')\n"
      "posix.putenv('OPENSSL_CONF', '/tmp/own.cnf')\n"
      "try: import ssl\n"
      "except ImportError: ssl = None\n"
      "if ssl:\n"
      "  suites = [c['name'] for c in ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).get_ciphers()]\n"
      "  assert len([name for name in suites if name.startswith('TLS_')]) > 1, suites");
}

/// Every extension module of the standard library loads, except those that are refused by name.
TEST_F(Isolated, TheLibrarysOwnModulesLoad) {
  ExpectPasses(
      Refused() +
      "for folder in sys.path:\n"
      "  for file in glob.glob(folder + '/*.so'):\n"
      "    name = os.path.basename(file).split('.')[0]\n"
      "    if name in sys.modules or name == 'ossaudiodev': continue\n"
      "    if name.startswith(('_test', '_xxtest', '_xxsub', '_interp', '_ctypes', '_tkinter')): "
      "refused(importlib.import_module, name)\n"
      "    else:\n"
      "      try: importlib.import_module(name)\n"
      "      except ImportError as error: assert 'No module named' in str(error) or "
      "'halted' in str(error) or "
      "          'in Python only' in str(error), error");
}

/// `handle` is the address of a semaphore. Reading and releasing the semaphore reads and writes
/// that memory.
TEST_F(Isolated, SemaphoresAreNotMadeOfAddresses) {
  ExpectPasses(Refused() +
               "import _imp, _multiprocessing, multiprocessing.synchronize\n"
               "file = importlib.util.find_spec('_multiprocessing').origin\n"
               "def refuses(module):\n"
               "  for rebuild in (getattr(module.SemLock, '_rebuild', None),\n"
               "                  vars(module.SemLock).get('_rebuild') and "
               "vars(module.SemLock)['_rebuild'].__get__(None, module.SemLock)):\n"
               "    if rebuild is not None: refused(rebuild, id(file), 1, 2 ** 31 - 1, None)\n"
               "refuses(_multiprocessing)\n"
               "class Own(_multiprocessing.SemLock): pass\n"
               "refuses(types.SimpleNamespace(SemLock=Own))\n"
               "del sys.modules['_multiprocessing']\n"
               "refuses(importlib.import_module('_multiprocessing'))\n"
               "for name in ['_multiprocessing', 'a._multiprocessing', 'x.y._multiprocessing']:\n"
               "  spec = types.SimpleNamespace(name=name, origin=file)\n"
               "  try: module = _imp.create_dynamic(spec) if file.startswith('/') else "
               "_imp.create_builtin(spec)\n"
               "  except ImportError: continue\n"
               "  if module is None: continue\n"
               "  _imp.exec_dynamic(module)\n"
               "  if hasattr(module, 'SemLock'): refuses(module)\n"
               "lock = multiprocessing.Lock()\n"
               "with lock: assert not lock.acquire(False)\n"
               "semaphore = multiprocessing.Semaphore(2)\n"
               "assert semaphore.acquire() and semaphore.get_value() == 1");
}

/// The C library uses the number of a thread as the address of the thread's data.
TEST_F(Isolated, ThreadsThatAreNotThereAreNotLookedFor) {
  ExpectPasses(
      "import signal, threading, time\n"
      "data = bytearray(b'\\1' * 8192)\n"
      "for thread in (0, 1, 4096, 2 ** 40, 2 ** 64 - 4096, id(data), -1):\n"
      "  for call in (lambda: signal.pthread_kill(thread, 0), lambda: "
      "time.pthread_getcpuclockid(thread)):\n"
      "    try: call()\n"
      "    except (OSError, OverflowError): pass\n"
      "    else: raise AssertionError(thread)\n"
      "own = threading.get_ident()\n"
      "time.pthread_getcpuclockid(own)\n"
      "got = []\n"
      "signal.signal(signal.SIGUSR1, lambda *a: got.append(a[0]))\n"
      "signal.pthread_kill(own, signal.SIGUSR1)\n"
      "assert got == [signal.SIGUSR1]\n"
      "stop = threading.Event()\n"
      "other = threading.Thread(target=stop.wait)\n"
      "other.start()\n"
      "signal.pthread_kill(other.ident, 0)\n"
      "assert time.clock_gettime(time.pthread_getcpuclockid(other.ident)) >= 0\n"
      "stop.set()\n"
      "for bad in ('x', None, 1.5):\n"
      "  try: time.pthread_getcpuclockid(bad)\n"
      "  except TypeError: pass\n"
      "  else: raise AssertionError(bad)");
}

/// fcntl and ioctl pass an integer on, and the kernel uses it as an address below 4 GiB. If the
/// interpreter is not position-independent, its types are there.
TEST_F(Isolated, IntegersAreNoAddressesForTheKernel) {
  ExpectPasses(
      Refused() +
      "import array, fcntl, mmap, struct, termios\n"
      "def attempt(call, *arguments):\n"
      "  try: call(*arguments)\n"
      "  except (OSError, TypeError) as error:\n"
      "    assert isinstance(error, TypeError) or 'the sandbox refuses' in str(error), error\n"
      "  else: raise AssertionError(arguments)\n"
      "class Index:\n"
      "  def __index__(self): return 0x100000\n"
      "class Buffer(bytearray):\n"
      "  def __index__(self): return 0x100000\n"
      "class Text(str):\n"
      "  def __index__(self): return 0x100000\n"
      "class Late(bytearray): pass\n"
      "file = open('file', 'wb+')\n"
      "pair = os.pipe()\n"
      "F_OFD_GETLK = 36\n"
      "def late(event, arguments):\n"
      "  if event.startswith('fcntl'): Late.__index__ = Index.__index__\n"
      "for value in (0, 1, 0x100000, Index(), Buffer(), Text('\\ud800'), True):\n"
      "  for command in (fcntl.F_GETLK, F_OFD_GETLK, 16, 1036, 12345):\n"
      "    attempt(fcntl.fcntl, file, command, value)\n"
      "  for request in (termios.FIONREAD, termios.FIONBIO, termios.FIOASYNC, termios.TCGETS, "
      "termios.TIOCGWINSZ):\n"
      "    attempt(fcntl.ioctl, pair[0], request, value)\n"
      "    attempt(fcntl.ioctl, pair[0], request, value, False)\n"
      "    attempt(fcntl.ioctl, pair[0], request - 2 ** 32, value)\n"
      "try: sys.addaudithook(late)\n"
      "except RuntimeError: pass\n"
      "attempt(fcntl.ioctl, pair[0], termios.FIONREAD, Late())\n"
      "attempt(fcntl.fcntl, file, fcntl.F_GETLK, Late())");
}

TEST_F(Isolated, DescriptorsAreAskedAndSetAsEver) {
  ExpectPasses(
      "import array, fcntl, os, struct, termios\n"
      "file = open('file', 'wb+')\n"
      "reader, writer = os.pipe()\n"
      "os.write(writer, b'abc')\n"
      "count = array.array('i', [0])\n"
      "fcntl.ioctl(reader, termios.FIONREAD, count)\n"
      "assert count[0] == 3\n"
      "assert struct.unpack('i', fcntl.ioctl(reader, termios.FIONREAD, bytes(4))) == (3,)\n"
      "assert struct.unpack('i', fcntl.ioctl(reader, termios.FIONREAD, '    ')) == (3,)\n"
      "for own in (bytearray(4), memoryview(bytearray(4))):\n"
      "  fcntl.ioctl(reader, termios.FIONREAD, own, True)\n"
      "  assert own[0] == 3\n"
      "fcntl.ioctl(reader, termios.FIONBIO, struct.pack('i', 1))\n"
      "assert not os.get_blocking(reader)\n"
      "fcntl.ioctl(reader, termios.FIONCLEX)\n"
      "assert os.get_inheritable(reader)\n"
      "fcntl.ioctl(reader, termios.FIOCLEX, 0)\n"
      "assert not os.get_inheritable(reader)\n"
      "flags = fcntl.fcntl(reader, fcntl.F_GETFL)\n"
      "fcntl.fcntl(reader, fcntl.F_SETFL, flags & ~os.O_NONBLOCK)\n"
      "assert fcntl.fcntl(reader, fcntl.F_GETFL) & os.O_NONBLOCK == 0\n"
      "assert fcntl.fcntl(reader, fcntl.F_GETFD, 0) == fcntl.FD_CLOEXEC\n"
      "fcntl.fcntl(reader, fcntl.F_SETFD, 0)\n"
      "copy = fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, 100)\n"
      "assert copy >= 100\n"
      "lock = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\n"
      "assert struct.unpack_from('h', lock)[0] == fcntl.F_UNLCK\n"
      "fcntl.fcntl(file, fcntl.F_SETLKW, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))\n"
      "fcntl.lockf(file, fcntl.LOCK_EX)\n"
      "try: termios.tcgetattr(file)\n"
      "except termios.error: pass\n"
      "assert not os.isatty(0)");
}

/// The second wall: memory that a program can write cannot be executed.
TEST_F(Isolated, MemoryThatCanBeWrittenIsNotExecutable) {
  ExpectPasses(
      "import mmap, os, sys\n"
      "R, W, X = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC\n"
      "own = os.open('own', os.O_RDWR | os.O_CREAT)\n"
      "os.write(own, bytes(4096))\n"
      "library = os.open(sys.executable, os.O_RDONLY)\n"
      "zero = os.open('/dev/zero', os.O_RDWR)\n"
      "anonymous = mmap.MAP_ANONYMOUS\n"
      "for file, flags, protection in [(-1, anonymous | mmap.MAP_PRIVATE, R | W | X), (-1, "
      "anonymous | mmap.MAP_PRIVATE, R | X),\n"
      "                                (-1, anonymous | mmap.MAP_SHARED, R | W | X), (-1, "
      "anonymous | mmap.MAP_PRIVATE, X),\n"
      "                                (own, mmap.MAP_SHARED, R | X), (own, mmap.MAP_PRIVATE, R | "
      "X),\n"
      "                                (zero, mmap.MAP_PRIVATE, R | W | X), (zero, "
      "mmap.MAP_PRIVATE, R | X),\n"
      "                                (library, mmap.MAP_PRIVATE, R | W | X), (library, "
      "mmap.MAP_SHARED, R | X)]:\n"
      "  try: mmap.mmap(file, 4096, flags=flags, prot=protection)\n"
      "  except PermissionError: pass\n"
      "  else: raise AssertionError((file, flags, protection))\n"
      "assert mmap.mmap(library, 4096, flags=mmap.MAP_PRIVATE, prot=R | X)[1:4] == b'ELF'\n"
      "assert mmap.mmap(-1, 4096)[0] == 0");
}

}  // namespace
}  // namespace evald::sandbox_test
