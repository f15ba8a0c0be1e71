"""Answers of mathematics, compared by value with the package math-verify."""
import faulthandler
import inspect
import signal


class OverTime(BaseException):
    """A pair takes more processor time than it may. Code that catches Exception does not take this for an answer."""


def limited(seconds, work):
    """What `work` gives. Throws OverTime after so many seconds of processor time. Python notices a signal between two of its
    own steps. A long step of C ends with the process, after twelve times as long by the clock: no signal ends the first
    process of a sandbox."""
    late = []

    def over(number, frame):
        late.append(number)
        raise OverTime

    signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds, seconds / 10)
    faulthandler.dump_traceback_later(12 * seconds, exit=True)
    try:
        given = work()
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()
    if late:  # somebody has caught it
        raise OverTime
    return given


def without_alarm(function, name):
    """The settings that keep the package from its own limit of wall time, which depends on the machine's load."""
    return {name: None} if name in inspect.signature(function).parameters else {}


def marked(gold):
    """The gold answer in a form in which math-verify looks for mathematics: mostly it is the content of a box alone."""
    return gold if "\\boxed" in gold or "$" in gold else "\\boxed{" + gold + "}"


def compare(gold, answer, settings, seconds):
    """{"equal": whether the answer has the value of the gold one}, or {"over": true} beyond the limit of processor time."""
    from math_verify import parse, verify
    parsing, verifying = without_alarm(parse, "parsing_timeout"), without_alarm(verify, "timeout_seconds")

    def work():
        return verify(parse(marked(gold), **parsing), parse(answer, **parsing), **settings, **verifying)

    try:
        return {"equal": bool(limited(seconds, work))}
    except OverTime:
        return {"over": True}
