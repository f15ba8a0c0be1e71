"""Starts processes for a test and ends them, and whatever they started, when the test ends in any way.

Reads lines of JSON: {"argv": [...], "environment": {...}, "log": "path"}. Answers each with the process id. When
standard input ends, which it also does if the test is killed, every descendant is killed, daemons included: the keeper
is the parent of orphans (PR_SET_CHILD_SUBREAPER).
"""
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from processes import processes

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
LIBC = ctypes.CDLL(None, use_errno=True)


def children_of(parent):
    """Process ids of the children of a process, zombies included."""
    return [int(entry.name) for entry, fields in processes() if int(fields[1]) == parent]


def kill_descendants():
    """Returns after the last descendant is gone: a killed process leaves its children to this one."""
    while True:
        children = children_of(os.getpid())
        if not children:
            return
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def reap():
    """Collects ended processes as long as there may be some."""
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            time.sleep(0.05)


def start(order):
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    pid = os.fork()
    if pid == 0:
        os.setsid()
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        try:
            os.execvpe(order["argv"][0], order["argv"], order["environment"])
        finally:
            os._exit(127)
    os.close(log)
    return pid


def main():
    if LIBC.prctl(PR_SET_CHILD_SUBREAPER, 1) != 0:
        sys.exit("prctl(PR_SET_CHILD_SUBREAPER) fails")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=reap, daemon=True).start()
    for line in sys.stdin:
        print(start(json.loads(line)), flush=True)
    kill_descendants()


class ProcessKeeper:
    """The keeper as a test uses it."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-B", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, start_new_session=True)

    def start(self, argv, log, environment):
        """Starts a process in a session of its own. Returns its id."""
        order = {"argv": list(map(str, argv)), "environment": environment, "log": str(log)}
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def close(self):
        """Kills everything that was started here, and waits until it is gone."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


if __name__ == "__main__":
    main()
