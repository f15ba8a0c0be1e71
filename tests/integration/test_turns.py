"""Standard errors that take long to bootstrap: nobody else waits for them, nor whoever stops a run."""
import json
import signal
import time
import unittest

from service_case import Service

DOCUMENTS = 1500
FILTERS = 60


class Turns(Service):
    def make_long(self, filters=FILTERS):
        """A task whose answers are there at once, and whose standard errors draw 1,500 values for each filter and sample."""
        (self.tasks / "long.jsonl").write_text('{"q": "a"}\n' * DOCUMENTS)
        (self.tasks / "long.yaml").write_text(json.dumps({
            "task": "long", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "long.jsonl"}},
            "output_type": "generate_until", "test_split": "test", "doc_to_text": "{{q}}", "doc_to_target": "1",
            "filter_list": [{"name": f"f{i}", "filter": [{"function": "take_first"}]} for i in range(filters)],
            "metric_list": [{"metric": "exact_match", "aggregation": "median", "higher_is_better": True}]}))

    def config(self, **changes):
        return {"tasks": ["long"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated", "concurrency": 64}, **changes}

    def scored(self, run):
        return json.loads(self.ask("GET", f"/v1/runs/{run}")[2])["progress"]["scored"]

    def post(self, user, config):
        status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": config, "user": user}), Content_Type="application/json")
        self.assertEqual(status, 201, body)
        return json.loads(body)["id"]

    def test_another_users_run_is_done_meanwhile_and_nothing_waits_for_what_is_stopped(self):
        self.make_suite(8, 8)
        self.make_long()
        self.serve()
        long = [self.post("mal", self.config()) for _ in range(2)]
        self.wait_for("the first run to be scored", lambda: self.scored(long[0]) == DOCUMENTS)
        short = self.post("bob", self.config(tasks=["sums"], bootstrap_iters=1000))
        self.wait_for("bob's run", lambda: self.state(short) == "done")
        status, _, body = self.ask("POST", f"/v1/runs/{long[0]}/cancel", "{}", Content_Type="application/json")
        if self.state(long[0]) != "done":  # a machine of many processors may have done it
            self.assertEqual(status, 200, body)
        self.wait_for("the other run to be scored", lambda: self.scored(long[1]) == DOCUMENTS)
        begin = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(self.process.wait(60), 0)
        self.assertLess(time.monotonic() - begin, 15, "the service waits for standard errors")

    def test_a_run_that_drains_leaves_them_to_its_resumption(self):
        self.make_long()
        config = self.write_config(tasks=["long"], engine={"name": "emulated", "concurrency": 64}, bootstrap_iters=1_000_000)
        process = self.start("run", config, "--quiet")
        # Samples are written before standard errors are computed.
        self.wait_for("samples", lambda: list(self.folder.glob("runs/*/samples_long.jsonl")))
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3, f"{out}\n{err}")
        self.assertLess(time.monotonic() - begin, 15, "the run waits for standard errors")
        run = self.only_run()
        self.assertEqual(json.loads((run / "run.json").read_text())["state"], "incomplete")
        self.assertFalse((run / "results.json").exists())

    def test_a_run_whose_standard_errors_would_take_hours_is_refused_before_it_computes(self):
        self.make_long(filters=FILTERS + 10)
        config = self.write_config(tasks=["long"], engine={"name": "emulated"}, bootstrap_iters=1_000_000)
        refused = self.evald("run", config, "--quiet")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("task 'long'", refused.stderr)
        self.assertIn("set 'bootstrap_iters' to at most 952380", refused.stderr)


if __name__ == "__main__":
    unittest.main()
