"""The suites base and instruct: what their tasks need, and a run of all of base on made-up documents."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

from evald_case import QUICKSTART, SOURCE, EvaldCase
from service_case import ServiceCase

SUITE = SOURCE / "examples" / "suite"
DOCUMENTS = 20
# The groups of base with values of their own.
GROUPS = {"mmlu": 57, "mmlu_pro": 14, "hendrycks_math": 7, "bbh": 27, "mgsm_native_cot": 11}
ALONE = ["gpqa_main_n_shot", "gsm8k_cot", "humaneval_plus", "mbpp_plus", "arc_easy", "arc_challenge", "hellaswag", "openbookqa",
         "piqa", "winogrande", "race", "drop", "triviaqa", "wikitext"]
TASKS = sum(GROUPS.values()) + len(ALONE)


class SuiteCase:
    """Data for all tasks, made once for each class."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = pathlib.Path(tempfile.mkdtemp(prefix="evald-suite-"))
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        subprocess.run([sys.executable, SUITE / "make_data.py", cls.data, "--documents", str(DOCUMENTS)], check=True)

    def suite(self, **changes):
        """The settings of examples/suite/eval.yaml, but for its folders."""
        return {"tasks": [{"task": "base", "limit": DOCUMENTS, "generation_kwargs": {"max_gen_toks": 16}}],
                "task_dirs": None, "data_dir": str(self.data), "checkpoint": str(QUICKSTART / "checkpoints" / "step-01200"),
                "engine": {"name": "native"}, **changes}

    def check_scored(self, results, documents=DOCUMENTS):
        """Each task has a number for each of its metrics, from all documents."""
        entries = results["results"]
        leaves = [task for task in results["configs"] if task in entries]
        self.assertEqual(len(leaves), TASKS)
        for task in leaves:
            values = {key: value for key, value in entries[task].items() if "," in key and "_stderr" not in key}
            self.assertTrue(values, task)
            for key, value in values.items():
                self.assertIsInstance(value, (int, float), f"{task} {key}")
            self.assertEqual(results["n-samples"][task]["effective"], documents, task)
            self.assertIn(task, results["versions"])
        for group, members in GROUPS.items():
            self.assertEqual(len(self.leaves(results, group)), members, group)
            self.assertEqual(entries[group]["sample_len"], documents * members, group)
        self.assertEqual(len(self.leaves(results, "base")), TASKS)

    def leaves(self, results, name):
        members = results["group_subtasks"].get(name)
        return [name] if not members else [leaf for member in members for leaf in self.leaves(results, member)]


class Runs(SuiteCase, EvaldCase):
    def test_every_task_of_base_is_scored(self):
        results = self.run_done(self.write_config(**self.suite()), timeout=600)
        self.check_scored(results)
        shots = results["n-shot"]
        self.assertEqual([shots[task] for task in ("mmlu_anatomy", "arc_challenge", "hellaswag", "piqa", "bbh_cot_fewshot_snarks")],
                         [5, 25, 10, 0, 3])

    def test_the_example_has_these_settings(self):
        text = (SUITE / "eval.yaml").read_text()
        self.assertIn(f"limit: {DOCUMENTS}\n    generation_kwargs: {{max_gen_toks: 16}}", text)
        plan = json.loads(self.evald("validate", SUITE / "eval.yaml", "--data-dir", self.data, "--json").stdout)
        self.assertEqual(len(plan["tasks"]), TASKS)
        self.assertEqual({task["documents"] for task in plan["tasks"]}, {DOCUMENTS})


class Needs(SuiteCase, EvaldCase):
    def needs(self, *arguments, status):
        done = self.evald("tasks", "--needs", *arguments, "--json")
        self.assertEqual(done.returncode, status, done.stderr)
        return {task["task"]: task for task in json.loads(done.stdout)}

    def test_all_of_base_is_there(self):
        tasks = self.needs("base", "--data-dir", self.data, status=0)
        self.assertEqual(len(tasks), TASKS)
        self.assertTrue(all(task["ready"] for task in tasks.values()))
        arc = tasks["arc_easy"]["needs"]
        self.assertEqual([need["what"] for need in arc], ["allenai/ai2_arc ARC-Easy: test", "allenai/ai2_arc ARC-Easy: train"])
        self.assertEqual(arc[0]["found"], [str(self.data / "ai2_arc/ARC-Easy/test.jsonl")])
        self.assertIn({"kind": "program", "what": "/usr/bin/python3", "there": True}, tasks["humaneval_plus"]["needs"])
        table = self.evald("tasks", "--needs", "mmlu", "piqa", "--data-dir", self.data)
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertIn("58 of 58 tasks have all that they need", table.stdout)

    def test_missing_data_and_packages_are_named(self):
        some = self.folder / "data"
        shutil.copytree(self.data, some)
        shutil.rmtree(some / "piqa")
        (some / "bbh" / "snarks" / "fewshot.jsonl").unlink()
        (self.tasks / "own.yaml").write_text(
            "task: own\ndataset_path: made/piqa\ntest_split: test\ndoc_to_text: !function utils.text\ndoc_to_target: a\n"
            "metric_list: [{metric: exact_match}]\n")
        (self.tasks / "utils.py").write_text("import json, beside\nfrom nowhere_to_be_found.x import y\ndef text(doc): return doc['q']\n")
        (self.tasks / "beside.py").write_text("import argparse\n")
        tasks = self.needs("piqa", "openbookqa", "bbh_cot_fewshot_snarks", "own", "--data-dir", some, "--task-dir", self.tasks, status=1)
        self.assertEqual({name: task["ready"] for name, task in tasks.items()},
                         {"piqa": False, "openbookqa": True, "bbh_cot_fewshot_snarks": False, "own": False})
        missing = {name: [need["what"] for need in task["needs"] if not need["there"]] for name, task in tasks.items()}
        self.assertEqual(missing["piqa"], ["baber/piqa: validation"])
        self.assertEqual(missing["bbh_cot_fewshot_snarks"], ["SaylorTwift/bbh snarks: fewshot"])
        self.assertEqual([need["kind"] for need in tasks["own"]["needs"]], ["data", "code", "package"])
        self.assertEqual(missing["own"][2], "nowhere_to_be_found")
        self.assertIn(str(some / "piqa" / "validation.jsonl"), tasks["piqa"]["needs"][0]["remedy"])
        allowed = self.needs("own", "--data-dir", some, "--task-dir", self.tasks, "--allow-task-code", status=1)
        self.assertEqual([need["there"] for need in allowed["own"]["needs"]], [False, True, False])

    def test_a_run_names_all_that_is_missing_before_it_stages_anything(self):
        some = self.folder / "data"
        shutil.copytree(self.data, some)
        for name in ("piqa", "mmlu", "drop"):
            shutil.rmtree(some / name)
        staging = self.folder / "staging"
        config = self.write_config(**self.suite(data_dir=str(some), staging={"root": str(staging)}))
        done = self.evald("run", config, "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        line = done.stderr.strip().splitlines()[-1]
        self.assertIn(f"59 of the run's {TASKS} tasks cannot be prepared", line)
        self.assertIn("no file holds the split 'test' of the dataset 'cais/mmlu' (57 tasks, such as 'mmlu_", line)
        self.assertIn("no file holds the split 'dev' of the dataset 'cais/mmlu'", line)
        self.assertIn("no file holds the split 'validation' of the dataset 'baber/piqa' (task 'piqa')", line)
        self.assertIn("'EleutherAI/drop'", line)
        self.assertIn("evald tasks --needs", line)
        self.assertFalse(staging.exists())
        self.assertFalse((self.folder / "runs").exists())

    def test_instruct_lacks_only_the_code_of_ifeval(self):
        tasks = self.needs("instruct", "--data-dir", self.data, status=1)
        self.assertEqual([name for name, task in tasks.items() if not task["ready"]], ["ifeval"])
        self.assertIn("lm_eval", [need["what"] for need in tasks["ifeval"]["needs"]])


class OnAService(SuiteCase, ServiceCase):
    def test_the_groups_of_base_are_shown(self):
        self.serve(output_dir=str(self.folder / "runs"))
        self.addCleanup(self.stop)
        run = self.finished(self.submit(**self.suite()), seconds=600)
        self.assertEqual(run["state"], "done", run)
        results = self.call("GET", f"/v1/runs/{run['id']}/results")
        self.check_scored(results)
        for group in GROUPS:  # the page's rows
            self.assertIn(group, run["scores"])
            self.assertIn(group, results["groups"])


if __name__ == "__main__":
    unittest.main()
