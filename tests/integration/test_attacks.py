"""Attacks on a service that now do no harm: loads, judging, rows of the database, keys, watches."""
import json
import pathlib
import sqlite3
import unittest

from evald_case import EvaldCase
from service_case import ServiceCase

# An evald-prepare that begins no judgement before the file `go` exists. It notes its process and the candidate.
HELD = """input=$(cat)
case $input in *'"work":"judge"'*)
  exec 2>/dev/null  # whoever reads the daemon's last words does not wait for this
  echo $$ >> {begun}
  while [ ! -e {go} ]; do sleep 0.05; done;;
esac
exec {real} "$@" <<< "$input"
"""
GATES = {"rules": [{"task": "sums", "metric": "exact_match", "min": 0.5}]}


class Attacks(ServiceCase):
    ENGINE = {"name": "emulated", "concurrency": 4}
    ONE_WORKER = {"workers": {"count": 1, "threads": 1}, "metrics": {"processes": 1}}

    def hold_judging(self):
        self.begun, self.go = self.folder / "begun", self.folder / "go"
        self.addCleanup(self.go.touch)
        self.use_preparing(HELD.replace("{begun}", str(self.begun)).replace("{go}", str(self.go)))

    def judged(self, count):
        """Process ids of the judgements that were begun, once there are that many."""
        lines = lambda: self.begun.read_text().split() if self.begun.exists() else []
        return self.wait_for(f"{count} judgings", lambda: len(pids := lines()) >= count and pids, 60)

    def test_a_load_that_no_run_needs_any_more_gives_the_device_back(self):
        self.make_suite(4, 4)
        self.serve(**self.ONE_WORKER)
        slow = self.submit(engine={**self.ENGINE, "load_seconds": 3600})
        worker = lambda: next(iter(self.call("GET", "/v1/workers")["workers"]), {})
        self.wait_for("the load", lambda: worker().get("state") == "loading", 60)
        self.call("POST", f"/v1/runs/{slow['id']}/cancel")
        self.assertEqual(self.finished(slow)["state"], "cancelled")
        self.assertEqual(self.finished(self.submit(engine=self.ENGINE))["state"], "done")
        self.assertEqual(worker()["restarts"], 0, "the device is not at fault")

    def test_a_run_whose_gates_are_judged_holds_no_place(self):
        self.make_suite(4, 4)
        self.hold_judging()
        self.serve(active_runs=1)
        ada = self.submit(user="ada", engine=self.ENGINE, gates=GATES)
        self.judged(1)
        bob = self.submit(user="bob", engine=self.ENGINE)
        self.wait_for("bob's work", lambda: self.run_of(bob)["progress"]["scored"] == 8, 60)
        self.go.touch()
        self.assertEqual({self.finished(run)["state"] for run in (ada, bob)}, {"done"})

    def cancel_judging(self, run):
        record = pathlib.Path(run["directory"]) / "run.json"
        self.wait_for("the run's work", lambda: json.loads(record.read_text())["state"] == "done", 60)

        def cancelled():
            try:  # 409 until its last file is written
                return self.call("POST", f"/v1/runs/{run['id']}/cancel")["state"]
            except AssertionError:
                return None
        self.assertIn(self.wait_for("the cancel", cancelled, 60), ("cancelling", "cancelled"))

    def test_a_cancel_ends_the_judging_and_a_resume_judges(self):
        self.make_suite(4, 4)
        self.hold_judging()
        self.serve(active_runs=1)
        runs = [self.submit(engine=self.ENGINE, gates=GATES) for _ in range(2)]
        pid = int(self.judged(1)[0])
        for run in reversed(runs):  # one of them waits to be judged, and one is being judged
            self.cancel_judging(run)
        for run in runs:
            over = self.finished(run, 30)
            self.assertEqual((over["state"], over["exit_status"], over["verdict"]), ("cancelled", 3, None), over)
            self.assertIn("cancelled before its gates were judged", over["problems"][-1])
            self.assertEqual(json.loads((pathlib.Path(over["directory"]) / "run.json").read_text())["state"], "cancelled")
        self.wait_for("the end of the judging", lambda: self.ended(pid), 30)
        self.go.touch()
        results = self.call("GET", f"/v1/runs/{runs[0]['id']}/results")["results"]
        self.call("POST", f"/v1/runs/{runs[0]['id']}/resume")
        over = self.finished(runs[0])
        self.assertEqual((over["state"], over["exit_status"], over["verdict"]), ("done", 1, "fail"), over)
        self.assertEqual(self.call("GET", f"/v1/runs/{runs[0]['id']}/results")["results"], results)

    def test_a_cancel_of_the_judging_outlives_a_kill(self):
        self.make_suite(4, 4)
        self.hold_judging()
        self.serve(active_runs=1)
        run = self.submit(engine=self.ENGINE, gates=GATES)
        self.judged(1)
        self.cancel_judging(run)
        self.restart(active_runs=1)
        self.assertEqual(self.finished(run, 60)["state"], "cancelled")
        self.go.touch()
        record = pathlib.Path(run["directory"]) / "run.json"
        self.wait_for("its folder to say so", lambda: json.loads(record.read_text())["state"] == "cancelled", 60)
        self.call("POST", f"/v1/runs/{run['id']}/resume")
        self.assertEqual(self.finished(run)["state"], "done")

    def change_rows(self, *statements):
        with sqlite3.connect(self.folder / "state" / "state.db") as database:
            for statement in statements:
                self.assertGreater(database.execute(statement).rowcount, 0, statement)
        database.close()

    def test_damaged_rows_are_named_and_keep_nobody_from_being_served(self):
        self.make_suite(4, 4)
        self.serve()
        done = self.finished(self.submit(engine=self.ENGINE))
        other = self.finished(self.submit(engine=self.ENGINE))
        self.call("POST", "/v1/watches", {"checkpoints": str(self.folder / "later"), "base": str(self.folder),
                                          "config": {"tasks": ["sums"], "task_dirs": ["tasks"], "engine": self.ENGINE}}, 201)
        paused = self.submit(engine={**self.ENGINE, "delay_ms": 60000})
        self.call("POST", f"/v1/runs/{paused['id']}/pause")
        self.daemon.kill()
        self.daemon.communicate()
        self.change_rows(f"UPDATE runs SET resource = 'x', created = 4611686018427387904 WHERE run = '{done['id']}'",
                         f"UPDATE runs SET resource = '[]', created = 1e308 WHERE run = '{other['id']}'",
                         f"UPDATE runs SET resource = '{{}}', submission = 'x' WHERE run = '{paused['id']}'",
                         "INSERT INTO costs (task_key, device, model, ended, cost) VALUES ('x', 'x', 'x', 1, 'x')",
                         "UPDATE watches SET definition = '5'")
        self.serve()
        self.wait_for("the paused run's end", lambda: self.run_of(paused)["state"] == "failed", 60)
        shown = {run["id"]: run for run in self.call("GET", "/v1/runs")["runs"]}
        self.assertEqual(set(shown), {run["id"] for run in (done, other, paused)})
        for run in (done, other):
            self.assertEqual((shown[run["id"]]["state"], shown[run["id"]]["created"]), ("done", None))
            self.assertIn("damaged", shown[run["id"]]["problems"][0])
            self.assertEqual(self.run_of(run), shown[run["id"]])
        self.assertIn("the submission of run", shown[paused["id"]]["problems"][0])
        self.assertEqual(self.finished(self.submit(engine=self.ENGINE))["state"], "done", "an estimate was damaged")
        self.assertEqual(self.call("GET", "/v1/watches")["watches"], [])
        self.daemon.terminate()
        _, err = self.daemon.communicate(timeout=60)
        for words in (f"the resource of run {done['id']}: not JSON", "state.db: costs: not JSON", "cannot be taken up again"):
            self.assertIn(words, err)

    def test_a_record_without_a_sensible_time_is_taken_up(self):
        self.make_suite(4, 4)
        self.serve()
        run = self.finished(self.submit(engine=self.ENGINE))
        self.daemon.kill()
        self.daemon.communicate()
        record = pathlib.Path(run["directory"]) / "run.json"
        record.write_text(json.dumps({**json.loads(record.read_text()), "ended": 1e308}))
        for file in (self.folder / "state").glob("state.db*"):
            file.unlink()
        self.serve()
        self.assertEqual(self.finished(run)["state"], "done")

    def test_a_key_stands_for_one_submission(self):
        self.make_suite(4, 4)
        self.serve()
        first = self.submit(key="one", engine=self.ENGINE)
        self.assertEqual(self.submit(200, key="one", engine=self.ENGINE)["id"], first["id"])
        for changes, words in (({"engine": {**self.ENGINE, "delay_ms": 7}}, "something else as the eval.yaml"),
                               ({"priority": 4}, "something else as priority")):
            refused = self.submit(422, key="one", **{"engine": self.ENGINE, **changes})
            self.assertIn(f"the Idempotency-Key 'one' was used for run {first['id']}", refused["detail"])
            self.assertIn(words, refused["detail"])
            self.assertIn("another key", refused["remedy"])
        self.assertEqual(self.submit(201, key="one", user="bob", engine=self.ENGINE)["user"], "bob", "users have their own")
        self.assertEqual(len(self.call("GET", "/v1/runs")["runs"]), 2)
        self.finished(first)
        self.submit(422, key="one", priority=4, engine=self.ENGINE)
        self.assertEqual(self.submit(200, key="one", engine=self.ENGINE)["id"], first["id"])

    def watch(self, folder, status):
        return self.call("POST", "/v1/watches", {"checkpoints": str(folder), "base": str(self.folder), "settle_s": 0, "config": {
            "tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": self.ENGINE}}, status)

    def test_a_watch_waits_for_its_folder_where_it_can_come(self):
        self.make_suite(4, 4)
        self.serve(roots=[str(self.tasks)])
        later = self.tasks / "later"
        watch = self.watch(later, 201)
        shown = lambda: self.call("GET", f"/v1/watches/{watch['id']}")
        self.wait_for("the watch to say what it waits for", lambda: str(later) in (shown()["problem"] or ""), 60)
        for folder in (self.tasks / "a" / "b", self.tasks / "sums.yaml", self.folder / "outside" / "later", self.folder / "later"):
            self.assertIn(str(folder), self.watch(folder, 422)["detail"])
        later.mkdir()
        (later / "step-1").mkdir()
        self.call("POST", "/v1/checkpoints", {"path": str(later / "step-1")})
        self.wait_for("the folder to be looked at", lambda: shown()["problem"] is None, 60)

    def test_paths_that_are_not_there_are_named_with_their_keys(self):
        self.make_suite(4, 4)
        self.serve(roots=[str(self.tasks)])
        nowhere = str(self.tasks / "nowhere")
        for key, changes in (("engine.generations", {"engine": {"name": "replay", "generations": nowhere}}),
                             ("data_dir", {"data_dir": nowhere}),
                             ("gates.baseline", {"gates": {**GATES, "baseline": nowhere}})):
            with self.subTest(key):
                changes = {"engine": self.ENGINE, "task_dirs": [str(self.tasks)], **changes}
                detail = self.submit(422, **changes)["detail"]
                self.assertRegex(detail, rf"eval\.yaml.*: key '{key}': {nowhere}:? is not there")


class Places(EvaldCase):
    def test_the_command_line_names_key_and_file(self):
        self.make_suite(4, 4)
        file = self.folder / "file"
        file.touch()
        for key, value in (("data_dir", str(self.folder / "nowhere")), ("state_dir", str(file)), ("state_dir", "/dev/null/x")):
            with self.subTest(key, value=value):
                done = self.evald("run", self.write_config(**{key: value}), "--quiet")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, rf"eval\.yaml.*: key '{key}': {value}")
        (self.folder / "serve.yaml").write_text(json.dumps({"listen": "127.0.0.1:0", "state_dir": str(file)}))
        done = self.evald("serve", self.folder / "serve.yaml")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, rf"serve\.yaml: key 'state_dir': {file}")
        done = self.evald("run", self.write_config(), "--data-dir", self.folder / "nowhere", "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(f"--data-dir: {self.folder / 'nowhere'} is not a folder", done.stderr)


if __name__ == "__main__":
    unittest.main()
