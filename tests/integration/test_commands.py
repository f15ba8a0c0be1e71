"""Commands other than `run`, through the command line."""
import gzip
import json
import os
import pathlib
import sys
import unittest

from evald_case import BINARIES, QUICKSTART, SOURCE, EvaldCase

DATA = pathlib.Path(os.environ.get("EVALD_DATA_DIR", SOURCE.parent / "shared" / "data"))
CHECKPOINT = sorted((QUICKSTART / "checkpoints").glob("step-*"))[-1]


def rows_of(path):
    with (gzip.open(path, "rt") if path.suffix == ".gz" else open(path)) as lines:
        return [json.loads(line) for line in lines if line.strip()]


# Rows of MBPP, by task_id, whose own code does not pass their tests.
MBPP_FAILURES = {
    123: "takes more than the 3 s of CPU time: divisors of all numbers up to 9999, one by one (a fast machine may do it)",
    367: "its tests need test_setup_code, which the task (lm-evaluation-harness's) does not run: NameError",
}


OWN_CODE_TASK = """task: mine
dataset_path: json
dataset_kwargs: {data_files: {test: mine.jsonl}}
unsafe_code: true
test_split: test
doc_to_text: "{{prompt}}"
doc_to_target: "{{test}}"
output_type: generate_until
metric_list:
  - {metric: !function utils.pass_at_k, aggregation: mean, higher_is_better: true, k: [1]}
filter_list:
  - name: none
    filter: [{function: custom, filter_fn: !function lm_eval.tasks.humaneval.utils.build_predictions}]
"""


class Commands(EvaldCase):
    def setUp(self):
        super().setUp()
        # The cache and the state of the person who runs the tests are not used.
        self.environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"),
                                XDG_STATE_HOME=str(self.folder / "state"))

    def command(self, *arguments, status=0):
        done = self.evald(*arguments, env=self.environment)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def json(self, *arguments, status=0):
        done = self.command(*arguments, "--json", status=status)
        self.assertEqual(len(done.stdout.splitlines()), 1, done.stdout)
        return json.loads(done.stdout)


class Stage(Commands):
    def stage(self, *arguments, status=0):
        return self.json("stage", *arguments, "--root", self.folder / "root", status=status)

    def test_is_kept_listed_and_dropped(self):
        first = self.stage(CHECKPOINT, "--keep", "1GiB")
        self.assertGreater(first["report"]["bytes_read"], 0)
        self.assertTrue((pathlib.Path(first["directory"]) / "config.json").is_file())
        again = self.stage(CHECKPOINT, "--keep", "1GiB")
        self.assertEqual((again["fingerprint"], again["report"]["bytes_read"]), (first["fingerprint"], 0))
        listed = self.stage("--list")
        self.assertEqual([(e["fingerprint"], e["kept"], e["leases"]) for e in listed], [(first["fingerprint"], True, 0)])
        self.assertIn(first["fingerprint"], self.command("stage", "--list", "--root", self.folder / "root").stdout)
        self.assertEqual(self.stage("--drop", first["fingerprint"][:8]), {"dropped": [first["fingerprint"]], "in_use": []})
        self.assertEqual(self.stage("--list"), [])
        self.assertFalse(pathlib.Path(first["directory"]).exists())

    def test_a_budget_drops_the_least_recently_used(self):
        others = sorted((QUICKSTART / "checkpoints").glob("step-*"))
        size = sum(f.stat().st_size for f in CHECKPOINT.iterdir())
        first = self.stage(others[0], "--keep", str(int(size * 1.5)))
        last = self.stage(CHECKPOINT, "--keep", str(int(size * 1.5)))
        self.assertNotEqual(first["fingerprint"], last["fingerprint"])
        self.assertEqual([e["fingerprint"] for e in self.stage("--list")], [last["fingerprint"]])

    def test_dropping_what_is_not_there_and_asking_for_two_things(self):
        self.assertIn("0 staged checkpoints", self.stage("--drop", "abc", status=2)["error"])
        self.stage(CHECKPOINT, "--list", status=2)
        self.stage(status=2)


class Score(Commands):
    def score(self, task, answers, *arguments):
        path = self.folder / "answers.jsonl"
        path.write_text("".join(json.dumps(a) + "\n" for a in answers))
        return self.json("score", "--task", task, "--generations", path, *arguments)["results"][task]

    @staticmethod
    def generation(doc_id, text):
        return {"doc_id": doc_id, "idx": 0, "repeat": 0, "text": text, "finish": "stop", "tokens_in": 0,
                "tokens_out": 0, "truncated": 0}

    def test_the_examples_code_is_right_and_mutated_code_is_wrong(self):
        rows = rows_of(QUICKSTART / "data" / "code" / "test.jsonl")
        own = ("--task-dir", QUICKSTART / "tasks")
        right = [{"task_id": r["task_id"], "completion": r["canonical_solution"]} for r in rows]
        self.assertEqual(self.score("quickstart_code", right, *own)["pass@1,create_test"], 1.0)
        wrong = [self.generation(i, "    return None\n") for i in range(len(rows))]
        self.assertEqual(self.score("quickstart_code", wrong, *own)["pass@1,create_test"], 0.0)

    def test_the_examples_worked_answers(self):
        rows = rows_of(QUICKSTART / "data" / "math" / "test.jsonl")
        own = ("--task-dir", QUICKSTART / "tasks")
        scores = self.score("quickstart_math", [self.generation(i, " " + r["answer"]) for i, r in enumerate(rows)], *own)
        self.assertEqual(scores["exact_match,strict-match"], 1.0)
        self.assertEqual(self.score("quickstart_math", [self.generation(i, "#### 0x") for i in range(len(rows))],
                                    *own)["exact_match,strict-match"], 0.0)

    def test_an_answer_that_no_pattern_can_take_is_counted_and_fails_nothing(self):
        tasks = self.folder / "letters"
        tasks.mkdir()
        (tasks / "docs.jsonl").write_text('{"q": "a", "a": "aaa"}\n{"q": "b", "a": "b"}\n')
        (tasks / "letters.yaml").write_text(
            "task: letters\ndataset_path: json\ndataset_kwargs:\n  data_files:\n    test: docs.jsonl\n"
            "test_split: test\noutput_type: generate_until\ndoc_to_text: '{{q}}'\ndoc_to_target: '{{a}}'\n"
            "filter_list:\n  - name: nested\n    filter:\n      - {function: regex, regex_pattern: '^(?:(a+)+)$'}\n"
            "      - {function: take_first}\nmetric_list:\n  - {metric: exact_match, aggregation: mean, higher_is_better: true}\n")
        path = self.folder / "answers.jsonl"
        path.write_text("".join(json.dumps(a) + "\n" for a in (self.generation(0, "aaa"), self.generation(1, "a" * 60 + "!"))))
        command = ("score", "--task", "letters", "--generations", path, "--task-dir", tasks)
        document = self.json(*command, "--output", self.folder / "kept")
        self.assertEqual(document["results"]["letters"]["exact_match,nested"], 0.5)
        self.assertEqual(document["evald"]["fallbacks"], {"letters": {"nested": {"step limit": 1}}})
        samples = rows_of(pathlib.Path(document["run_directory"]) / "samples_letters.jsonl")
        self.assertEqual([s.get("evald_fallbacks") for s in samples], [None, {"step limit": 1}])
        self.assertIn("letters, filter nested: 1 answer was scored as the filter's fallback (step limit 1)",
                      self.command(*command).stdout)

    def test_names_results_only_where_they_stay(self):
        answers = self.folder / "answers.jsonl"
        rows = rows_of(QUICKSTART / "data" / "math" / "test.jsonl")
        answers.write_text("".join(json.dumps(self.generation(i, "7")) + "\n" for i in range(len(rows))))
        command = ("score", "--task", "quickstart_math", "--generations", answers, "--task-dir", QUICKSTART / "tasks")
        self.assertNotIn("results.json", self.command(*command).stdout)
        self.assertNotIn("run_directory", self.json(*command))
        kept = self.command(*command, "--output", self.folder / "kept").stdout
        path = pathlib.Path(kept.split("results: ")[1].strip())
        self.assertTrue(path.is_file() and self.folder in path.parents, kept)

    def test_a_missing_answer_is_named(self):
        path = self.folder / "answers.jsonl"
        path.write_text(json.dumps(self.generation(0, "7")) + "\n")
        error = self.json("score", "--task", "quickstart_math", "--generations", path, "--task-dir",
                          QUICKSTART / "tasks", status=2)["error"]
        self.assertIn("have no generation: 1, 2", error)

    def test_the_limit_that_an_error_recommends_is_taken(self):
        rows = rows_of(QUICKSTART / "data" / "code" / "test.jsonl")
        own = ("--task-dir", QUICKSTART / "tasks")
        there = [i for i in range(len(rows)) if i != 3]
        for task, answers in (("quickstart_code", [{"task_id": rows[i]["task_id"], "completion": rows[i]["canonical_solution"]} for i in there]),
                              ("quickstart_math", [self.generation(i, " 7") for i in there])):
            with self.subTest(task):
                path = self.folder / "answers.jsonl"
                path.write_text("".join(json.dumps(a) + "\n" for a in answers))
                command = ("score", "--task", task, "--generations", path, *own)
                self.assertIn("score only the first with --limit 3", self.json(*command, status=2)["error"])
                done = self.command(*command, "--limit", "3", "--json")
                self.assertEqual(json.loads(done.stdout)["results"][task]["sample_len"], 3)
                self.assertIn(f"{len(there) - 3} answers to documents beyond --limit are passed over", done.stderr)

    def test_a_users_own_function_is_not_the_built_in_one_of_its_name(self):
        """The user's function gives every program 0.5. evald's gives a right one 1.0."""
        folder = self.folder / "mine" / "humaneval"
        folder.mkdir(parents=True)
        (folder / "mine.yaml").write_text(OWN_CODE_TASK)
        (folder / "mine.jsonl").write_text(json.dumps({"task_id": "a", "prompt": "def f():\n", "test": "assert f() == 1"}) + "\n")
        (folder / "utils.py").write_text("def pass_at_k(references, predictions, k=None):\n    return {'pass@1': 0.5}\n")
        answers = self.folder / "answers.jsonl"
        answers.write_text(json.dumps(self.generation(0, "    return 1\n")) + "\n")
        command = ("score", "--task", "mine", "--generations", answers, "--task-dir", self.folder / "mine")
        error = self.json(*command, status=2)["error"]
        self.assertIn(f"the function 'pass_at_k' of {folder}/utils.py is not known as a metric", error)
        self.assertIn("--allow-task-code", error)
        (folder / "mine.yaml").write_text(OWN_CODE_TASK.replace("!function utils.", "!function lm_eval.tasks.humaneval.utils."))
        self.assertEqual(self.json(*command)["results"]["mine"]["pass@1,none"], 1.0)


@unittest.skipUnless(os.environ.get("EVALD_LM_EVAL_TASKS"), "EVALD_LM_EVAL_TASKS names no folder: lm_eval/tasks of release 0.4.13")
class HarnessTasks(Commands):
    """The harness's own folder, unchanged."""
    FOLDER = os.environ.get("EVALD_LM_EVAL_TASKS", "")

    def test_the_whole_folder_is_read(self):
        done = self.command("tasks", "--task-dir", self.FOLDER, "--json")
        names = {task["name"] for task in json.loads(done.stdout)}
        self.assertTrue({"gsm8k", "humaneval", "mbpp", "mmlu", "scrolls_quality"} <= names)
        self.assertGreater(len(names), 13_000)
        self.assertLess(len(done.stderr.splitlines()), 12, done.stderr)

    def test_its_code_tasks_have_the_built_in_functions(self):
        config = self.write_config(tasks=["humaneval", "mbpp"], task_dirs=[self.FOLDER], data_dir=str(DATA), engine={"name": "emulated"})
        self.assertEqual([t["name"] for t in self.json("validate", config)["tasks"]], ["humaneval", "mbpp"])


@unittest.skipUnless((DATA / "humaneval").is_dir(), f"the real data is not in {DATA}")
class ScoreRealData(Score):
    def real(self, task, answers):
        return self.score(task, answers, "--data-dir", DATA)

    def test_humaneval(self):
        rows = rows_of(DATA / "humaneval" / "HumanEval.jsonl.gz")
        self.assertEqual(len(rows), 164)
        right = [{"task_id": r["task_id"], "completion": r["canonical_solution"]} for r in rows]
        self.assertEqual(self.real("humaneval", right)["pass@1,create_test"], 1.0)
        # The program ends before the function does anything.
        mutated = [{"task_id": r["task_id"], "completion": "    raise ValueError\n" + r["canonical_solution"]} for r in rows]
        self.assertEqual(self.real("humaneval", mutated)["pass@1,create_test"], 0.0)

    def test_gsm8k(self):
        rows = rows_of(DATA / "gsm8k" / "test.jsonl")
        gold = self.real("gsm8k", [self.generation(i, " " + r["answer"]) for i, r in enumerate(rows)])
        self.assertEqual(gold["exact_match,strict-match"], 1.0)
        self.assertEqual(gold["exact_match,flexible-extract"], 1.0)

    def test_mbpp(self):
        rows = [r for r in rows_of(DATA / "mbpp" / "mbpp.jsonl") if 11 <= r["task_id"] <= 510]
        self.assertEqual(len(rows), 500)
        path = self.folder / "answers.jsonl"
        path.write_text("".join(json.dumps(self.generation(i, r["code"])) + "\n" for i, r in enumerate(rows)))
        document = self.json("score", "--task", "mbpp", "--generations", path, "--data-dir", DATA, "--output",
                             self.folder / "kept")
        samples = rows_of(next(pathlib.Path(document["run_directory"]).glob("samples_mbpp*.jsonl")))
        failed = {rows[s["doc_id"]]["task_id"] for s in samples if s["pass_at_1"] != 1}
        self.assertLessEqual(failed, set(MBPP_FAILURES))
        self.assertIn(367, failed)
        self.assertEqual(document["results"]["mbpp"]["pass_at_1,none"], (500 - len(failed)) / 500)


class Tasks(Commands):
    def test_lists_and_suggests(self):
        names = {task["name"] for task in self.json("tasks")}
        self.assertLessEqual({"humaneval", "mbpp", "gsm8k", "mmlu"}, names)
        self.assertEqual([t["name"] for t in self.json("tasks", "gsm8k")], ["gsm8k"])
        self.assertIn("did you mean 'gsm8k'", self.json("tasks", "gsm8", status=2)["error"])
        self.make_suite(3, 3)
        self.assertIn("sums", {t["name"] for t in self.json("tasks", "--task-dir", self.tasks)})


class Doctor(Commands):
    def test_says_what_is_there(self):
        done = self.evald("doctor", "--json", env=self.environment)
        document = json.loads(done.stdout)
        found = {check["what"]: check for check in document["checks"]}
        self.assertEqual(done.returncode, 0 if document["all"] else 3)
        self.assertTrue(found["programs"]["available"])
        self.assertEqual(found["programs"]["detail"], str(BINARIES))
        self.assertIn("sandbox: seccomp filter", found)
        lines = self.evald("doctor", env=self.environment).stdout.splitlines()
        starts = {line.index(check["detail"]) for line, check in zip(lines, document["checks"])
                  if check["detail"] in line}
        self.assertEqual(len(starts), 1, "one column")

    def test_the_page_shows_what_it_prints(self):
        page = (SOURCE / "docs" / "sandbox.md").read_text()
        for check in self.json_of_doctor():
            if check["what"].startswith("sandbox: "):
                self.assertIn(f"✓ {check['what']} ", page)

    def json_of_doctor(self):
        return json.loads(self.evald("doctor", "--json", env=self.environment).stdout)["checks"]


class Pages(unittest.TestCase):
    def test_each_is_listed(self):
        listed = (SOURCE / "docs" / "README.md").read_text()
        for page in (SOURCE / "docs").glob("*.md"):
            if page.name != "README.md":
                self.assertIn(f"({page.name})", listed)

    def test_the_readme_is_short(self):
        self.assertLessEqual(len((SOURCE / "README.md").read_text().splitlines()), 120)


class Usage(Commands):
    def test_every_mistake_of_the_command_line_looks_alike(self):
        for arguments, part in [(("run", "nope.yaml"), "nope.yaml"), (("run", "--bogus"), "eval.yaml"),
                                (("--bogus",), "--bogus"), (("runn",), "did you mean 'run'"), ((), "no command is given"),
                                (("stage",), "--list"), (("score", "--task", "gsm8k"), "--generations")]:
            with self.subTest(arguments):
                done = self.command(*arguments, status=2)
                self.assertTrue(done.stderr.startswith("evald: error: "), done.stderr)
                self.assertEqual((done.stdout, len(done.stderr.splitlines())), ("", 1))
                document = self.json(*arguments, status=2)
                self.assertEqual(document["exit_status"], 2)
                self.assertIn(part, document["error"])
        self.assertEqual(self.command("--help").stderr, "")
        self.assertTrue(self.command("--version").stdout.startswith("evald "))

    def test_engine_settings_are_checked_before_anything_is_done(self):
        self.make_suite(3, 3)
        path = self.write_config()
        for command in ("validate", "run"):
            error = self.json(command, path, "--set", "engine.treads=3", status=2)["error"]
            self.assertIn("--set engine.treads=3: key 'engine.treads': unknown key", error)
            error = self.json(command, path, "--set", "engine={name: openai}", status=2)["error"]
            self.assertIn("--set engine={name: openai}: key 'engine.command': found nothing", error)
            error = self.json(command, path, "--set", "wokers=3", status=2)["error"]
            self.assertTrue(error.startswith("--set wokers=3: unknown key 'wokers'; did you mean 'workers'"), error)
        self.assertFalse((self.folder / "runs").exists())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
