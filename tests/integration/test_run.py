"""A run as seen by a person or a program."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

from evald_case import BINARIES, QUICKSTART, EvaldCase, scores


# A program between evald and a real worker. It changes the file of the first slice that is done.
LYING_WORKER = """#!{python}
import json, os, socket, subprocess, sys, tempfile, threading

arguments = sys.argv[1:]
if "--socket" not in arguments:
    os.execv("{real}", ["{real}", *arguments])
at = arguments.index("--socket") + 1
far = socket.socket(socket.AF_UNIX)
far.connect(arguments[at])
arguments[at] = os.path.join(tempfile.mkdtemp(), "s")
listener = socket.socket(socket.AF_UNIX)
listener.bind(arguments[at])
listener.listen()
worker = subprocess.Popen(["{real}", *arguments])
near, _ = listener.accept()


def orders():
    while data := far.recv(65536):
        near.sendall(data)
    os._exit(0)


threading.Thread(target=orders, daemon=True).start()
for line in near.makefile("rb"):
    message = json.loads(line)
    if message["type"] == "slice_done":
        try:
            os.close(os.open("{once}", os.O_CREAT | os.O_EXCL))
            line = json.dumps(dict(message, file="{other}")).encode() + b"\\n"
        except FileExistsError:
            pass
    far.sendall(line)
sys.exit(worker.wait())
"""


class Run(EvaldCase):
    def test_a_checkpoint_and_tasks_need_no_file(self):
        self.make_suite()
        checkpoint = QUICKSTART / "checkpoints/step-00100"
        keys = {"engine": {"name": "emulated"}, "task_dirs": [str(self.tasks)], "staging.root": str(self.folder / "staging"),
                "output": {"dir": str(self.folder / "runs")}, "state_dir": str(self.folder / "state"),
                "cache_dir": str(self.folder / "cache")}
        settings = [word for key, value in keys.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        document = self.run_done(checkpoint, "--tasks", "sums,choice", "--limit", "0.101", *settings)
        self.assertEqual({name: entry["effective"] for name, entry in document["n-samples"].items()}, {"sums": 21, "choice": 11})
        refused = self.evald("run", checkpoint, *settings)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("no task is named", refused.stderr)

    def test_results_samples_timeline_and_exit_status(self):
        self.make_suite()
        document = self.run_done(self.write_config())
        self.assertEqual(document["n-samples"]["sums"], {"original": 200, "effective": 200})
        self.assertIn("exact_match,none", document["results"]["sums"])
        self.assertIn("acc,none", document["results"]["choice"])
        self.assertTrue(document["evald"]["engine"]["emulated"], "made-up answers say so")
        run = self.only_run()
        self.assertEqual(scores(json.loads((run / "results.json").read_text())), scores(document))
        for task, documents in (("sums", 200), ("choice", 100)):
            lines = (run / f"samples_{task}.jsonl").read_text().splitlines()
            self.assertEqual([json.loads(line)["doc_id"] for line in lines], list(range(documents)))
        trace = json.loads((run / "timeline.json").read_text())["traceEvents"]
        rows = {event["args"]["name"] for event in trace if event["name"] == "thread_name"}
        self.assertTrue({"worker w0 (cpu:0)", "worker w1 (cpu:1)", "metrics m0"} <= rows, rows)
        names = {event["name"] for event in trace if event["ph"] == "X"}
        self.assertTrue({"prepare", "pull", "generate", "score"} <= names, names)
        self.assertFalse(list(run.rglob("*.part")), "nothing half-written is left")

    def test_a_name_that_is_no_folders_name_stays_a_name_everywhere_else(self):
        name = "odd name (a), b"
        self.make_suite(20, 4)
        text = (self.tasks / "sums.yaml").read_text()
        alias = json.dumps("seen \x1b[2J\u202e\nas")
        (self.tasks / "sums.yaml").write_text(text.replace("task: sums", f"task: {name}\ntask_alias: {alias}"))
        config = self.write_config(tasks=[name], output={"dir": "runs", "name": "first run"})
        shown = self.evald("run", config)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(r"seen \x1b[2J\u202e\nas", shown.stdout)
        for stream in (shown.stdout, shown.stderr):
            self.assertNotRegex(stream, "[\x1b\u202e]")
        run = self.folder / "runs" / "first%20run"
        folder = "odd%20name%20%28a%29%2C%20b"
        self.assertEqual([path.name for path in run.glob("samples_*")], [f"samples_{folder}.jsonl"])
        self.assertEqual([path.name for path in (run / "generations").iterdir()], [folder])
        results = json.loads((run / "results.json").read_text())
        self.assertEqual(list(results["results"]), [name])
        again = self.run_done(self.write_config(tasks=[name], engine={"name": "replay", "generations": str(run)},
                                                output={"dir": "runs", "name": "second"}))
        self.assertEqual(scores(again), scores(results))
        pair = self.evald("compare", run, self.folder / "runs" / "second", "--json")
        self.assertEqual(pair.returncode, 0, pair.stdout + pair.stderr)
        # The harness puts a name unchanged into the file's name.
        (run / f"samples_{folder}.jsonl").rename(run / f"samples_{name}.jsonl")
        self.assertEqual(self.evald("compare", run, self.folder / "runs" / "second", "--json").returncode, 0)

    def test_a_worker_that_names_another_file_than_its_lease_is_not_believed(self):
        """If evald believed the worker, the metric process would read the generations there and put them into the
        results."""
        self.make_suite(40, 4)
        expected = scores(self.run_done(self.write_config(tasks=["sums"], output={"dir": "runs", "name": "honest"})))
        other = self.folder / "other.jsonl"
        other.write_text('{"doc_id": 0}\n')
        binaries = self.folder / "bin"
        binaries.mkdir()
        shutil.copy2(BINARIES / "evald", binaries)
        for program in ("evald-metric", "evald-prepare"):
            (binaries / program).symlink_to(BINARIES / program)
        (binaries / "evald-worker").write_text(LYING_WORKER.format(python=sys.executable, real=BINARIES / "evald-worker",
                                                                    other=other, once=self.folder / "lied"))
        (binaries / "evald-worker").chmod(0o755)
        config = self.write_config(tasks=["sums"], output={"dir": "runs", "name": "lied to"})
        done = subprocess.run([binaries / "evald", "run", config, "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(scores(json.loads(done.stdout)), expected)
        self.assertTrue((self.folder / "lied").exists())
        self.assertRegex(done.stderr, r"it wrote /.*/other\.jsonl, but the lease says /.*/generations/sums/")
        self.assertEqual(other.read_text(), '{"doc_id": 0}\n')

    def test_the_emulated_answers_can_be_right(self):
        self.make_suite()
        config = self.write_config(engine={"name": "emulated", "text": " {doc_id}"}, tasks=["sums"])
        with open(self.tasks / "sums.jsonl", "w") as out:
            for i in range(50):
                out.write(json.dumps({"question": "?", "answer": f" {i if i % 2 else 'x'}"}) + "\n")
        document = self.run_done(config)
        self.assertEqual(document["results"]["sums"]["exact_match,none"], 0.5)

    def test_scores_do_not_depend_on_workers(self):
        self.make_suite()
        one = self.run_done(self.write_config(workers={"count": 1}, output={"dir": "runs", "name": "one"}))
        three = self.run_done(self.write_config(workers={"count": 3}, output={"dir": "runs", "name": "three"}))
        self.assertEqual(scores(one), scores(three))
        runs = self.folder / "runs"
        self.assertEqual(self.samples(runs / "one"), self.samples(runs / "three"))

    def test_an_earlier_run_is_scored_again_without_a_model(self):
        self.make_suite()
        first = self.run_done(self.write_config(output={"dir": "runs", "name": "first"}))
        generations = self.folder / "runs" / "first" / "generations"
        again = self.run_done(self.write_config(engine={"name": "replay", "generations": str(generations)},
                                                output={"dir": "runs", "name": "again"}))
        self.assertEqual(scores(first), scores(again))

    def test_the_table_is_for_people(self):
        self.make_suite(sums=20, choice=20)
        done = self.evald("run", self.write_config())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"sums.*exact_match")
        self.assertIn("±", done.stdout)
        self.assertIn("computed", done.stdout, "the device share is a headline")

    def test_validate_shows_the_plan_and_runs_nothing(self):
        self.make_suite()
        done = self.evald("validate", self.write_config(), "--set", "workers.count=7", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        plan = json.loads(done.stdout)
        self.assertEqual(plan["config"]["workers"]["count"], 7)
        self.assertEqual([task["documents"] for task in plan["tasks"]], [200, 100])
        self.assertFalse((self.folder / "runs").exists())

    def test_limit_and_repeats(self):
        self.make_suite()
        # With one worker no other computes a late trial again, so no generations are made twice.
        config = self.write_config(tasks=[{"task": "sums", "limit": 7, "repeats": 2}], workers={"count": 1, "threads": 1})
        document = self.run_done(config)
        self.assertEqual(document["n-samples"]["sums"], {"original": 200, "effective": 7})
        lines = [json.loads(line) for path in self.only_run().glob("generations/sums/*.jsonl")
                 for line in path.read_text().splitlines()]
        self.assertEqual(sorted((g["doc_id"], g["repeat"]) for g in lines),
                         [(d, r) for d in range(7) for r in range(2)])

    def test_help_and_completion(self):
        for command in ("run", "validate", "score", "stage", "tasks", "priors", "simulate", "doctor", "completion"):
            done = self.evald(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("xample" if command != "doctor" else "doctor", done.stdout)
        script = self.evald("completion", "bash").stdout
        self.assertIn("complete -o filenames -F _evald evald", script)

    def interrupted(self, config):
        """Starts a run and interrupts it after its first commit, when seconds of work are left. Returns its
        output."""
        process = self.start("run", config, "--quiet")
        self.wait_for("the first commit", lambda: list(self.folder.glob("runs/*/generations/*/*.jsonl")))
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 3, out + err)
        return out, err

    def test_interrupt_drains_and_resume_finishes(self):
        self.make_suite(sums=400)
        config = self.write_config(engine={"name": "emulated", "delay_ms": 40, "concurrency": 2})
        out, err = self.interrupted(config)
        self.assertIn("--resume", out + err)
        self.assertFalse((self.only_run() / "results.json").exists())
        resumed = self.run_done(config, "--resume")
        undisturbed = self.run_done(self.write_config(engine={"name": "emulated"}, output={"dir": "other"}))
        self.assertEqual(scores(resumed), scores(undisturbed))

    def test_a_resumed_run_says_what_was_done_before(self):
        self.make_suite(sums=300, choice=20)
        config = self.write_config(engine={"name": "emulated", "delay_ms": 60, "concurrency": 2})
        out, err = self.interrupted(config)
        self.assertNotIn("resumed", out)
        done = self.evald("run", config, "--quiet", "--resume")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        said = re.search(r"(\d+) requests, (\d+) of them before it was resumed and (\d+) in ", done.stdout)
        self.assertTrue(said, done.stdout)
        total, earlier, now = map(int, said.groups())
        self.assertEqual(total, 300 + 4 * 20)
        self.assertEqual(earlier + now, total)
        self.assertTrue(earlier > 0 and now > 0, said)
        work = json.loads((self.only_run() / "results.json").read_text())["evald"]["work"]
        self.assertEqual((work["requests"], work["earlier"]["requests"]), (total, earlier))

    def test_programs_leave_nothing_behind(self):
        self.make_suite(sums=20, choice=20)
        temporary = self.folder / "tmp"
        temporary.mkdir()
        self.run_done(self.write_config(), env=dict(os.environ, TMPDIR=str(temporary)))
        sockets = temporary / f"evald-{os.getuid()}"  # shared by all of this user's programs, and so never removed
        self.assertEqual(list(temporary.iterdir()), [sockets])
        self.assertEqual(list(sockets.iterdir()), [])


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
