"""Runs programs with a limit of time, and leaves no process behind."""

import ctypes
import os
import signal
import subprocess
import time

PR_SET_CHILD_SUBREAPER = 36


class Stopped(Exception):
    """The time was up."""


def adopt_orphans():
    """From now on a process whose parent ends becomes a child of this process, so that none is lost."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children_of(parents):
    """The children of these processes, from /proc."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                # The name, in parentheses, may contain spaces and parentheses.
                parent = int(file.read().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent in parents:
            found.append(int(entry))
    return found


def descendants():
    everyone, latest = [], [os.getpid()]
    while latest:
        latest = children_of(set(latest))
        everyone += latest
    return everyone


def end_descendants():
    """Kills every process below this one and waits for it. After adopt_orphans none can hide."""
    for _ in range(100):
        alive = descendants()
        if not alive:
            return
        for process in alive:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        reap()
        time.sleep(0.02)


def reap():
    try:
        while os.waitpid(-1, os.WNOHANG)[0] != 0:
            pass
    except ChildProcessError:
        pass


class Completed:
    def __init__(self, status, output, seconds):
        self.status = status
        self.output = output
        self.seconds = seconds


def run(command, seconds, log, **options):
    """Runs a program. Its standard error goes into the open file `log`. Its standard output is returned and logged.
    Raises Stopped if the program takes longer than its limit; all its processes are then dead."""
    log.write(f"$ {' '.join(map(str, command))}\n")
    log.flush()
    begin = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=log, start_new_session=True, **options)
    try:
        output, _ = process.communicate(timeout=max(0.1, seconds))
    except subprocess.TimeoutExpired:
        raise Stopped(f"{os.path.basename(str(command[0]))} was stopped after {seconds:.0f} s") from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()
    took = time.monotonic() - begin
    text = output.decode("utf-8", errors="replace")
    log.write(f"{text}\n[status {process.returncode}, {took:.1f} s]\n")
    log.flush()
    return Completed(process.returncode, text, took)
