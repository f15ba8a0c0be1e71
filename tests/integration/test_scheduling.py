"""The costs of runs are kept and used for plans. Stragglers give work back or are overtaken. Generation waits for
scoring."""
import json
import os
import pathlib
import signal
import sqlite3
import unittest

from evald_case import EvaldCase, scores


class Scheduling(EvaldCase):
    ENGINE = {"name": "emulated", "delay_ms": 10, "concurrency": 4}

    def costs(self, run):
        return json.loads((run / "run.json").read_text())["costs"]

    def test_the_second_run_is_planned_from_the_first(self):
        self.make_suite()
        config = self.write_config(engine=self.ENGINE)
        self.run_done(config, "--set", "output.name=first")
        self.run_done(config, "--set", "output.name=second")
        first, second = (self.costs(self.folder / "runs" / name)["tasks"] for name in ("first", "second"))
        self.assertEqual(first["sums"]["basis"], "a guess")
        self.assertEqual(second["sums"]["basis"], "1 run here")
        # A device of four places spends 2.5 ms on a document of 10 ms if all places are taken.
        self.assertEqual(first["sums"]["documents"], 200)
        self.assertGreater(first["sums"]["device_s"], 200 * 0.0024)
        self.assertAlmostEqual(second["sums"]["expected_device_s"], first["sums"]["device_s"], delta=1e-6)
        self.assertGreater(second["choice"]["score_s"], 0)

    def test_a_resumed_run_measures_what_it_computes_itself(self):
        """Otherwise it would be planned by a guess to its end, and give the next run nothing to plan from."""
        self.make_suite(sums=400)
        config = self.write_config(tasks=["sums"], engine={"name": "emulated", "delay_ms": 40, "concurrency": 2})
        process = self.start("run", config, "--quiet")
        half_done = lambda: any(path.read_text().count("\n") > 3 for path in self.folder.glob("runs/*/generations/*/*.part"))
        self.wait_for("a slice that is half done", half_done)
        process.kill()
        process.communicate()
        self.run_done(config, "--resume")
        sums = self.costs(self.only_run())["tasks"]["sums"]
        self.assertGreater(sums["documents"], 100)
        self.assertAlmostEqual(sums["device_s"] / sums["documents"], 0.02, delta=0.01)

    def test_priors_go_from_one_database_to_another(self):
        self.make_suite()
        self.run_done(self.write_config(engine=self.ENGINE))
        file = self.folder / "priors.json"
        done = self.evald("priors", "--state-dir", self.folder / "state", "--export", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        exported = json.loads(file.read_text())
        self.assertEqual(exported["schema"], "evald-priors/1")
        self.assertEqual({cost["task"] for cost in exported["costs"]}, {"sums", "choice"})
        done = self.evald("priors", "--state-dir", self.folder / "other", "--import", file, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), exported)
        table = self.evald("priors", "--state-dir", self.folder / "other").stdout
        self.assertIn("sums", table)
        self.run_done(self.write_config(engine=self.ENGINE, state_dir="other", output={"dir": "elsewhere"}))
        run = next((self.folder / "elsewhere").iterdir())
        self.assertEqual(self.costs(run)["tasks"]["sums"]["basis"], "1 run here")

    def test_what_is_no_export_is_refused(self):
        file = self.folder / "priors.json"
        file.write_text('{"schema": "evald-priors/1", "costs": [{"task": 3}]}')
        done = self.evald("priors", "--state-dir", self.folder / "state", "--import", file)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("costs[0]: key 'task': found 3", done.stderr)
        done = self.evald("priors", "--state-dir", self.folder / "state", "--import", self.folder / "none.json")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("none.json", done.stderr)

    def test_an_idle_worker_takes_part_in_what_another_has(self):
        # The priors say that documents cost almost nothing, so one worker is given all of them.
        self.make_suite(sums=800)
        cost = {"task": "sums", "task_key": "of an earlier run", "device": "emulated, 40 ms, 0 tokens/s in, 0 out, clock 1", "model": "", "model_bytes": 0,
                "generates": True, "ended": 1, "prepare_s": 0, "documents": 100, "tokens_in": 1, "tokens_out": 1,
                "device_s": 1e-4, "device_deviation_s": 0, "longest_s": 1e-6, "scored": 100, "score_s": 1e-4,
                "score_deviation_s": 0}
        file = self.folder / "priors.json"
        file.write_text(json.dumps({"schema": "evald-priors/1", "costs": [cost]}))
        done = self.evald("priors", "--state-dir", self.folder / "state", "--import", file)
        self.assertEqual(done.returncode, 0, done.stderr)
        slow = {"name": "emulated", "delay_ms": 40, "concurrency": 4}
        document = self.run_done(self.write_config(engine=slow, tasks=["sums"]))
        database = sqlite3.connect(self.folder / "state" / "state.db")
        leases = database.execute("SELECT trial, worker FROM leases ORDER BY trial").fetchall()
        database.close()
        self.assertEqual(len({worker for trial, worker in leases}), 2, leases)
        files = sorted((self.only_run() / "generations" / "sums").glob("*.jsonl"))
        documents = sorted(json.loads(line)["doc_id"] for path in files for line in path.read_text().splitlines())
        self.assertEqual(documents, list(range(800)), "each once")
        undisturbed = self.run_done(self.write_config(engine={"name": "emulated", "concurrency": 4}, tasks=["sums"],
                                                      output={"dir": "other"}))
        self.assertEqual(scores(document), scores(undisturbed))

    # On the second device a request takes 40 minutes, so documents begun there end in another worker or not at all.
    # The first device alone takes some seconds, so the second has begun by then.
    STRAGGLER = {"name": "emulated", "delay_ms": 300, "concurrency": 4, "slow": {"cpu:1": 8000}}

    def of_trials(self, query):
        database = sqlite3.connect(self.folder / "state" / "state.db", timeout=60)
        try:
            return database.execute(query).fetchall()
        finally:
            database.close()

    def check_straggler(self, document, worker):
        """Other workers than `worker` committed everything, each document once, and the scores are as always."""
        holder = dict(self.of_trials("SELECT trial, worker FROM leases"))
        self.assertIn(worker, holder.values(), "it was given something")
        files = sorted((self.only_run() / "generations" / "sums").glob("*.jsonl"))
        committed = {int(path.name.split(".")[0]) for path in files}
        self.assertTrue(committed)
        self.assertNotIn(worker, {holder[trial] for trial in committed})
        documents = sorted(json.loads(line)["doc_id"] for path in files for line in path.read_text().splitlines())
        self.assertEqual(documents, list(range(60)))
        undisturbed = self.run_done(self.write_config(engine={"name": "emulated", "concurrency": 4}, tasks=["sums"],
                                                      output={"dir": "other"}))
        self.assertEqual(scores(document), scores(undisturbed))

    def test_what_a_slow_worker_has_begun_is_computed_by_another(self):
        self.make_suite(sums=60)
        document = self.run_done(self.write_config(engine=self.STRAGGLER, tasks=["sums"]))
        self.check_straggler(document, "w1")

    def test_what_a_stopped_worker_has_is_computed_by_another(self):
        self.make_suite(sums=60)
        config = self.write_config(engine=self.STRAGGLER, tasks=["sums"],
                                   workers={"count": 2, "threads": 1, "heartbeat_timeout_s": 86400})
        process = self.start("run", config, "--json", "--quiet")
        self.addCleanup(process.kill)

        def of_worker(name):
            return [pid for pid in self.children(process.pid, "evald-worker")
                    if name.encode() in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")]

        def leased():
            return any(worker == "w1" for _, worker in self.of_trials("SELECT trial, worker FROM leases"))

        self.wait_for("the state database", lambda: (self.folder / "state" / "state.db").exists() and
                      self.of_trials("SELECT name FROM sqlite_master WHERE name = 'leases'"))
        self.wait_for("a lease of the second worker", leased)
        os.kill(of_worker("cpu:1")[0], signal.SIGSTOP)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, f"{out}\n{err}\n{self.logs()}")
        self.check_straggler(json.loads(out), "w1")

    def test_generation_waits_for_scoring(self):
        self.make_suite()
        expected = self.run_done(self.write_config())
        config = self.write_config(metrics={"processes": 1, "backlog": 1}, output={"dir": "other"})
        self.assertEqual(scores(self.run_done(config)), scores(expected))


if __name__ == "__main__":
    unittest.main()
