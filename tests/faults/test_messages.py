"""Messages between an agent and its processes come late, twice, in another order, in pieces or incomplete. A worker
does not answer for so long that its lease is given to another."""
import collections
import contextlib
import json
import os
import pathlib
import signal
import sqlite3
import unittest

from fault_case import FULL, PATIENCE_S, QUICKSTART, FaultCase, preload, processes_of
from message_faults import MessageFaults


class Messages(FaultCase):
    PATIENT = {"workers": {"count": 2, "threads": 1, "max_attempts": 100}, "metrics": {"processes": 2, "max_attempts": 100}}
    SLOW = {"name": "emulated", "concurrency": 4, "delay_ms": 3, "jitter": 0.5}
    RATES = {"late": 0.1, "twice": 0.2, "pieces": 0.2, "stall": 0.02, "cut": 0.01}

    def faulty(self, seed, **rates):
        """The environment of processes whose messages go through a proxy, and the proxy."""
        path = self.folder / f"detour-{seed}.sock"
        faults = MessageFaults(path, seed, {**self.RATES, **rates})
        self.addCleanup(faults.close)
        return preload("detour", EVALD_DETOUR=path), faults

    def test_a_run(self):
        config = self.config(engine=self.SLOW, **self.PATIENT)
        expected = self.undisturbed(config)
        total = collections.Counter()
        for _ in range(20 if FULL else 2):
            seed = self.rng.randrange(1 << 30)
            with self.subTest(seed=seed):
                self.clear()
                env, faults = self.faulty(seed)
                status, said = self.life(config, env=env)
                print(f"seed {seed}: {dict(faults.counts)}", flush=True)
                self.assertEqual(status, 0, f"{said}\n{self.logs()}")
                self.compare(self.runs()[0], expected, f"seed {seed}")
                total += faults.counts
        # in a single run it may happen that no line is late
        self.assertTrue(total["twice"] > 0 and total["late"] > 0, total)

    def test_checkpoints_do_not_mix(self):
        """A worker changes between two checkpoints while loads and leases overtake one another."""
        def config(step):
            return self.config(checkpoint=str(QUICKSTART / "checkpoints" / step), engine={"name": "native"},
                               tasks=[{"task": "quickstart_choice", "limit": 12}], task_dirs=[str(QUICKSTART / "tasks")],
                               staging={"root": str(self.folder / "staging")}, **self.PATIENT)
        steps = ("step-00100", "step-01200")
        expected = {step: self.undisturbed_again(config(step)) for step in steps}
        self.assertNotEqual(*(e["results"] for e in expected.values()))
        env, faults = self.faulty(self.rng.randrange(1 << 30), late=0.3, cut=0.002)
        self.assertTrue(self.serve(env=env, workers={"count": 1, "threads": 1}))
        runs = []
        for number in range(40 if FULL else 6):
            step = steps[number % 2]
            body = {"config": json.loads(config(step).read_text()), "base": str(self.folder), "user": "ab"[number % 2]}
            runs.append((step, self.call("POST", "/v1/runs", body)["id"]))
        for step, run in runs:
            self.check_done(self.run_over(run), expected[step], f"{step}, {dict(faults.counts)}")
        print(dict(faults.counts), flush=True)

    def undisturbed_again(self, config):
        expected = self.undisturbed(config)
        (self.folder / "plain").rename(self.folder / f"plain-{self.rng.random()}")
        return expected

    def test_a_worker_that_stops_and_comes_back(self):
        patient = {**self.PATIENT, "workers": {**self.PATIENT["workers"], "heartbeat_timeout_s": 2}}
        expected = self.undisturbed(self.config(engine=self.SLOW, **patient))
        config = self.config(engine={**self.SLOW, "delay_ms": 200}, **patient)
        process = self.start("run", config, "--quiet", start_new_session=True)
        stopped = self.wait_for("a worker that stops in the middle of a trial", lambda: self.stopped_at_work(process.pid))
        # A trial that is leased again has no second owner.
        self.wait_for("its death", lambda: stopped not in processes_of(process.pid))
        _, said = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, said + self.logs())
        self.compare(self.runs()[0], expected, "a stopped worker")
        # The trial went to another worker: as its next attempt, or as a copy if it was late and not yet given up.
        with sqlite3.connect(self.disk / "state" / "state.db") as database:
            leases = database.execute("SELECT trial, attempt FROM leases").fetchall()
        committed = {int(path.name.split(".")[0]) for path in self.runs()[0].glob("generations/*/*.jsonl")}
        self.assertTrue(max(attempt for _, attempt in leases) >= 2 or {trial for trial, _ in leases} - committed, leases)

    def stopped_at_work(self, evald):
        """A worker that was stopped while its generations were half written; None if there is none now."""
        for worker in self.children(evald, "evald-worker"):
            with contextlib.suppress(OSError):  # the worker may have ended
                os.kill(worker, signal.SIGSTOP)
                self.wait_for("it to stop", lambda: pathlib.Path(f"/proc/{worker}/stat").read_text().rsplit(") ", 1)[1][0] == "T")
                if any(str(file.readlink()).endswith(".jsonl.part") for file in pathlib.Path(f"/proc/{worker}/fd").iterdir()):
                    return worker
                os.kill(worker, signal.SIGCONT)
        return None


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
