"""The example's last checkpoint on the native engine: equal scores, whatever happens to the run.

The tests use the example's own suites. With EVALD_FULL=1 and real data (EVALD_DATA_DIR, or ../shared/data beside the
checkout) they use HumanEval, 200 GSM8K and 2,000 MMLU questions instead.
"""
import contextlib
import json
import os
import pathlib
import random
import signal
import unittest

from evald_case import QUICKSTART, SOURCE, EvaldCase, scores

SEED = int(os.environ.get("EVALD_TEST_SEED", "1"))
DATA = pathlib.Path(os.environ.get("EVALD_DATA_DIR", SOURCE.parent / "shared" / "data"))
REAL = os.environ.get("EVALD_FULL") == "1" and DATA.is_dir()
CHECKPOINTS = sorted((QUICKSTART / "checkpoints").glob("step-*"))


@unittest.skipUnless(CHECKPOINTS, "the example has no checkpoints")
class CheckpointFaults(EvaldCase):
    TIMEOUT = 1800 if REAL else 600  # only a hang takes this long

    def config(self, name, workers, engine=None):
        tasks = ["quickstart_choice", "quickstart_code", "quickstart_math"]
        if REAL:
            tasks = ["humaneval", {"task": "gsm8k", "limit": 200}, {"task": "mmlu", "limit_total": 2000}]
        return self.write_config(
            f"{name}.yaml", checkpoint=str(CHECKPOINTS[-1]), tasks=tasks, task_dirs=[str(QUICKSTART / "tasks")],
            data_dir=str(DATA), engine={"name": "native", **(engine or {})}, workers={"count": workers, "threads": 1},
            staging={"root": str(self.folder / "staging")}, output={"dir": "runs", "name": name})

    def generations(self, name):
        return len(list((self.folder / "runs" / name).glob("generations/*/*.jsonl")))

    def finish(self, process):
        out, err = process.communicate(timeout=self.TIMEOUT)
        self.assertEqual(process.returncode, 0, out + err + self.logs())
        return json.loads(out)

    def check(self, name, document):
        self.assertEqual(scores(document), self.expected[0])
        self.assertEqual(self.samples(self.folder / "runs" / name), self.expected[1])

    def progress(self, name, process):
        seen = self.generations(name)
        self.wait_for("progress", lambda: self.generations(name) > seen or process.poll() is not None, self.TIMEOUT)

    def test_equal_scores_with_one_two_and_three_workers_and_kills(self):
        random.seed(SEED)
        print(f"seed {SEED}, {'real benchmarks' if REAL else 'example suites'}", flush=True)
        two = self.run_done(self.config("two", 2), timeout=self.TIMEOUT)
        self.expected = scores(two), self.samples(self.folder / "runs" / "two")
        print(json.dumps(two["results"] if not REAL else {k: v for k, v in two["results"].items() if k in ("humaneval", "gsm8k", "mmlu")}), flush=True)

        self.check("one", self.run_done(self.config("one", 1), timeout=self.TIMEOUT))
        grouped = self.config("three", 3, {"concurrency": random.randrange(1, 50), "chunk": random.randrange(1, 200)})
        self.check("three", self.run_done(grouped, timeout=self.TIMEOUT))

        process = self.start("run", self.config("worker-killed", 2), "--json", "--quiet")
        for _ in range(2):
            self.progress("worker-killed", process)
            workers = self.children(process.pid, "evald-worker")
            if workers:
                with contextlib.suppress(ProcessLookupError):  # the process may have ended meanwhile
                    os.kill(random.choice(workers), signal.SIGKILL)
        self.check("worker-killed", self.finish(process))

        config = self.config("killed", 2)
        self.killed_at("run.generations_committed", 1, config)
        self.check("killed", self.finish(self.start("run", config, "--json", "--quiet", "--resume")))
        staged = [p for p in (self.folder / "staging").iterdir() if (p / "config.json").exists()]
        self.assertFalse(staged, "nothing stays staged without staging.keep")


if __name__ == "__main__":
    unittest.main(verbosity=2)
