"""Settings of engines that no engine accepts are refused before there is a run. Some settings only a worker can
refuse."""
import json
import unittest

from service_case import Service

# Wrong values for each kind of setting, and for settings within a setting.
WRONG = {
    "generations": [{"name": "replay", "generations": value} for value in (5, None, True, ["a"], {"a": 1}, 0.5)],
    "base_url": [{"name": "openai", "base_url": value} for value in (5, True, ["http://h"], {"http://h": 1})],
    "command": [{"name": "openai"}, {"name": "openai", "base_url": None}],
    "retries": [{"name": "openai", "base_url": "http://127.0.0.1:9", "retries": value} for value in (-1, 0.5, "5", 10**30, [1])],
    "extra_body": [{"name": "openai", "base_url": "http://127.0.0.1:9", "extra_body": value} for value in (5, ["a"], "a")],
    "health_path": [{"name": "openai", "base_url": "http://127.0.0.1:9", "health_path": value} for value in (5, {}, "x")],
    "api_key_env": [{"name": "openai", "base_url": "http://127.0.0.1:9", "api_key_env": value} for value in (5, ["HOME"])],
    "kv_cache": [{"name": "native", "kv_cache": value} for value in (0, -5, "lots", True, [1], 0.5)],
    "fast": [{"name": "native", "fast": value} for value in (1, "yes", [True], {})],
    "kernels": [{"name": "native", "kernels": value} for value in (5, "mmx", [])],
    "concurrency": [{"name": "emulated", "concurrency": value} for value in (0, 2**31 - 1, 2**40, "8", True, [8])],
    "clock_scale": [{"name": "emulated", "clock_scale": value} for value in (-1, 1e300, "1", {})],
    "tokens_out": [{"name": "emulated", "tokens_out": value} for value in (-1, [1], [2, 1], [1, "2"], {"least": 1})],
    "slow": [{"name": "emulated", "slow": value} for value in (10, [10], {"cpu:0": "10"}, {"cpu:0": 0})],
    "text": [{"name": "emulated", "text": value} for value in (5, ["a"], {})],
}


class EngineSettings(Service):
    def post(self, path, config, **members):
        return self.ask("POST", path, json.dumps({"config": config, **members}), Content_Type="application/json")

    def config_of(self, engine):
        return {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": engine, **self.checkpoint_of(engine)}

    def checkpoint_of(self, engine):
        return {"checkpoint": str(self.folder)} if engine["name"] in ("native", "openai") else {}

    def test_no_run_and_no_watch_is_taken_with_a_setting_that_no_engine_takes(self):
        self.make_suite(4, 4)
        self.serve()
        for key, engines in WRONG.items():
            for engine in engines:
                for path, members in (("/v1/runs", {}), ("/v1/watches", {"checkpoints": str(self.folder)})):
                    with self.subTest(path, engine=engine):
                        status, _, answer = self.post(path, self.config_of(engine), **members)
                        self.assertEqual(status, 422, answer)
                        self.assertRegex(answer.decode(), rf"key 'engine\.{key}': found .*expected ")
        self.assertEqual(json.loads(self.ask("GET", "/v1/runs")[2])["runs"], [])

    def test_the_command_line_refuses_the_same(self):
        self.make_suite(4, 4)
        for key, engines in WRONG.items():
            config = self.write_config(engine=engines[0], **self.checkpoint_of(engines[0]))
            for command in ("validate", "run"):
                with self.subTest(command, engine=engines[0]):
                    done = self.evald(command, config)
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertRegex(done.stderr, rf"eval\.yaml:\d+: key 'engine\.{key}': found .*expected ")

    def test_what_only_a_worker_can_refuse_ends_that_run_alone(self):
        """There are more such runs than a worker has restarts, and one correct run beside them."""
        self.make_suite(4, 4)
        self.serve()
        bad, gone = [], self.folder / "answers"
        for _ in range(8):
            engine = {"name": "replay", "generations": str(gone)}
            status, _, answer = self.post("/v1/runs", self.config_of(engine), priority=10)
            self.assertEqual(status, 201, answer)
            bad.append(json.loads(answer)["id"])
        status, _, answer = self.post("/v1/runs", self.config_of({"name": "emulated"}))
        self.assertEqual(status, 201, answer)
        good = json.loads(answer)["id"]
        over = lambda run: (shown := json.loads(self.ask("GET", f"/v1/runs/{run}")[2])) if self.state(run) in ("done", "failed", "incomplete") else None
        for run in bad:
            shown = self.wait_for(run, lambda run=run: over(run), 60)
            self.assertEqual((shown["state"], shown["exit_status"]), ("failed", 2), shown)
            self.assertIn(f'key \'generations\': found "{gone}", expected a file or folder that is there', shown["problems"][0])
        self.assertEqual(self.wait_for(good, lambda: over(good), 60)["state"], "done")
        worker = json.loads(self.ask("GET", "/v1/workers")[2])["workers"][0]
        self.assertEqual((worker["restarts"], worker["state"]), (0, "idle"), worker)
        self.assert_lives()


if __name__ == "__main__":
    unittest.main()
