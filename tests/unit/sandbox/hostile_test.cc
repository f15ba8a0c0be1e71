// Hostile programs, and programs that look hostile.

#include <thread>

#include "base/text.h"
#include "tests/unit/sandbox/fixtures.h"

namespace evald::sandbox_test {
namespace {

using enum ProgramStatus;

/// The CPU time must decide, even if a busy machine gives the program little of it.
class BusyMachine : public Isolated {
 protected:
  BusyMachine() { options_.wall_seconds = 120; }
};

double SecondsOf(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST_F(BusyMachine, LoopsForEver) {
  ExpectStatus(kTimeout, "while True: pass", "1 s of CPU time");
  ExpectStatus(kTimeout, "while True:\n  try:\n    while True: pass\n  except BaseException: pass");
  ExpectPasses("x = 1");
}

TEST_F(BusyMachine, ThreadsThatBurnTimeCountTogether) {
  ExpectStatus(kTimeout,
               "import threading, hashlib\n"
               "def burn():\n"
               "  while True: hashlib.sha256(b'x' * 10000000)\n"
               "for _ in range(3): threading.Thread(target=burn).start()\n"
               "burn()",
               "CPU time");
}

TEST_F(Isolated, SleepsThroughSigterm) {
  options_.wall_seconds = 0.5;
  runner_ = MakeCodeRunner(options_);
  const double seconds = SecondsOf([&] {
    ExpectStatus(kTimeout,
                 "import signal, time\n"
                 "for s in range(1, 32):\n"
                 "  try: signal.signal(s, signal.SIG_IGN)\n"
                 "  except (OSError, ValueError): pass\n"
                 "while True: time.sleep(60)",
                 "0.5 s on the clock");
  });
  EXPECT_GE(seconds, 0.5);
  EXPECT_LT(seconds, 60.0);
  ExpectPasses("x = 1");
}

TEST_F(Isolated, PollingIsNoMoreThanSleeping) {
  options_.wall_seconds = 0.5;
  runner_ = MakeCodeRunner(options_);
  const auto other = MakeCodeRunner(options_);
  const char* const poll = "import time\nwhile True: time.sleep(0.0005)";
  const char* const verdict = "timed out: 0.5 s on the clock";
  const double seconds = SecondsOf([&] {
    std::thread beside([&] { EXPECT_EQ(other->Run(poll).detail, verdict); });
    EXPECT_EQ(Run(poll).detail, verdict);
    beside.join();
  });
  EXPECT_GE(seconds, 0.5);
  EXPECT_LT(seconds, 60.0);
}

TEST_F(Isolated, ForksAreRefused) {
  ExpectStatus(kFailed, "import os\nos.fork()", "TypeError");  // as under code_eval's guard
  ExpectStatus(kFailed, "import posix\nposix.fork()", "PermissionError");
  ExpectStatus(kFailed, "import os\nos.execv('/usr/bin/python3', ['x'])", "Error");
  ExpectStatus(kTimeout, "import posix\nwhile True:\n  try: posix.fork()\n  except OSError: pass");
}

TEST_F(IsolatedWithProcesses, ForksWithoutEnd) {
  ExpectStatus(kTimeout, "import posix\nwhile True:\n  try: posix.fork()\n  except OSError: pass");
  EXPECT_EQ(AwaitProcesses(65533, 1), 1u) << "only the zygote stays";
  ExpectPasses("x = 1");
}

TEST_F(IsolatedWithProcesses, ProcessesAreLimited) {
  ExpectPasses(
      "import posix, time\n"
      "started = 0\n"
      "try:\n"
      "  for _ in range(100):\n"
      "    if posix.fork() == 0: time.sleep(60)\n"
      "    started += 1\n"
      "except BlockingIOError: pass\n"
      "assert 5 <= started <= 64, started");
  EXPECT_EQ(AwaitProcesses(65533, 1), 1u);
}

TEST_F(IsolatedWithProcesses, DaemonisedGrandchildDies) {
  ExpectPasses(
      "import posix, os, time, signal\n"
      "r, w = os.pipe()\n"
      "if posix.fork() == 0:\n"
      "  os.setsid()\n"
      "  if posix.fork() == 0:\n"
      "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
      "    signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
      "    os.write(w, b'x')\n"
      "    while True: time.sleep(60)\n"
      "  os._exit(0)\n"
      "assert os.read(r, 1) == b'x'");
  EXPECT_EQ(AwaitProcesses(65533, 1), 1u);
}

TEST_F(IsolatedWithProcesses, KillsItsParent) {
  ASSERT_EQ(AwaitProcesses(65533, 1), 1u);
  const std::vector<int> before = ProcessesOf(65533);
  for (const char* target : {"posix.getppid()", "-1", "1", "2", "0"}) {
    Run(std::string("import posix\nposix.kill(") + target + ", 9)");
  }
  EXPECT_EQ(AwaitProcesses(65533, 1), 1u);
  EXPECT_EQ(ProcessesOf(65533), before) << "the zygote is the same";
  ExpectPasses("x = 1");
}

TEST_F(Isolated, SignalsAreRefused) {
  for (const char* target : {"posix.getppid()", "-1", "1", "0"}) {
    ExpectStatus(kFailed, std::string("import posix\nposix.kill(") + target + ", 9)",
                 "PermissionError");
  }
}

TEST_F(Isolated, AllocatesWithoutEnd) {
  ExpectStatus(kFailed, "x = []\nwhile True: x.append(bytearray(10000000))", "MemoryError");
  ExpectStatus(kFailed, "x = bytearray(10 ** 12)", "MemoryError");
  ExpectStatus(kFailed, "import mmap\nwhile True: globals()[len(globals())] = mmap.mmap(-1, 10**8)",
               "Error");
}

TEST_F(BusyMachine, FloodsItsOutput) {
  const auto patient = MakeCodeRunner([&] {
    SandboxOptions options = options_;
    options.cpu_seconds = 30;
    return options;
  }());
  const ProgramOutcome flood = patient->Run(
      "import os, sys\n"
      "for _ in range(300): os.write(1, b'\\xff' * 1000000); os.write(2, b'x' * 1000000)\n"
      "for _ in range(3000): print('x' * 100000)\n"
      "assert len(sys.stdout.getvalue()) < 100000");
  EXPECT_EQ(flood.detail, "passed");
  ExpectStatus(kTimeout, "while True: print('x' * 1000)", "CPU time");
}

TEST_F(Isolated, HostFilesAreNotThere) {
  ExpectPasses(
      "SOURCE = '" EVALD_SOURCE_DIR
      "'\n"
      "for path in ['/proc/1/environ', '/proc/self/maps', '/etc/shadow', '/etc/passwd', '/root',\n"
      "             '/home', '/sys', '/var', '/srv', '/dev/shm/evald-0', '/dev/mem', "
      "'/usr/bin/bash',\n"
      "             SOURCE]:\n"
      "  try: open(path).read()\n"
      "  except FileNotFoundError: pass\n"
      "  else: raise AssertionError(path)");
}

TEST_F(Isolated, SocketsCannotBeOpened) {
  ExpectPasses(
      "import socket\n"
      "for family in [socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, 17]:\n"
      "  try: socket.socket(family, socket.SOCK_DGRAM)\n"
      "  except OSError: pass\n"
      "  else: raise AssertionError(family)\n"
      "a, b = socket.socketpair()\n"
      "a.send(b'x'); assert b.recv(1) == b'x'");
}

/// The descriptors in flight count for the user, whom several sandboxes may share.
TEST_F(Isolated, SocketPairsPassNoDescriptors) {
  ExpectPasses(
      "import os, socket\n"
      "a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
      "def refused(attempt, *arguments):\n"
      "  try: attempt(*arguments)\n"
      "  except PermissionError: return\n"
      "  raise AssertionError(arguments)\n"
      "refused(socket.send_fds, a, [b'x'], [0])\n"
      "refused(a.sendmsg, [b'x'])\n"
      "refused(a.sendto, b'x', '/tmp/x')\n"
      "refused(a.sendto, b'x', '\\0x')\n"
      "refused(a.getsockopt, socket.SOL_SOCKET, 77)\n"
      "assert a.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE) == socket.SOCK_DGRAM\n"
      "assert a.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0\n"
      "a.send(b'x'); assert b.recvmsg(9)[0] == b'x'\n"
      "a.sendall(b'y'); assert b.recvfrom(9)[0] == b'y'\n"
      "a.settimeout(5); b.shutdown(socket.SHUT_RDWR)");
}

TEST_F(Isolated, KernelInterfacesAreClosed) {
  options_.allow_ctypes = true;
  runner_ = MakeCodeRunner(options_);
  ExpectPasses(
      "import ctypes, errno, platform\n"
      "libc = ctypes.CDLL(None, use_errno=True)\n"
      "def refused(name, *args):\n"
      "  ctypes.set_errno(0)\n"
      "  assert getattr(libc, name)(*args) == -1, name\n"
      "  assert ctypes.get_errno() in (errno.EPERM, errno.ENOSYS), (name, ctypes.get_errno())\n"
      "refused('unshare', 0x10000000)\n"
      "refused('mount', b'tmpfs', b'/tmp', b'tmpfs', 0, None)\n"
      "refused('umount2', b'/tmp', 2)\n"
      "refused('chroot', b'/tmp')\n"
      "refused('ptrace', 0, 0, None, None)\n"
      "refused('setuid', 0)\n"
      "refused('shmget', 1, 4096, 0o1600)\n"
      "refused('semget', 1, 1, 0o1600)\n"
      "refused('msgget', 1, 0o1600)\n"
      "refused('memfd_create', b'x', 0)\n"
      "refused('prctl', 38, 0, 0, 0, 0)\n"
      "refused('process_vm_readv', 1, None, 0, None, 0, 0)\n"
      "page = ctypes.c_void_p(ctypes.addressof(ctypes.create_string_buffer(1)) & ~4095)\n"
      "for advice in [4, 8, 9, 10, 11, 18, 19, 20, 21, 22, 23, 25, 100, 101]: refused('madvise', "
      "page, 4096, "
      "advice)\n"
      "refused('mincore', page, 4096, ctypes.create_string_buffer(1))\n"
      "for advice in [0, 1, 2, 3, 14, 15]:\n"
      "  assert libc.madvise(page, 4096, advice) == libc.madvise(4096, 4096, advice) == 0\n"
      "if platform.machine() == 'x86_64':\n"
      "  for number in [250, 321, 323, 425, 426, 427, 435, 434, 438, 101, 165, 155, 304]:\n"
      "    refused('syscall', number, 0, 0, 0, 0, 0)\n"
      "  refused('syscall', 56, 0x10000000 | 17, 0, 0, 0, 0)\n");
}

TEST_F(Isolated, WritesToBeFoundByTheNext) {
  const std::string look =
      "import os\n"
      "assert os.listdir('.') == [] and os.listdir('/tmp') == [], os.listdir('.')\n"
      "found = [os.path.join(d, n) for d in ('/tmp', '/dev', '/evald', '/etc') for n in "
      "os.listdir(d)]\n"
      "assert not any('found' in f for f in found), found\n";
  ExpectPasses(look +
               "open('found', 'w').write('x'); open('/tmp/found2', 'w').write('x')\n"
               "os.mkdir('d'); os.symlink('/', 'd/found3')\n"
               "for path in ['/found', '/evald/found', '/dev/found', '/etc/found', os.__file__,\n"
               "             os.path.dirname(os.__file__) + '/found', '/evald/guest.so']:\n"
               "  try: open(path, 'w')\n"
               "  except OSError: pass\n"
               "  else: raise AssertionError(path)\n"
               "import builtins, math\n"
               "builtins.found = math.found = 1; os.environ._data[b'FOUND'] = b'1'");
  ExpectPasses(look +
               "import builtins, math\n"
               "assert not hasattr(builtins, 'found') and not hasattr(math, 'found')\n"
               "assert dict(os.environ) == {'OMP_NUM_THREADS': '1'}, os.environ");
}

TEST_F(Isolated, FilesAreLimited) {
  ExpectStatus(kFailed, "open('big', 'wb').write(b'x' * (64 << 20))", "OSError");
  ExpectStatus(kFailed, "for i in range(40): open(str(i), 'wb').write(b'x' * (1 << 20))",
               "OSError");
  ExpectStatus(kFailed, "x = [open('/dev/null') for _ in range(1000)]", "OSError");
  ExpectStatus(kFailed, "for i in range(100000): open(str(i), 'w').close()", "OSError");
}

TEST_F(Isolated, EndsBeforeTheTests) {
  const char* const endings[] = {"import sys\nsys.exit(0)",
                                 "import os\nos._exit(0)",
                                 "raise SystemExit",
                                 "raise SystemExit(0)",
                                 "exit()",
                                 "quit()",
                                 "raise KeyboardInterrupt",
                                 "import atexit, os\natexit.register(os._exit, 0)\nassert 0",
                                 "import threading, os\nt = threading.Thread(target=os._exit, "
                                 "args=(0,))\nt.start(); t.join(); import time; time.sleep(1)",
                                 "import os, signal\nsignal.signal(signal.SIGALRM, lambda *a: "
                                 "os._exit(0))\nsignal.alarm(1)\nsignal.pause()"};
  for (const char* ending : endings) {
    ExpectStatus(kFailed, std::string(ending) + "\nassert True", "failed");
  }
}

TEST_F(Isolated, CrashesAreKills) {
  ExpectStatus(kKilled, "import faulthandler\nfaulthandler._read_null()", "Segmentation fault");
  EXPECT_NE(static_cast<int>(Run("import os\nos.abort()").status), static_cast<int>(kPassed));
}

TEST_F(Isolated, InheritsNothingAndNeedsNoDescriptor) {
  ExpectPasses(
      "import os, stat\n"
      "open_fds = []\n"
      "for fd in range(256):\n"
      "  try: os.fstat(fd); open_fds.append(fd)\n"
      "  except OSError: pass\n"
      "assert open_fds == [0, 1, 2], open_fds\n"
      "assert all(os.fstat(fd).st_rdev == os.makedev(1, 3) for fd in open_fds)\n"
      "os.closerange(0, 256)");
}

TEST_F(Isolated, WhatAnExceptionSaysIsMadeSafe) {
  const ProgramOutcome big = Run("raise ValueError('\\u00e9' * 100000)");
  EXPECT_LE(big.detail.size(), 500u);
  EXPECT_TRUE(IsUtf8(big.detail));
  EXPECT_TRUE(IsUtf8(Run("raise ValueError('\\ud800 \\x00')").detail));
  ExpectStatus(kFailed, "class E(Exception):\n  def __str__(self): raise ValueError\nraise E",
               "failed: E");
  ExpectStatus(kTimeout,
               "class E(Exception):\n  def __str__(self):\n    while True: pass\nraise E");
  ExpectStatus(kFailed, "class E(Exception):\n  def __str__(self): import os; os._exit(0)\nraise E",
               "failed: E");
}

}  // namespace
}  // namespace evald::sandbox_test
