"""What evald shows on a terminal of 80 columns, with 60 tasks, and its answer to Ctrl-C there."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from evald_case import CHOICE_TASK
from service_case import ServiceCase

COLUMNS = 80


class Terminal:
    """A program on a terminal of its own. `seen` has (seconds since its start, text)."""

    def __init__(self, command, folder, rows=24):
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
        environment = {**os.environ, "TERM": "xterm"}
        self.began = time.monotonic()
        self.process = subprocess.Popen([str(part) for part in command], stdin=follower, stdout=follower, stderr=follower,
                                        env=environment, cwd=folder, start_new_session=True)
        os.close(follower)
        self.leader = leader
        self.seen = []

    def read(self, seconds):
        """Reads for this long, or to the end. False at the end."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.leader], [], [], left)[0]:
                return True
            try:
                data = os.read(self.leader, 1 << 16)
            except OSError:
                return False
            if not data:
                return False
            self.seen.append((time.monotonic() - self.began, data.decode(errors="replace")))
        return True

    def end(self, seconds=120):
        self.read(seconds)
        self.process.wait(timeout=30)
        os.close(self.leader)
        return self.text()

    def text(self):
        return "".join(text for _, text in self.seen)

    def lines(self):
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", self.text()).replace("\r", "\n").split("\n")


class OnATerminal(ServiceCase):
    def make_sixty(self, documents=4):
        self.make_suite(sums=60, choice=8)
        names = [f"mmlu_subject_with_a_rather_long_name_{i:02}" for i in range(57)]
        for name in names:
            (self.tasks / f"{name}.yaml").write_text(CHOICE_TASK.replace("task: choice\n", f"task: {name}\n"))
        (self.tasks / "other.yaml").write_text(CHOICE_TASK.replace("task: choice\n", "task: other\n"))
        aggregate = "aggregate_metric_list: [{metric: acc, aggregation: mean, weight_by_size: true}]\nmetadata: {version: 1}\n"
        for group, members in (("mmlu_stem", names[:20]), ("mmlu_rest", names[20:]), ("mmlu", ["mmlu_stem", "mmlu_rest"])):
            (self.tasks / f"{group}.yaml").write_text(f"group: {group}\ntask: {json.dumps(members)}\n{aggregate}")
        return ["mmlu", "sums", "choice", "other"]

    def on_terminal(self, *arguments):
        terminal = Terminal([self.binaries / "evald", *arguments], self.folder)
        self.addCleanup(lambda: terminal.process.poll() is None and terminal.process.kill())
        return terminal

    def assert_fits(self, lines):
        for line in lines:
            self.assertLessEqual(len(line), COLUMNS, line)

    def test_status_watch_compare_and_priors_fit(self):
        tasks = self.make_sixty()
        runs = {}
        for name in ("a", "b"):
            config = self.write_config(tasks=tasks, engine={"name": "emulated", "concurrency": 64}, output={"dir": name},
                                       seed=1 if name == "a" else 2)
            self.run_done(config)
            runs[name] = next((self.folder / name).iterdir())
        compare = lambda *more: self.on_terminal("compare", runs["a"], runs["b"], *more)
        terminal = compare()
        text = terminal.end()
        self.assert_fits(terminal.lines())
        self.assertRegex(text, r"mmlu_stem +acc")
        self.assertNotIn("subject", text)
        self.assertIn("57 tasks and groups within these groups: --all", text)
        self.assertIn("mmlu_subject_with_a_rather_long_name_56", compare("--all").end())
        self.assertRegex(self.evald("compare", runs["a"], runs["b"]).stdout, r"mmlu_stem +acc +0\.\d")  # one line, to be searched

        terminal = self.on_terminal("priors", "--state-dir", self.folder / "state")
        text = terminal.end()
        self.assert_fits(terminal.lines())
        self.assertRegex(text, r"emulated.*; (any )?model")
        self.assertIn(time.strftime("%Y-%m-%d", time.gmtime()), text)
        self.assertIn("other", text)

        self.serve()
        run = self.submit(tasks=tasks, engine={"name": "emulated", "concurrency": 64}, workers=None, metrics=None, cache_dir=None,
                          state_dir=None, output=None)
        self.assertEqual(self.finished(run)["state"], "done")
        run = run["id"]
        for arguments in (("status", "--once"), ("status", run), ("status", run, "--all"), ("watch", run)):
            terminal = self.on_terminal(*arguments, "--server", self.url)
            text = terminal.end(20)
            self.assert_fits(terminal.lines())
            self.assertEqual("mmlu_subject_with_a_rather_long_name_56" in text, "--all" in arguments, text)
            self.assertRegex(text, r"mmlu +\d+/\d+  acc 0\.\d+" if "--once" not in arguments else r"mmlu 0\.\d+|more|scores")

    def test_ctrl_c_is_answered_at_once_and_counts_down(self):
        self.make_suite(sums=60, choice=1)
        config = self.write_config(tasks=["sums"], engine={"name": "emulated", "delay_ms": 700, "concurrency": 1},
                                   workers={"count": 1, "threads": 1})
        terminal = self.on_terminal("run", config)
        self.wait_for("documents", lambda: terminal.read(0.3) and re.search(r"generate +\S+ +[3-9] of 60", terminal.text()))
        at = time.monotonic() - terminal.began
        terminal.process.send_signal(signal.SIGINT)
        terminal.read(6)
        after = [(when, text) for when, text in terminal.seen if when >= at]
        said = next(when for when, text in after if "stopping" in text)
        self.assertLess(said - at, 0.5, "at once, though others have the machine")
        text = "".join(text for _, text in after)
        flat = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\s+", " ", text)
        seconds = [int(m or 0) * 60 + float(s) for m, s in re.findall(r"stopping +in +about +(?:(\d+) +min +)?([\d.]+) +s:", flat)]
        self.assertRegex(flat, r"Ctrl-C +again +stops +at +once")
        self.assertRegex(flat, r"at +most")
        self.assertGreater(len(set(seconds)), 3, flat)
        self.assertLess(seconds[-1], seconds[0])
        self.assert_fits(line for line in terminal.lines() if not line.startswith("evald: "))  # paths stay whole
        terminal.process.send_signal(signal.SIGINT)
        text = terminal.end()
        self.assertIn("--resume", text)


if __name__ == "__main__":
    unittest.main(verbosity=2)
