"""Notices functions that try to start a program. The sandbox refuses that; but a function may take the failure for a wrong
answer, which would be no score of the model."""
import sys

EVENTS = ("os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system", "subprocess.Popen")
SCORING = ("filter", "check_filter", "metric", "process_results", "aggregate")

tried = []


def is_importing():
    """Modules look for programs while they are imported, and do without them."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def notice(event, arguments):
    if event in EVENTS and not is_importing():
        tried.append(f"{event}{tuple(arguments)[:2]!r:.200}" if arguments else event)


def watch():
    sys.addaudithook(notice)


def call(name, work):
    """Does the work of a call. Throws if a function that scores has tried to start a program."""
    tried.clear()
    answer = work()
    if tried and name in SCORING:
        raise PermissionError(f"the function tries to start a program ({tried[0]}), which task code may not; what it gives then is no "
                              "score")
    return answer
