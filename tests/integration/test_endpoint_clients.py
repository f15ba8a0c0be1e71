"""Other people's clients on `evald endpoint`: lm-evaluation-harness's local-completions, and Inspect. Their scores are
those of `evald run`.

EVALD_LM_EVAL and EVALD_INSPECT name the programs `lm_eval` (lm-eval[api] 0.4.13) and `inspect` (inspect-ai). Without a
variable, the one on PATH is used.
"""
import json
import os
import shutil
import subprocess
import unittest

from evald_case import QUICKSTART, SOURCE
from test_endpoint import EndpointCase

EXAMPLE = SOURCE / "examples" / "endpoint"
LM_EVAL = shutil.which(os.environ.get("EVALD_LM_EVAL", "lm_eval"))
INSPECT = shutil.which(os.environ.get("EVALD_INSPECT", "inspect"))
CHECKPOINT = QUICKSTART / "checkpoints" / "step-00350"  # right in some answers, wrong in others


class Clients(EndpointCase):
    def run_tasks(self, tasks, task_dir, checkpoint):
        """evald's own scores, {task: {"metric,filter": value}}."""
        config = self.folder / "eval.yaml"
        config.write_text(json.dumps({
            "checkpoint": str(checkpoint), "tasks": tasks, "task_dirs": [str(task_dir)], "engine": {"name": "native"},
            "workers": {"threads": 1, "devices": ["cpu:0"]}, "output": {"dir": "runs"}, "cache_dir": "cache",
            "state_dir": "state"}))
        self.run_done(config)
        return json.loads((self.only_run() / "results.json").read_text())["results"]

    def run_client(self, command, folder, **environment):
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(self.folder / "hf"),
                       "COLUMNS": "200", "NO_COLOR": "1", **environment}
        done = subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True,
                              timeout=600)
        self.assertEqual(done.returncode, 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
        return done

    @staticmethod
    def samples_in(folder, task):
        """One sample for each document and filter."""
        found = {}
        for path in folder.rglob(f"samples_{task}*.jsonl"):
            for line in path.read_text().splitlines():
                sample = json.loads(line)
                found[sample["doc_id"], sample["filter"]] = sample
        return found

    @unittest.skipIf(LM_EVAL is None, "no `lm_eval` program: EVALD_LM_EVAL may name one")
    def test_lm_evaluation_harness(self):
        tasks = ["quickstart_math", "quickstart_choice"]
        own = self.run_tasks(tasks, QUICKSTART / "tasks", CHECKPOINT)
        _, said = self.serve(checkpoint=CHECKPOINT)
        out = self.folder / "harness"
        self.run_client([LM_EVAL, "run", "--model", "local-completions", "--model_args",
                         f"model=step-00350,tokenizer={CHECKPOINT},base_url={said['url']}/v1/completions,num_concurrent=16",
                         "--include_path", ".", "--tasks", ",".join(tasks), "--output_path", out, "--log_samples"],
                        QUICKSTART / "tasks", OPENAI_API_KEY=said["key"])
        results = json.loads(next(out.rglob("results*.json")).read_text())["results"]
        for task in tasks:
            for metric, value in results[task].items():
                if isinstance(value, float):
                    self.assertAlmostEqual(own[task][metric], value, places=12, msg=f"{task} {metric}")
            mine, theirs = self.samples_in(self.only_run(), task), self.samples_in(out, task)
            self.assertEqual(set(mine), set(theirs))
            for key, sample in theirs.items():
                self.assertEqual(self.plain(mine[key]["resps"]), self.plain(sample["resps"]), f"{task} {key}")
        self.assertLess(own["quickstart_choice"]["acc,none"], 0.9, "a test that a constant passes")

    @staticmethod
    def plain(responses):
        """Texts, or pairs of log-likelihood and greediness, which harness and evald write as text or as values."""
        return [[[float(item[0]), str(item[1])] if isinstance(item, list) else item for item in response]
                for response in responses]

    @unittest.skipIf(INSPECT is None, "no `inspect` program: EVALD_INSPECT may name one")
    def test_inspect(self):
        tasks = self.folder / "first"
        tasks.mkdir()
        text = (QUICKSTART / "tasks" / "quickstart_math.yaml").read_text()
        text = text.replace("../data", str(QUICKSTART / "data")).replace("task: quickstart_math", "task: math_first")
        (tasks / "math_first.yaml").write_text(text + "fewshot_config: {sampler: first_n}\n")
        own = self.run_tasks(["math_first"], tasks, CHECKPOINT)
        checkpoint = self.folder / "with-template"
        shutil.copytree(CHECKPOINT, checkpoint)
        shutil.copy(EXAMPLE / "chat_template.jinja", checkpoint)
        _, said = self.serve(checkpoint=checkpoint)
        logs = self.folder / "logs"
        self.run_client([INSPECT, "eval", "examples/endpoint/inspect_math.py", "--model", "openai-api/evald/with-template",
                         "--display", "plain", "--log-format", "json", "--log-dir", logs], SOURCE,
                        EVALD_API_KEY=said["key"], EVALD_BASE_URL=f"{said['url']}/v1")
        log = json.loads(next(logs.glob("*.json")).read_text())
        self.assertEqual(log["status"], "success")
        accuracy = log["results"]["scores"][0]["metrics"]["accuracy"]["value"]
        self.assertAlmostEqual(accuracy, own["math_first"]["exact_match,strict-match"], places=12)
        self.assertGreater(accuracy, 0)


if __name__ == "__main__":
    unittest.main()
