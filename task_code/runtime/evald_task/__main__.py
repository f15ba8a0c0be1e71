"""python -m evald_task IN OUT: reads calls from the descriptor IN and writes answers to OUT, a JSON object a line.

A call is {"call": name, ...}. Its answer is {"ok": {...}} or {"error": {"type", "message", "at", "document", "missing"}}.
Standard output and standard error belong to the functions.
"""
import json
import os
import sys
import traceback

from . import stand_ins
from .calls import AtDocument, Calls

OWN = os.path.dirname(os.path.abspath(__file__))


def place_of(error):
    """The innermost line of a file of the task: "/tasks/x/utils.py:12"."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith((OWN, "<frozen"))]
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    return f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else ""


def fault(error):
    document = None
    if isinstance(error, AtDocument):
        document, error = error.document, error.cause
    told = {"type": type(error).__name__, "message": str(error)[:4000], "at": place_of(error)}
    if document is not None:
        told["document"] = document
    if isinstance(error, ModuleNotFoundError) and error.name:
        told["missing"] = error.name.split(".")[0]
    return told


def answer(calls, line):
    try:
        message = json.loads(line)
        return {"ok": calls.named(message.pop("call"))(**message)}
    except Exception as error:
        return {"error": fault(error)}


def main():
    calls = Calls(stand_ins.install())
    with open(int(sys.argv[1]), "rb") as lines, open(int(sys.argv[2]), "wb") as out:
        for line in lines:
            out.write(json.dumps(answer(calls, line), separators=(",", ":")).encode() + b"\n")
            out.flush()


if __name__ == "__main__":
    main()
