"""The results of each part: results/<part>.json and <part>.log."""

import json
import os
import threading
import time

SETTLED = ("passed", "missed", "failed", "skipped")


class Results:
    """One JSON file for each part, written whole. If a part was cut off, its file says so and lists the steps that
    are done."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._adding = threading.Lock()

    def read(self, part):
        try:
            return json.loads((self.folder / f"{part}.json").read_text())
        except (OSError, ValueError):
            return {}

    def _write(self, part, result):
        path = self.folder / f"{part}.json"
        temporary = path.with_suffix(".json.part")
        temporary.write_text(json.dumps(result, indent=1) + "\n")
        os.replace(temporary, path)

    def status(self, part):
        """passed, missed (below a bar), failed, skipped, stopped (goes on later), or "" if the part has no result."""
        return self.read(part).get("status", "")

    def settled(self, part):
        return self.status(part) in SETTLED

    def log_path(self, part):
        return self.folder / f"{part}.log"

    def forget(self, part):
        for path in (self.folder / f"{part}.json", self.log_path(part)):
            path.unlink(missing_ok=True)

    def begin(self, part):
        result = self.read(part)
        result.update(part=part, status="stopped", message="it was cut off", began=now())
        self._write(part, result)

    def steps(self, part):
        """The steps of a part that are done, with their results."""
        return self.read(part).get("steps", {})

    def add_step(self, part, name, outcome):
        """Any thread may call this function."""
        with self._adding:
            result = self.read(part)
            result.setdefault("steps", {})[name] = outcome
            self._write(part, result)

    def end(self, part, status, message, figures, seconds):
        result = self.read(part)
        result.update(part=part, status=status, message=message, figures=figures, ended=now(),
                      seconds=round(result.get("seconds", 0) + seconds, 3))
        self._write(part, result)

    def write_summary(self, parts):
        lines = []
        for name, title in parts:
            result = self.read(name)
            seconds = f"{result['seconds']:.0f} s" if "seconds" in result else ""
            lines.append(f"{name:13} {result.get('status') or 'to do':8} {seconds:>6}  {title}")
            if result.get("message"):
                lines.append(f"{'':13} {result['message']}")
        (self.folder / "summary.txt").write_text("\n".join(lines) + "\n")


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
