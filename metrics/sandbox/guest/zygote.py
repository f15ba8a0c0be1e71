"""The warm interpreter of which every program gets a fork.

argv: the guest library's path, the characters of output that are kept, then folders to append to
sys.path. Nothing here may leave ctypes loaded: programs would find it.

Mirrors the state in which Hugging Face's code_eval executes a program (its reliability_guard, its
streams, its recursion depth; docs/sandbox.md lists the differences).
"""
import _imp
import builtins
import faulthandler
import functools
import gc
import importlib
import io
import os
import random
import shutil
import site
import subprocess
import sys
import tempfile
import types

# What solutions of HumanEval and MBPP import; each costs a fork nothing once it is loaded.
WARM = """abc array ast base64 bisect calendar cmath collections collections.abc contextlib copy
datetime decimal dataclasses difflib enum fractions functools hashlib heapq inspect io itertools
json keyword math numbers operator os pprint queue random re secrets statistics string struct sys
textwrap threading time traceback types typing unicodedata uuid warnings zlib""".split()

# What code_eval's executor has imported before its guard. multiprocessing asks for the working folder when it is
# imported, which the guard takes away.
EXECUTOR = "concurrent.futures multiprocessing platform signal".split()

# Modules within the interpreter's own file. Their code comes out of bytes (CPython 3.13 and later), which programs are
# refused (bytecode.cc).
FROZEN = "importlib.machinery importlib.util ntpath runpy zipimport".split()

# The names that code_eval's guard takes away.
GUARDED = {
    os: """kill system putenv remove removedirs rmdir fchdir setuid fork forkpty killpg rename renames
        truncate replace unlink fchmod fchown chmod chown chroot lchflags lchmod lchown getcwd
        chdir""",
    shutil: "rmtree move chown",
    subprocess: "Popen",
    builtins: "exit quit help",
}
HIDDEN_MODULES = ["ipdb", "joblib", "resource", "psutil", "tkinter"]

# Python frames below a program's own, as in code_eval's process; they count against the recursion
# limit.
FRAMES = 12


class ProgramStream(io.StringIO):
    """Standard input and output of a program: cannot be read, keeps the first `kept` characters."""

    kept = 0

    def write(self, text):
        if isinstance(text, str) and self.tell() + len(text) > self.kept:
            super().write(text[:max(0, self.kept - self.tell())])
            return len(text)
        return super().write(text)

    def read(self, *args, **kwargs):
        raise IOError

    def readline(self, *args, **kwargs):
        raise IOError

    def readlines(self, *args, **kwargs):
        raise IOError

    def readable(self, *args, **kwargs):
        return False


def warm():
    sys.modules["_ctypes"] = None  # no module shall load it in passing
    for name in WARM + EXECUTOR + FROZEN:
        importlib.import_module(name)
    del sys.modules["_ctypes"]
    site.setcopyright()  # builtins that come with `site`, which -S leaves out
    tempfile.tempdir = "/tmp"  # found out by then in code_eval; the guard would forbid it
    # A fork reseeds `random` from the kernel; a score must not depend on that.
    os.register_at_fork(after_in_child=functools.partial(random.seed, 0))


def guard():
    faulthandler.disable()
    os.environ.clear()
    os.environ["OMP_NUM_THREADS"] = "1"
    for module, names in GUARDED.items():
        for name in names.split():
            setattr(module, name, None)
    for name in HIDDEN_MODULES:
        sys.modules[name] = None


def descend(frames, call, argument):
    if frames > 0:
        return descend(frames - 1, call, argument)
    return call(argument)


def main():
    library, kept, *folders = sys.argv[1:]
    sys.argv[:] = [""]
    sys.path.extend(folders)
    ProgramStream.kept = int(kept)
    warm()
    guest = types.SimpleNamespace(name="evald_guest", origin=library)
    guard()
    sys.stdin = sys.stdout = sys.stderr = ProgramStream()
    gc.collect()
    gc.freeze()
    descend(FRAMES, _imp.create_dynamic, guest)  # its start function serves and never returns


main()
