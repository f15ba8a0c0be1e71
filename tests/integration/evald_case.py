"""Common parts of the integration tests: a scratch folder, a made-up suite, and ways to run evald."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
import unittest.mock

from processes import processes

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("EVALD_BINARIES", SOURCE / "build" / "dev")).resolve()
QUICKSTART = SOURCE / "examples" / "quickstart"
OVER = ("done", "incomplete", "failed", "cancelled")  # the states of a run that goes on no more

SUMS_TASK = r"""task: sums
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "Question: {{question}}\nAnswer:"
doc_to_target: "{{answer}}"
generation_kwargs: {until: ["\n"], max_gen_toks: 16, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
metadata: {version: 1.0}
"""

CHOICE_TASK = r"""task: choice
dataset_path: json
dataset_kwargs: {data_files: {test: choice.jsonl}}
output_type: multiple_choice
test_split: test
doc_to_text: "{{question}}\nAnswer:"
doc_to_choice: ["A", "B", "C", "D"]
doc_to_target: answer
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
metadata: {version: 1.0}
"""


class EvaldCase(unittest.TestCase):
    binaries = BINARIES

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="evald-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.tasks = self.folder / "tasks"
        self.tasks.mkdir()

    def make_suite(self, sums=200, choice=100):
        """Two tasks over generated documents."""
        with open(self.tasks / "sums.jsonl", "w") as out:
            for i in range(sums):
                out.write(json.dumps({"question": f"What is {i} plus 1?", "answer": str(i + 1)}) + "\n")
        with open(self.tasks / "choice.jsonl", "w") as out:
            for i in range(choice):
                out.write(json.dumps({"question": f"Which letter is number {i}?", "answer": i % 4}) + "\n")
        (self.tasks / "sums.yaml").write_text(SUMS_TASK)
        (self.tasks / "choice.yaml").write_text(CHOICE_TASK)

    def write_config(self, name="eval.yaml", **changes):
        config = {
            "tasks": ["sums", "choice"],
            "task_dirs": ["tasks"],
            "engine": {"name": "emulated", "delay_ms": 2, "concurrency": 4},
            "workers": {"count": 2, "threads": 1},
            "metrics": {"processes": 2},
            "cache_dir": "cache",
            "state_dir": "state",
            "output": {"dir": "runs"},
        }
        config.update(changes)
        path = self.folder / name
        path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}, indent=1))
        return path

    def keep_journal(self):
        """Returns a journal file. The emulated engine of every process started from now on adds a line to it for each
        answer."""
        journal = self.folder / "journal"
        change = unittest.mock.patch.dict(os.environ, EVALD_EMULATED_JOURNAL=str(journal))
        change.start()
        self.addCleanup(change.stop)
        return journal

    def use_preparing(self, script):
        """From now on evald is started from a folder of its own. evald-prepare in that folder is this shell script,
        in which {real} means the real program. evald takes the other programs from the folder of its own binary."""
        if self.binaries == BINARIES:
            self.binaries = self.folder / "binaries"
            self.binaries.mkdir()
            shutil.copy2(BINARIES / "evald", self.binaries / "evald")
            for name in ("evald-worker", "evald-metric"):
                (self.binaries / name).symlink_to(BINARIES / name)
        new = self.binaries / "evald-prepare.new"
        new.write_text("#!/bin/bash\n" + script.replace("{real}", str(BINARIES / "evald-prepare")) + "\n")
        new.chmod(0o700)
        new.rename(self.binaries / "evald-prepare")

    def start(self, *arguments, **options):
        command = [str(self.binaries / "evald"), *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def evald(self, *arguments, timeout=300, **options):
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"evald {arguments} hangs\n{out}\n{err}")
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def killed_at(self, point, passing, *arguments):
        """Runs `evald run` until it is killed at a fail point (docs/faults.md). The run cannot end before, however
        fast it is."""
        process = self.start("run", *arguments, "--quiet", start_new_session=True,
                             env=dict(os.environ, EVALD_FAIL_POINT=f"evald/{point}:{passing}"))
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, -signal.SIGKILL, f"{point} is not passed {passing} times\n{out}\n{err}")
        self.wait_until_gone(process.pid)

    def wait_until_gone(self, session):
        """Waits for the children of a killed evald. They die with it, but not at the same instant."""
        self.wait_for(f"the processes of session {session} to end", lambda: not processes_of(session))

    def run_done(self, *arguments, **options):
        """Runs to success. Returns the JSON document on standard output."""
        done = self.evald("run", *arguments, "--json", "--quiet", **options)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}\n{self.logs()}")
        self.assertEqual(len(done.stdout.strip().splitlines()), 1, "one JSON document and nothing else")
        return json.loads(done.stdout)

    def logs(self):
        text = ""
        for log in sorted(self.folder.glob("runs/*/logs/*.log")):
            if log.stat().st_size:
                text += f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}\n"
        return text

    def only_run(self):
        runs = [p for p in (self.folder / "runs").iterdir() if p.is_dir() and not p.is_symlink()]
        self.assertEqual(len(runs), 1)
        return runs[0]

    def samples(self, run):
        return {p.name: p.read_bytes() for p in sorted(run.glob("samples_*.jsonl"))}

    def wait_for(self, what, condition, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.01)
        self.fail(f"waited {seconds} s for {what}")

    @staticmethod
    def children(pid, name):
        """Process ids of the running children of `pid` whose program is `name`."""
        found = []
        for entry, (state, parent, *_) in processes():
            try:
                command = os.fsdecode((entry / "cmdline").read_bytes().split(b"\0")[0])
            except OSError:
                continue
            if int(parent) == pid and state != "Z" and command.endswith(name):
                found.append(int(entry.name))
        return found


def processes_of(session):
    """Process ids of a session, without zombies."""
    return [int(entry.name) for entry, fields in processes() if int(fields[3]) == session and fields[0] not in "ZX"]


def scores(document):
    """The parts of results that must not depend on what happened to the run."""
    return {key: document[key] for key in ("results", "groups", "n-samples", "versions") if key in document}
