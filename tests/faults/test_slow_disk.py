"""A disk on which fsync takes two seconds. The service's loop, which reads heartbeats, never waits for it.

The layer records which thread waits, so the test does not depend on the machine's speed. The test counts the calls of
the loop's thread to the disk, and expects none. It looks at the clock only for waits that take two seconds."""
import concurrent.futures
import json
import pathlib
import re
import unittest
import urllib.request

from fault_case import BINARIES, OVER, QUICKSTART, FaultCase, preload

WAIT_S = 2  # seconds of an fsync on the loop's thread
TASKS = 1000
PROCESSOR_S = 0.1  # most processor seconds of one turn of the loop; sanitizers need more
# If no agent is connected, the loop looks whether this host's agent runs, and starts it.
AGENTS = ("/disk/state/agent.lock", "/disk/state/logs/agent.log", "/disk/state/agent.sock")


def is_sanitized():
    cache = BINARIES / "CMakeCache.txt"
    return cache.exists() and re.search(r"^EVALD_SANITIZE:[^=]*=.", cache.read_text(errors="replace"), re.M) is not None


class SlowDisk(FaultCase):
    def serve_slowly(self, others_ms, **changes):
        self.log = self.folder / "slow.log"
        self.log.touch()
        env = preload("slow_disk", EVALD_SLOW_ROOT=self.folder, EVALD_SLOW_PROGRAM="evald", EVALD_SLOW_LOG=self.log,
                      EVALD_SLOW_MAIN_MS=1000 * WAIT_S, EVALD_SLOW_OTHERS_MS=others_ms)
        self.assertTrue(self.serve(env=env, **changes), self.daemon_log())
        # earlier lines are from the first thread, which opens its files before its loop runs
        self.begun = len(self.log.read_text().splitlines())
        self.longest_processor_s = 0

    def metrics(self):
        with urllib.request.urlopen(self.url + "/metrics", timeout=60) as answer:
            lines = answer.read().decode().splitlines()
        found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("evald_loop_turn"))
        self.longest_processor_s = max(self.longest_processor_s, float(found["evald_loop_turn_processor_seconds_max"]))
        return {name: float(value) for name, value in found.items()}

    def wait_done(self, run):
        """Returns the run's resource at its end. The longest turns are those of the last minute, so they are asked
        for all along."""
        def over():
            self.metrics()
            now = self.call("GET", f"/v1/runs/{run['id']}")
            return now["state"] in OVER and now
        return self.wait_for("the run's end", over, 600)

    def check_loop(self):
        found = self.metrics()
        lines = [line.split(" ", 3) for line in self.log.read_text().splitlines()[self.begun:]]
        mine = [line for line in lines if int(line[0]) == self.daemon.pid]
        waits = [" ".join(line[2:]) for line in mine if line[1] == "main" and not line[3].endswith(AGENTS)]
        self.assertEqual(waits, [], "the loop's thread asks the disk")
        self.assertTrue([line for line in mine if line[2] == "fsync"], "the layer records what other threads do")
        turns = found["evald_loop_turn_seconds_count"]
        self.assertGreater(turns, 0)
        self.assertEqual(found['evald_loop_turn_seconds_bucket{le="1"}'], turns, f"a turn took as long as an fsync: {found}")
        print(f"{turns:.0f} turns, {found['evald_loop_turn_seconds_sum'] / turns * 1e6:.0f} us each; the longest of the last "
              f"minute {1e3 * found['evald_loop_turn_seconds_max']:.1f} ms by the clock; the longest of all "
              f"{1e3 * self.longest_processor_s:.1f} ms of processor time", flush=True)
        self.assertLess(self.longest_processor_s, (10 if is_sanitized() else 1) * PROCESSOR_S)

    def test_a_run_is_cancelled_while_its_submission_is_being_written(self):
        """Others see a run once its row is on disk. That is some slow fsyncs before it is queued and the submission
        is answered."""
        self.make_suite(12, 8)
        self.serve_slowly(others_ms=1000 * WAIT_S)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            submitted = pool.submit(self.submit, "cancelled")
            run = self.wait_for("the run's row", lambda: next(iter(self.call("GET", "/v1/runs")["runs"]), None), 120)
            self.assertIn(self.call("POST", f"/v1/runs/{run['id']}/cancel")["state"], ("cancelling", "cancelled"))
            self.assertEqual(submitted.result()["id"], run["id"])
        self.assertEqual(self.call("GET", f"/v1/runs/{run['id']}")["state"], "cancelled")
        self.check_loop()

    def test_two_runs_and_what_people_ask_of_them(self):
        expected = self.undisturbed()
        native = {"checkpoint": str(QUICKSTART / "checkpoints" / "step-00100"), "engine": {"name": "native"},
                  "tasks": [{"task": "quickstart_choice", "limit": 8}], "task_dirs": [str(QUICKSTART / "tasks")]}
        # Preparation has its own thread. Here its files exist already.
        cache = {"cache_dir": "disk/cache", "state_dir": "plain/state", "output": {"dir": "plain/runs"}}
        self.run_done(self.write_config(name="warm.yaml", **{"engine": self.ENGINE, **cache}))
        self.run_done(self.write_config(name="warm-native.yaml", **{**native, **cache, "staging": {"root": str(self.folder / "warm")}}))
        self.serve_slowly(others_ms=1000 * WAIT_S, active_runs=1)
        runs = [self.submit("emulated"), self.submit("native", **native), self.submit("cancelled")]
        self.assertEqual(self.call("POST", f"/v1/runs/{runs[2]['id']}/cancel")["state"], "cancelled")
        self.assertEqual(self.call("POST", f"/v1/runs/{runs[2]['id']}/resume")["state"], "queued")
        self.assertEqual(self.call("POST", f"/v1/runs/{runs[2]['id']}/cancel")["state"], "cancelled")
        first = self.wait_done(runs[0])
        self.check_done(first, expected, "an emulated run")
        second = self.wait_done(runs[1])
        self.assertEqual((second["state"], second["problems"]), ("done", []), self.daemon_log())
        self.check_loop()

    def test_a_thousand_tasks(self):
        names = [f"sums_{i:04}" for i in range(TASKS)]
        text = (self.tasks / "sums.yaml").read_text()
        with open(self.tasks / "few.jsonl", "w") as out:
            for i in range(2):
                out.write(json.dumps({"question": f"What is {i} plus 1?", "answer": str(i + 1)}) + "\n")
        for name in names:
            (self.tasks / f"{name}.yaml").write_text(text.replace("task: sums", f"task: {name}").replace("sums.jsonl", "few.jsonl"))
        self.serve_slowly(others_ms=0)
        run = self.submit("many", tasks=names, bootstrap_iters=10, engine={"name": "emulated", "concurrency": 16})
        done = self.wait_done(run)
        self.assertEqual((done["state"], done["problems"]), ("done", []), self.daemon_log())
        self.assertEqual(len(list(pathlib.Path(done["directory"]).glob("samples_*.jsonl"))), TASKS)
        # The plan uses the costs of a thousand tasks, and everything exists already.
        again = self.submit("again", tasks=names, bootstrap_iters=10, engine={"name": "emulated", "concurrency": 16})
        self.assertEqual(self.wait_done(again)["state"], "done", self.daemon_log())
        self.check_loop()


if __name__ == "__main__":
    unittest.main(verbosity=2)
