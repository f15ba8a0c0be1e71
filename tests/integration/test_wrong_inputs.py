"""What evald says of wrong inputs: status and words of each case of wrong_inputs.py, held against
tests/golden/wrong_inputs.txt. With EVALD_WRITE_GOLDEN=1 the answers are written there, to be read by a person."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

from evald_case import BINARIES, QUICKSTART, SOURCE, EvaldCase
from service_case import ServiceCase
from wrong_inputs import CASES, Desk

GOLDEN = SOURCE / "tests" / "golden" / "wrong_inputs.txt"
WRITE = bool(os.environ.get("EVALD_WRITE_GOLDEN"))
# What differs from one machine, or one run, to the next
VOLATILE = [(re.compile(pattern), instead) for pattern, instead in (
    (r"\d\d:\d\d:\d\d\.\d\d\d ", "TIME "),
    (r"-20\d{6}-\d{6}(-\d+)?", "-DATE"),
    (r"127\.0\.0\.1( port |:)(?!99999)\d{4,5}", r"127.0.0.1\1PORT"),
    (r"\b(job|trial|pid) \d+", r"\1 N"),
    (r"evald: +[\d.]+ s  ", "evald: S s  "),
)]


def read_golden():
    answers = {}
    for part in GOLDEN.read_text().split("\n### ")[1:] if GOLDEN.exists() else ():
        name, _, text = part.partition("\n")
        answers[name] = text.strip("\n")
    return answers


def write_golden(answers):
    """Keeps the answers of other groups."""
    everything = {**read_golden(), **answers}
    order = [f"{group}: {name}" for group, cases in CASES.items() for name in cases]
    text = ["What evald says of wrong inputs (tests/integration/wrong_inputs.py).\n"]
    text += [f"\n### {name}\n{everything[name]}\n" for name in order if name in everything]
    GOLDEN.write_text("".join(text))


class WrongInputs(ServiceCase):
    WORKERS = 1
    LOG = ()
    maxDiff = None

    def plain(self, text, folder):
        text = text.replace(str(folder), "~").replace(str(BINARIES), "BIN").replace(str(QUICKSTART), "QUICKSTART")
        if self.daemon:
            text = text.replace(self.url, "SERVER")
        for pattern, instead in VOLATILE:
            text = pattern.sub(instead, text)
        return text.strip("\n")

    def asked(self, desk, wrong):
        """The answer to a command, or to a request of a service."""
        if isinstance(wrong, tuple):
            method, path, body = wrong
            from service_case import answer_to
            status, text = answer_to(self.url, method, path, body)
            problem = json.loads(text)
            words = "\n".join(f"{key}: {problem[key]}" for key in ("type", "detail", "remedy") if key in problem)
            return f"{method} {path}\nstatus {status}\n{self.plain(words, desk.folder)}"
        environment = {**os.environ, "HOME": str(desk.folder / "home"), "LC_ALL": "C.UTF-8", **desk.environment}
        for name in ("EVALD_SERVER", "EVALD_TOKEN", "EVALD_TOKEN_FILE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            environment.pop(name, None)
        done = self.evald(*wrong, cwd=desk.folder, env=environment, timeout=60)
        command = " ".join(str(word) for word in wrong)
        out = f"stdout: {done.stdout.strip()}\n" if done.stdout.strip() else ""
        return self.plain(f"$ evald {command}\nstatus {done.returncode}\n{out}{done.stderr}", desk.folder)

    def check(self, group):
        if group == "service":
            self.serve(output_dir=str(self.folder / "runs"))
            self.addCleanup(self.stop)
        golden = read_golden()
        found = {}
        for name, make in CASES[group].items():
            folder = pathlib.Path(tempfile.mkdtemp(prefix="wrong-", dir=self.folder))
            desk = Desk(folder, getattr(self, "url", ""))
            key = f"{group}: {name}"
            with self.subTest(name):
                found[key] = self.asked(desk, make(desk))
                if not WRITE:
                    self.assertEqual(found[key], golden.get(key, "nothing was expected yet"))
            if hasattr(desk, "taken"):
                desk.taken.close()
            shutil.rmtree(folder, ignore_errors=True)
        if WRITE:
            write_golden(found)


for group in CASES:
    setattr(WrongInputs, f"test_{group.replace(' ', '_')}", lambda self, group=group: self.check(group))

if __name__ == "__main__":
    unittest.main(verbosity=2)
