"""evald_task: reads calls from a descriptor and writes answers to one, a JSON object a line.

A call is {"call": name, ...}; after one with "bytes", so many bytes follow. Its answer is {"ok": {...}} or {"error": {"type", "message", "at", "document", "missing"}}.
Before it answers, this process may ask for a file of the task's folders: {"want": path}. evald's next line is then the
file: {"file": its bytes as Latin-1}, {"folder": true} for a folder, {} for none.
Standard output and standard error belong to the functions.
"""
import json
import os
import sys
import tempfile
import traceback

from . import stand_ins, starts
from .calls import AtDocument, Calls
from .files import Files

OWN = ("<evald_task", "<frozen", os.path.dirname(os.path.abspath(__file__)))


class Channel:
    """The connection to evald: the descriptors of its two directions."""

    def __init__(self, calls, answers):
        self.calls, self.answers = open(calls, "rb"), open(answers, "wb")

    def receive(self):
        """The next message; None at the end."""
        line = self.calls.readline()
        return json.loads(line) if line.endswith(b"\n") else None

    def send(self, message):
        self.answers.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self.answers.flush()

    def ask_for_file(self, path):
        self.send({"want": path})
        return self.receive() or {}


def place_of(error, files):
    """The innermost line of a file of the task: "/tasks/x/utils.py:12"."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{files.real(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(OWN)]
    of_task = [frame for frame in theirs if frame.filename.startswith(files.mirror)]
    last = (of_task or theirs)[-1:]
    return f"{files.real(last[0].filename)}:{last[0].lineno}" if last else ""


def fault(error, files):
    document = None
    if isinstance(error, AtDocument):
        document, error = error.document, error.cause
    message = str(error)[:4000].replace(files.mirror, "")
    told = {"type": type(error).__name__, "message": message, "at": place_of(error, files)}
    if document is not None:
        told["document"] = document
    if isinstance(error, ModuleNotFoundError) and error.name:
        told["missing"] = error.name.split(".")[0]
    return told


def main(calls, answers, boxed):
    """`boxed`: the sandbox lets no program start."""
    if boxed:
        starts.watch()
    channel = Channel(calls, answers)
    files = Files(channel.ask_for_file, os.path.join(tempfile.gettempdir(), "evald_task"))
    served = Calls(stand_ins.install(files), files)
    while (message := channel.receive()) is not None:
        if "bytes" in message:
            message["data"] = channel.calls.read(message.pop("bytes"))
        try:
            name = message.pop("call")
            work = served.named(name)
            answer = {"ok": starts.call(name, lambda: work(**message))}
        except (Exception, SystemExit) as error:
            answer = {"error": fault(error, files)}
        sys.stdout.flush()
        channel.send(answer)
