"""The engine `vllm` on a real vLLM, against the native engine."""
import json
import os
import pathlib
import unittest

from evald_case import BINARIES, OVER, QUICKSTART, scores
from vllm_case import CHECKPOINTS, LIMIT, MORE_TASKS, VLLM, VllmCase, untie


class Vllm(VllmCase):
    def test_scores_and_answers_are_the_native_engines_also_after_a_kill(self):
        self.write_more_tasks()
        tasks = (*self.TASKS, *MORE_TASKS)
        more = f"task_dirs={json.dumps([str(QUICKSTART / 'tasks'), str(self.tasks)])}"
        expected_scores, expected = self.native("native", more, tasks=tasks)
        lengths = {answer["tokens_out"] for (task, *_), answer in expected.items() if task == "words"}
        self.assertGreater(max(lengths), 1, "choices of several tokens")
        found_scores, log = self.killed(lambda server: server, *self.vllm("served", more, tasks=tasks))
        self.assertIn("the server ended (signal 9); start 1 of 3", log)
        self.check_answers(self.answers("served"), expected)
        for results in (found_scores, expected_scores):  # a perplexity shows the last bits of its log-likelihoods
            del results["results"]["rolling"]
        self.assertEqual(found_scores, expected_scores)
        load, = self.loads(self.folder / "runs" / "served")
        ways = {way["name"]: way["right"] for way in load["scoring"]["ways"]}
        self.assertEqual(ways, {"next token": True, "prompt, cached": True, "prompt": True}, load)

    def test_a_server_whose_engine_is_killed_is_started_again_whatever_its_exit_status(self):
        def engine(server):
            found = [entry for entry in pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()
                     if b"EngineCore" in pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()]
            self.assertEqual(len(found), 1, "one engine")
            return int(found[0])
        expected_scores, expected = self.native()
        found_scores, log = self.killed(engine, *self.vllm("served"))
        self.assertRegex(log, r"the server ended \(exit status \d+\); start 1 of 3")
        self.check_answers(self.answers("served"), expected)
        self.assertEqual(found_scores, expected_scores)

    def test_thinking_is_the_native_engines(self):
        # The calculation before "####" is the thinking. A server with the stop string would end it at its first "=".
        chosen = [{"task": "quickstart_math", "limit": LIMIT, "generation_kwargs": {"until": ["="]}}]
        thinking = ('engine.think_end_token="####"', f"tasks={json.dumps(chosen)}")
        expected_scores, expected = self.native("native", *thinking)
        found = self.run_done(*self.vllm("served", *thinking))
        self.assertEqual(scores(found), expected_scores)
        self.check_answers(self.answers("served"), expected)
        for key, answer in self.answers("served").items():
            self.assertIn("=", answer["thinking"])
            self.assertEqual((answer["thinking"], answer["finish"]), (expected[key]["thinking"], expected[key]["finish"]))

    def test_a_watch_swaps_checkpoint_after_checkpoint_into_one_server(self):
        steps = sorted(path.name for path in CHECKPOINTS.iterdir())
        untied, watched = self.folder / "untied", self.folder / "watched"
        untied.mkdir()
        watched.mkdir()
        expected = {}
        for step in steps:
            untie(CHECKPOINTS / step, untied / step)
            expected[step] = self.native(step, f"checkpoint={untied / step}")
        path = f"{pathlib.Path(VLLM).parent}:{os.environ['PATH']}"
        self.serve(environment={**os.environ, "PATH": path}, allow_engines=["vllm"], staging={"root": str(self.staging)})
        config = {"tasks": [{"task": task, "limit": LIMIT} for task in self.TASKS], "task_dirs": [str(QUICKSTART / "tasks")],
                  "engine": {"name": "vllm", "dtype": "float32", "kv_cache": "1GiB"}}
        self.call("POST", "/v1/watches", {"config": config, "checkpoints": str(watched)}, 201)
        loads = []
        for count, step in enumerate(steps, 1):
            (untied / step).rename(watched / step)

            def over():
                runs = self.call("GET", "/v1/runs?limit=200")["runs"]
                return len(runs) == count and all(run["state"] in OVER for run in runs) and runs
            run = next(run for run in self.wait_for(step, over, 600) if run["checkpoint"].endswith(step))
            self.assertEqual(run["state"], "done", self.run_of(run))
            folder = pathlib.Path(self.run_of(run)["directory"])
            self.check_answers(self.answers_in(folder), expected[step][1])
            self.assertEqual(scores(json.loads((folder / "results.json").read_text())), expected[step][0])
            loads += self.loads(folder)
        self.assertEqual([load["swapped"] for load in loads], [False, True, True, True], loads)
        self.assertEqual({load["server_starts"] for load in loads}, {1})
        seconds = [load["seconds"] for load in loads]
        print(f"start {seconds[0]:.1f} s, swaps {', '.join(f'{s:.2f}' for s in seconds[1:])} s, ", end="", flush=True)
        self.assertLess(max(seconds[1:]), seconds[0] / 5)


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
