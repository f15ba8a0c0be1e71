"""Standard errors that take long to bootstrap delay neither other users nor a person who stops a run."""
import json
import os
import shutil
import signal
import struct
import time
import unittest

from evald_case import QUICKSTART
from service_case import Service

DOCUMENTS = 1500
FILTERS = 60


class Turns(Service):
    def make_long(self, documents=DOCUMENTS):
        """A task whose answers come at once. Its standard errors draw a value for each document, filter and sample."""
        (self.tasks / "long.jsonl").write_text('{"q": "a"}\n' * documents)
        (self.tasks / "long.yaml").write_text(json.dumps({
            "task": "long", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "long.jsonl"}},
            "output_type": "generate_until", "test_split": "test", "doc_to_text": "{{q}}", "doc_to_target": "1",
            "filter_list": [{"name": f"f{i}", "filter": [{"function": "take_first"}]} for i in range(FILTERS)],
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
        if self.state(long[0]) != "done":  # a machine with many processors may have ended it
            self.assertEqual(status, 200, body)
        self.wait_for("the other run to be scored", lambda: self.scored(long[1]) == DOCUMENTS)
        begin = time.monotonic()
        self.daemon.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(60), 0)
        self.assertLess(time.monotonic() - begin, 15, "the service waits for standard errors")

    # A document that is under way is never ended, so each of these runs holds a device.
    DEVICES = {"count": 4, "threads": 1}

    def endless(self, **changes):
        return self.config(tasks=[{"task": "sums", "limit": 1}], engine={"name": "emulated", "concurrency": 1, "delay_ms": 3_600_000}, **changes)

    def act(self, run, action):
        status, _, body = self.ask("POST", f"/v1/runs/{run}/{action}", "{}", Content_Type="application/json")
        return status, json.loads(body)

    def checkpoint_of(self, size):
        """A whole checkpoint of about `bytes` bytes that takes no disk space."""
        folder = self.folder / f"checkpoint-{size}"
        shutil.copytree(sorted((QUICKSTART / "checkpoints").iterdir())[0], folder)
        file = sorted(folder.glob("*.safetensors"))[0]
        data = file.read_bytes()
        length = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8:8 + length])
        begin = max(entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__")
        size = size // 4096 * 4096
        header["more"] = {"dtype": "F32", "shape": [size // 4], "data_offsets": [begin, begin + size]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        with open(file, "wb") as out:
            out.write(struct.pack("<Q", len(text)) + text + data[8 + length:])
            out.truncate(8 + len(text) + begin + size)
        return str(folder)

    def test_endless_runs_of_one_user_do_not_hold_all_places(self):
        self.make_suite(8, 8)
        self.serve(workers=self.DEVICES)
        endless = [self.post("mal", self.endless()) for _ in range(3)]
        self.wait_for("places to be taken", lambda: [self.state(run) for run in endless[:2]] == ["running", "running"])
        self.assertEqual(self.state(endless[2]), "queued")
        run = self.post("bob", self.config(tasks=["sums"]))
        self.wait_for("bob's run", lambda: self.state(run) in ("running", "done"), 30)

    def test_a_run_without_room_and_a_paused_run_hold_up_nobody(self):
        self.make_suite(8, 8)
        self.serve(workers=self.DEVICES)
        paused = self.post("mal", self.endless())
        self.wait_for("the run to begin", lambda: self.state(paused) == "running")
        self.assertEqual(self.act(paused, "pause")[0], 200)
        room = os.statvfs(self.folder)
        free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
        large = self.config(tasks=["sums"], checkpoint=self.checkpoint_of((free + total) // 2))
        without_space = self.post("mal", large)
        run = self.post("bob", self.config(tasks=["sums"]))
        self.wait_for("the run without room", lambda: self.state(without_space) == "incomplete", 30)
        self.assertIn("staging needs", json.loads(self.ask("GET", f"/v1/runs/{without_space}")[2])["problems"][0])
        self.wait_for("bob's run", lambda: self.state(run) in ("running", "done"), 30)

    def test_what_the_staging_root_can_never_hold_is_refused(self):
        self.make_suite(8, 8)
        self.serve()
        room = os.statvfs(self.folder)
        large = self.config(tasks=["sums"], checkpoint=self.checkpoint_of(room.f_blocks * room.f_frsize + (1 << 30)))
        status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": large}), Content_Type="application/json")
        self.assertEqual(status, 422, body)
        self.assertIn("in all", json.loads(body)["detail"])

    def test_a_user_pauses_only_so_many_runs_at_work(self):
        self.make_suite(8, 8)
        self.serve(quotas={"paused_per_user": 2}, workers=self.DEVICES)
        runs = [self.post("mal", self.endless()) for _ in range(4)]
        for run in runs[:2]:
            self.wait_for("it to begin", lambda: self.state(run) == "running")
            self.assertEqual(self.act(run, "pause")[0], 200)
        self.wait_for("the third", lambda: self.state(runs[2]) == "running")
        status, problem = self.act(runs[2], "pause")
        self.assertEqual(status, 429, problem)
        self.assertTrue(problem["type"].endswith(":paused"), problem)
        self.assertEqual(self.act(runs[0], "pause")[0], 200, "it is paused")
        self.assertEqual(self.act(runs[0], "cancel")[0], 200)
        self.wait_for("the first to end", lambda: self.state(runs[0]) == "cancelled")
        self.assertEqual(self.act(runs[2], "pause")[0], 200)

    def test_an_eval_yaml_is_bounded(self):
        self.make_suite(8, 8)
        self.serve()
        text = json.dumps(self.config(tasks=["sums"])) + "\n#" + "x" * (300 << 10)
        status, _, body = self.ask("POST", "/v1/runs?base=/", text, Content_Type="application/yaml")
        self.assertEqual(status, 422, body)
        self.assertIn("at most 262144", json.loads(body)["detail"])

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
        self.make_long(documents=2 * DOCUMENTS)
        config = self.write_config(tasks=["long"], engine={"name": "emulated"}, bootstrap_iters=1_000_000)
        refused = self.evald("run", config, "--quiet")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("task 'long'", refused.stderr)
        self.assertIn("set 'bootstrap_iters' to at most 555555", refused.stderr)


if __name__ == "__main__":
    unittest.main()
