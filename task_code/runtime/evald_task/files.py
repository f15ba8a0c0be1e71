"""The files of the task's folders. This process cannot open them where they lie: evald hands them over one by one, when
they are first wanted, and they are kept in a mirror of their folders below this process's own folder."""
import os
import sys


class Files:
    """`ask` takes the path of a file and returns its answer: {"file": its bytes as Latin-1}, {"folder": true}, or {}."""

    def __init__(self, ask, mirror):
        self.ask, self.mirror = ask, mirror.rstrip("/")
        self.known = {}  # path: "file", "folder" or ""
        self.asking = False
        sys.addaudithook(self.opens)

    def local(self, path):
        """Where the mirror has, or would have, the file."""
        return self.mirror + os.path.normpath(path)

    def real(self, path):
        """The path on the host of a file in the mirror."""
        return path.removeprefix(self.mirror) if path.startswith(self.mirror + "/") else path

    def kind(self, path):
        """Fetches the file if it is wanted for the first time. "file", "folder", or "" if there is none."""
        path = os.path.normpath(path)
        if path not in self.known:
            self.known[path] = self.fetch(path)
        return self.known[path]

    def fetch(self, path):
        self.asking = True
        try:
            answer = self.ask(path)
            if "file" in answer:
                content = answer["file"].encode("latin-1")
                os.makedirs(os.path.dirname(self.local(path)), exist_ok=True)
                with open(self.local(path), "wb") as copy:
                    copy.write(content)
                return "file"
            return "folder" if answer.get("folder") else ""
        finally:
            self.asking = False

    def opens(self, event, arguments):
        """An audit hook: a file of the mirror that is opened is fetched first."""
        if event != "open" or self.asking or not isinstance(arguments[0], (str, os.PathLike)):
            return
        path = os.path.normpath(os.fspath(arguments[0]))
        if isinstance(path, str) and path.startswith(self.mirror + "/") and not path.endswith(".pyc"):
            self.kind(path[len(self.mirror):])
