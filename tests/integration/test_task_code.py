"""Python functions of task files: what they give decides prompts and scores, and they reach nothing else."""
import json
import os
import pathlib
import random
import socket
import textwrap
import time
import unittest

from evald_case import QUICKSTART, EvaldCase
from service_case import Service

# Changes whatever its process tells evald.
HOSTILE = """
import json, sys
def text(doc): return doc["question"]
frame = sys._getframe()
while not (frame.f_code.co_name == "main" and "channel" in frame.f_locals):
    frame = frame.f_back
kind = type(frame.f_locals["channel"])
plain = kind.send
def send(self, message):
    if "want" not in message:
        message = json.loads(json.dumps(message).replace("+ 1?", "POISON"))
    plain(self, message)
kind.send = send
"""

YAML = """\
task: {name}
dataset_path: json
dataset_kwargs: {{data_files: {{test: rows.jsonl, train: rows.jsonl}}}}
test_split: test
training_split: train
output_type: {kind}
{keys}
metric_list: [{metrics}]
"""


class TaskCode:
    """Tasks with functions, beside each other in one folder."""

    def write_rows(self, rows):
        (self.tasks / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def write_task(self, code="", name="coded", kind="generate_until", metrics="{metric: exact_match}", module="utils", **keys):
        defaults = {"doc_to_text": "'{{question}}'", "doc_to_target": "'{{answer}}'"}
        lines = "\n".join(f"{key}: {value}" for key, value in {**defaults, **keys}.items())
        (self.tasks / f"{name}.yaml").write_text(YAML.format(name=name, kind=kind, keys=lines, metrics=metrics))
        if code:
            (self.tasks / f"{module}.py").write_text(textwrap.dedent(code))

    def settings(self, **changes):
        return {"tasks": ["coded"], "task_code": "allow", "engine": {"name": "emulated", "concurrency": 4}, **changes}

    def run_failed(self, **changes):
        done = self.evald("run", self.write_config(**self.settings(**changes)), "--quiet", timeout=120)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr

    def samples_of(self, task):
        lines = next((self.folder / "runs").glob(f"*/samples_{task}.jsonl")).read_text().splitlines()
        return [json.loads(line) for line in lines]

    def prompts(self):
        lines = (self.folder / "cache" / "prepared").glob("*/requests.jsonl")
        return [json.loads(line)["context"] for path in lines for line in path.read_text().splitlines()]


class Functions(TaskCode, EvaldCase):
    def setUp(self):
        super().setUp()
        self.write_rows([{"question": f"{i}  +  1?", "answer": str(i + 1), "keep": i % 2} for i in range(10)])

    def test_documents_and_prompts_are_those_that_the_functions_give(self):
        self.write_task("""
            import json, os
            WORDS = json.load(open(os.path.join(os.path.dirname(__file__), "words.json")))
            def process_docs(dataset):
                return dataset.filter(lambda doc: doc["keep"]).map(lambda doc: {"sum": " ".join(doc["question"].split())})
            def text(doc):
                return f"{WORDS['ask']} {doc['sum']}"
            def target(doc):
                return f"<{doc['answer']}>"
            def samples():
                return [{"sum": "1 + 1?", "answer": "2"}]
            """, process_docs="!function utils.process_docs", doc_to_text="!function utils.text", doc_to_target="!function utils.target",
            num_fewshot=1, fewshot_config="{sampler: first_n, samples: !function utils.samples}")
        (self.tasks / "words.json").write_text('{"ask": "What is"}')
        results = self.run_done(self.write_config(**self.settings()))
        shot = "What is 1 + 1? <2>\n\n"
        self.assertEqual(self.prompts(), [f"{shot}What is {i} + 1?" for i in (1, 3, 5, 7, 9)])
        self.assertEqual(results["n-samples"]["coded"], {"original": 5, "effective": 5})
        used = results["evald"]["task_code"]["tasks"]["coded"]
        self.assertEqual(sorted(used["files"]), [str(self.tasks / "utils.py"), str(self.tasks / "words.json")])

    MAKER = """
        import json, os, random
        import datasets
        def made(lengths, tokenizer, **others):
            vocabulary = json.load(open(os.path.join(tokenizer, "tokenizer.json")))["model"]["vocab"]
            words = datasets.load_dataset("made/words", "small", split="train")["word"]
            rows = [{"question": f"{word} {length} {len(vocabulary)} {random.random():.3f}", "answer": "x"}
                    for length in lengths for word in words]
            return {"test": datasets.Dataset.from_list(rows), "train": datasets.Dataset.from_list(rows[:1])}
        """

    def write_maker(self, code=MAKER, **keys):
        self.write_task(code, custom_dataset="!function utils.made", metadata="{lengths: [1]}", **keys)
        path = self.tasks / "coded.yaml"
        lines = [line for line in path.read_text().splitlines() if not line.startswith("dataset_")]
        path.write_text("\n".join(lines) + "\n")
        words = self.folder / "data" / "words" / "small" / "train.jsonl"
        words.parent.mkdir(parents=True, exist_ok=True)
        words.write_text('{"word": "a"}\n{"word": "b"}\n')

    def maker_settings(self, checkpoint=QUICKSTART / "checkpoints" / "step-00100", **changes):
        return self.settings(checkpoint=str(checkpoint), data_dir=str(self.folder / "data"),
                             tasks=[{"task": "coded", "metadata": {"lengths": [8, 16]}}], **changes)

    def test_documents_are_made_for_the_tokenizer_and_the_metadata_of_the_run(self):
        self.write_maker(num_fewshot=1, training_split="train")
        self.run_done(self.write_config(**self.maker_settings()))
        drawn = random.Random(0)  # the harness's seed
        made = [f"{word} {length} 1024 {drawn.random():.3f}" for length in (8, 16) for word in "ab"]
        self.assertEqual(self.prompts(), [f"{made[0]} x\n\n{one}" for one in made])
        cache = self.folder / "cache" / "prepared"
        first = {path.name: path.stat().st_ino for path in cache.iterdir()}
        self.run_done(self.write_config(**self.maker_settings(QUICKSTART / "checkpoints" / "step-01200")))
        self.assertEqual({path.name: path.stat().st_ino for path in cache.iterdir()}, first, "it has the same tokenizer")
        kept = json.loads(next(cache.glob("*/code.json")).read_text())["files"]
        self.assertEqual(list(kept), [str(self.tasks / "utils.py")], "neither the tokenizer nor the data")

    def test_faults_of_a_function_that_makes_documents_are_named(self):
        self.write_maker(self.MAKER.replace('"test": ', '"other": '))
        self.assertIn("makes no split 'test', it makes other, train", self.run_failed(**self.maker_settings()))
        self.write_maker(self.MAKER.replace("made/words", "made/wards"))
        self.assertIn("data_dir has none of the files that it asks for: wards/small/train.jsonl", self.run_failed(**self.maker_settings()))
        self.write_maker(self.MAKER.replace("return {", "return None; {"))
        self.assertIn("the function gives NoneType, expected a mapping of splits", self.run_failed(**self.maker_settings()))
        self.write_maker()
        self.assertIn("custom_dataset: the function", self.run_failed(**self.maker_settings(task_code="refuse")))

    def test_a_prepared_task_is_found_again_while_its_files_are_the_same(self):
        self.write_task("def text(doc): return open(__file__.replace('utils.py', 'late.txt')).read() + doc['question']",
                        doc_to_text="!function utils.text", process_docs=None)
        text = (self.tasks / "coded.yaml").read_text().replace("process_docs: None\n", "")
        (self.tasks / "coded.yaml").write_text(text)
        (self.tasks / "late.txt").write_text("A: ")
        cache = self.folder / "cache" / "prepared"
        def run(begin):
            self.run_done(self.write_config(**self.settings()))
            self.assertTrue(all(prompt.startswith(begin) for prompt in self.prompts()), self.prompts())
            return {path.name: path.stat().st_ino for path in cache.iterdir()}
        first = run("A: ")
        self.assertEqual(run("A: "), first)
        (self.tasks / "late.txt").write_text("B: ")  # opened only while the function runs: no part of the key
        self.assertEqual(list(run("B: ")), list(first))
        (self.tasks / "utils.py").write_text("def text(doc): return 'C: '\n")
        for path in cache.iterdir():
            path.rename(self.folder / path.name)
        self.assertNotEqual(list(run("C: ")), list(first))

    def test_process_results_scores_each_output_type(self):
        self.write_rows([{"question": "q", "answer": "b", "words": [1, 2]} for _ in range(6)])
        code = """
            def generated(doc, results):
                assert isinstance(results, list) and isinstance(results[0], str)
                return {"length": len(results[0]), "right": results[0] == doc["answer"], "pair": 0.5}
            def chosen(doc, results):
                (first, greedy), second = results
                assert isinstance(results[0], tuple) and isinstance(first, float) and isinstance(greedy, bool)
                return {"acc": float(first < second[0])}
            def rolled(doc, results):
                loglikelihood, = results
                return {"word_perplexity": (loglikelihood, 2)}
            """
        self.write_task(code, process_results="!function utils.generated", metrics="{metric: right, aggregation: mean}")
        self.write_task(name="choice", kind="multiple_choice", doc_to_choice="['a', 'b']", doc_to_target="1",
                        process_results="!function utils.chosen", metrics="{metric: acc}")
        self.write_task(name="rolling", kind="loglikelihood_rolling", process_results="!function utils.rolled",
                        metrics="{metric: word_perplexity}")
        results = self.run_done(self.write_config(**self.settings(tasks=["coded", "choice", "rolling"])))
        found = results["results"]["coded"]
        lengths = [len(sample["filtered_resps"][0]) for sample in self.samples_of("coded")]
        self.assertAlmostEqual(found["length,none"], sum(lengths) / len(lengths))
        self.assertEqual((found["right,none"], found["pair,none"]), (0.0, 0.5))
        for sample in self.samples_of("choice"):
            (first, _), (second, _) = sample["filtered_resps"]
            self.assertEqual(sample["acc"], float(float(first) < float(second)))
        self.assertGreater(results["results"]["rolling"]["word_perplexity,none"], 1)

    def write_aggregated(self, name="coded", **keys):
        """A task whose aggregations see their values as they are, in the order of documents."""
        self.write_task("""
            import math
            from lm_eval.api.metrics import mean as average
            def results(doc, results):
                number = int(doc["answer"])
                return {"pair": (number, results[0]), "nan": math.nan if number == 3 else float(number), "plain": [number],
                        "number": number, "mean": number}
            def pairs(items):
                assert all(type(item) is tuple for item in items)
                assert [number for number, _ in items] == list(range(1, 11)), items
                return sum(len(text) for _, text in items)
            def nans(items):
                assert math.isnan(items[2]) and items[0] == 1.0
                return {"nan": sum(map(math.isnan, items)), "all": len(items)}
            def plain(items):
                return max(item[0] for item in items) / 4
            def infinite(items):
                return -math.inf
            """, name=name, process_results="!function utils.results",
            filter_list="[{name: whole, filter: [{function: take_first}]}, {name: again, filter: [{function: take_first}]}]",
            metrics="{metric: pair, aggregation: !function utils.pairs}, {metric: nan, aggregation: !function utils.nans}, "
                    "{metric: plain, aggregation: !function utils.plain}, {metric: number, aggregation: !function utils.infinite}, "
                    "{metric: mean, aggregation: !function utils.average}", **keys)

    def test_values_that_cannot_stand_in_results_end_the_run_as_its_input(self):
        for values, message in (('{"right": 1.0, "long": "x" * (9 << 20)}', "gives metrics of 9.0 MiB, expected at most 8.0 MiB"),
                                ('{"right": 1.0, "right_stderr": 2.0}', "no '_stderr' at the end")):
            self.write_task(f"""
                def results(doc, results):
                    return {values}
                """, process_results="!function utils.results", metrics="{metric: right, aggregation: mean}")
            self.assertIn(message, self.run_failed())

    def check_aggregated(self, found, task="coded"):
        for name in ("whole", "again"):
            lengths = [len(sample["filtered_resps"][0]) for sample in self.samples_of(task) if sample["filter"] == name]
            self.assertEqual(len(lengths), 10)
            values = [found[f"{metric},{name}"] for metric in ("pair", "nan", "plain", "number", "mean")]
            self.assertEqual(values, [sum(lengths), {"nan": 1, "all": 10}, 2.5, "-inf", 5.5])
            self.assertEqual([found[f"{metric}_stderr,{name}"] for metric in ("pair", "nan", "plain")], ["N/A"] * 3)
            self.assertAlmostEqual(found[f"mean_stderr,{name}"], 0.9574271077563381)  # lm_eval's own mean

    def test_aggregations_of_a_task_s_own_get_each_document_s_value(self):
        self.write_aggregated()
        results = self.run_done(self.write_config(**self.settings()))
        self.check_aggregated(results["results"]["coded"])
        sample = self.samples_of("coded")[0]
        self.assertEqual((sample["plain"], sample["pair"][0]), ([1], 1))
        self.assertNotIn("python", sample)
        table = self.evald("run", self.write_config(**self.settings(output={"dir": "again"})), "--quiet")
        self.assertEqual(table.returncode, 0, table.stderr)
        self.assertRegex(table.stdout, r"plain[^\n]* 2\.5000\n")
        self.assertIn('{"nan":1,"all":10}', table.stdout)
        unsafe = self.run_done(self.write_config(**self.settings(task_code="unsafe", output={"dir": "unsafe"})))
        self.assertEqual(unsafe["results"], results["results"])

    def test_built_in_metrics_with_aggregations_of_a_task_s_own(self):
        self.write_rows([{"question": f"{i}?", "answer": str(i % 2)} for i in range(10)])
        self.write_task("""
            def macro(items):
                golds, predictions = zip(*items)
                assert golds == (0, 1) * 5 and all(type(item) is tuple for item in items)
                return sum(map(int, predictions)) + 0.25
            def right(items):
                assert set(map(type, items)) == {float}
                return sum(items)
            """, kind="multiple_choice", doc_to_choice="['no', 'yes']", doc_to_target="'{{answer}}'",
            metrics="{metric: f1, aggregation: !function utils.macro, average: macro, hf_evaluate: true}, "
                    "{metric: acc, aggregation: !function utils.right}, {metric: acc_norm}")
        (self.tasks / "both.yaml").write_text(
            "group: both\ntask: [coded]\naggregate_metric_list: [{metric: f1}, {metric: acc}, {metric: acc_norm}]\n")
        results = self.run_done(self.write_config(**self.settings(tasks=["both"])))
        found, group = results["results"]["coded"], results["results"]["both"]
        samples = self.samples_of("coded")
        self.assertEqual(found["f1,none"], sum(sample["f1"][1] for sample in samples) + 0.25)
        self.assertEqual(found["acc,none"], sum(sample["acc"] for sample in samples))
        self.assertEqual((found["f1_stderr,none"], found["acc_stderr,none"]), ("N/A", "N/A"))
        self.assertEqual((group["f1,none"], group["f1_stderr,none"]), (found["f1,none"], "N/A"))
        self.assertGreater(found["acc_norm_stderr,none"], 0)

    def test_a_resumed_run_and_score_aggregate_the_same(self):
        self.write_aggregated()
        config = self.write_config(**self.settings())
        self.killed_at("run.scores_committed", 1, config)
        results = self.run_done(config, "--resume")
        self.check_aggregated(results["results"]["coded"])
        generations = self.folder / "mine.jsonl"
        lines = [{"doc_id": sample["doc_id"], "idx": 0, "repeat": 0, "text": sample["resps"][0][0], "finish": "stop", "tokens_in": 0,
                  "tokens_out": 1, "truncated": 0} for sample in self.samples_of("coded") if sample["filter"] == "whole"]
        generations.write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = self.evald("score", "--task", "coded", "--generations", generations, "--task-dir", self.tasks, "--json",
                          "--allow-task-code", "--output", self.folder / "scored", env={**os.environ, "XDG_CACHE_HOME": str(self.folder / "xdg")})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["results"]["coded"], results["results"]["coded"])

    def test_a_fault_of_an_aggregation_is_named_and_ends_only_its_task(self):
        for code, expected in (
                ("def f(items):\n    return items[99]\n", r"metric 'exact_match', filter 'none': the function '.*utils.f': IndexError: .*utils.py:2"),
                ("import os\ndef f(items): os._exit(3)\n", "utils.f': the process of the task's code ended with status 3"),
                ("def f(items): return 'x' * (1 << 40)\n", "utils.f': MemoryError"),
                ("def f(items): return 'x' * (3 << 20)\n", "gives a value of more than 1.0 MiB")):
            with self.subTest(code=code):
                self.write_task(code, metrics="{metric: exact_match, aggregation: !function utils.f}")
                self.write_task(name="other")
                config = self.write_config(**self.settings(tasks=["coded", "other"]))
                done = self.evald("run", config, "--json", "--quiet", timeout=120)
                self.assertEqual(done.returncode, 2, done.stderr)
                document = json.loads(done.stdout)
                self.assertRegex(document["error"], f"task coded: task 'coded', .*{expected}")
                self.assertEqual(document["evald"]["incomplete"], ["coded"])
                self.assertIn("exact_match,none", document["results"]["other"])
                folder = pathlib.Path(document["run_directory"])
                self.assertFalse((folder / "results.json").exists())
                kept = json.loads((folder / "results.incomplete.json").read_text())
                self.assertEqual(kept["results"], document["results"])
                self.assertFalse(kept["evald"]["complete"])

    OWN_METRICS = """
        def length(predictions, references, least=0):
            assert isinstance(predictions, list) and isinstance(references[0], str)
            return max(least, len(predictions[0]))
        def passed(items):
            gold, answer = items
            return (int(gold), answer)
        def own(references, predictions):
            return {"own": predictions[0].isascii()}
        def total(items):
            assert all(type(item) is tuple for item in items)
            assert [gold for gold, _ in items] == list(range(1, 11)), items
            return sum(len(answer) for _, answer in items)
        def pairs(items):
            assert all(type(item) is list and len(item) == 2 for item in items)
            return sum(len(answer) for _, answer in items) + 0.25
        """

    def test_metrics_of_a_task_s_own(self):
        self.write_task(self.OWN_METRICS, metrics="{metric: !function utils.length, least: 3, aggregation: mean}, "
                        "{metric: !function utils.passed, aggregation: !function utils.total}, "
                        "{metric: !function utils.own, aggregation: mean}, {metric: acc, aggregation: !function utils.pairs, ignore_case: true}, "
                        "{metric: exact_match, ignore_punctuation: 'true - \".\"', ignore_case: 'false'}")
        config = self.write_config(**self.settings())
        self.killed_at("run.scores_committed", 1, config)
        results = self.run_done(config, "--resume")
        found, samples = results["results"]["coded"], self.samples_of("coded")
        answers = [sample["filtered_resps"][0] for sample in samples]
        lengths = [max(3, len(answer)) for answer in answers]
        self.assertAlmostEqual(found["length,none"], sum(lengths) / 10)
        self.assertGreater(found["length_stderr,none"], 0)
        self.assertEqual(found["passed,none"], sum(map(len, answers)))
        self.assertEqual(found["acc,none"], sum(map(len, answers)) + 0.25)
        self.assertEqual(found["own,none"], sum(answer.isascii() for answer in answers) / 10)
        self.assertEqual((found["passed_stderr,none"], found["acc_stderr,none"]), ("N/A", "N/A"))
        self.assertEqual([sample["acc"] for sample in samples], [[sample["target"], sample["filtered_resps"][0]] for sample in samples])
        self.assertIn("exact_match,none", found)
        self.assertEqual(results["higher_is_better"]["coded"]["own"], True)

    def test_a_metric_of_several_targets_says_whether_one_is_met(self):
        self.write_rows([{"question": f"{i}?", "answer": [str(i), "a", "b"][:i % 4]} for i in range(1, 9) if i % 4])
        self.write_task("""
            def near(predictions, references):
                assert isinstance(predictions[0], list) and set(predictions[0]) == {predictions[0][0]}  # exact_match came before
                return float(references[0] == "b")
            def before(predictions, references):
                assert isinstance(predictions[0], str)
                return 0.0
            def ones(items):
                assert set(items) <= {0.0, 1.0}
                return sum(items)
            """, doc_to_target="answer", metrics="{metric: !function utils.before, aggregation: mean}, {metric: exact_match, aggregation: mean}, "
            "{metric: !function utils.near, aggregation: mean}, {metric: acc, aggregation: !function utils.ones}")
        found = self.run_done(self.write_config(**self.settings()))["results"]["coded"]
        samples = self.samples_of("coded")
        self.assertEqual(found["near,none"], sum("b" in sample["target"] for sample in samples) / len(samples))
        self.assertEqual((found["before,none"], found["acc,none"]), (0.0, float(len(samples))))

    OWN_FILTERS = """
        from lm_eval.api.filter import Filter
        def marked(resps, docs):
            assert isinstance(resps, list) and isinstance(docs, list)
            return [[f"{doc['answer']}:{text}" for text in texts] for texts, doc in zip(resps, docs)]
        class Cut(Filter):
            def __init__(self, words, **settings):
                self.words = words
            def apply(self, resps, docs):
                assert not isinstance(resps, list)  # take_first leaves an iterator
                return (" ".join(text.split()[:self.words]) for text in resps)
        """

    def write_filtered(self):
        self.write_task(self.OWN_FILTERS, filter_list="[{name: marked, filter: [{function: custom, filter_fn: !function utils.marked}, "
                        "{function: take_first}]}, {name: cut, filter: [{function: take_first}, {function: !function utils.Cut, words: 2}]}]")

    def test_filters_of_a_task_s_own(self):
        self.write_filtered()
        config = self.write_config(**self.settings())
        self.killed_at("run.scores_committed", 1, config)
        results = self.run_done(config, "--resume")
        for sample in self.samples_of("coded"):
            text = sample["resps"][0][0]
            expected = f"{sample['target']}:{text}" if sample["filter"] == "marked" else " ".join(text.split()[:2])
            self.assertEqual(sample["filtered_resps"], [expected])
            self.assertEqual(sample["exact_match"], float(expected == sample["target"]))
        self.assertEqual(len(self.samples_of("coded")), 20)
        again = self.run_done(self.write_config(**self.settings(output={"dir": "again"}, metrics={"processes": 1})))
        self.assertEqual(again["results"], results["results"])
        self.assertEqual(sorted(results["evald"]["task_code"]["tasks"]["coded"]["files"]), [str(self.tasks / "utils.py")])

    def test_filters_that_look_at_other_documents_are_refused(self):
        for code, expected in (
                ("return [[str(len(docs))] for _ in resps]", r"makes \['1'\] of document 0 alone, and \['10'\] among all documents"),
                ("seen = set()\n    return [[t] if not (t in seen or seen.add(t)) else ['twice'] for (t,) in resps[:1] * len(resps)]",
                 r"makes .* of document 1 alone, and \['twice'\] among all documents"),
                ("import random\n    return [[str(random.random())] for _ in resps]", "makes .* of document 0 alone")):
            with self.subTest(code=code):
                self.write_task(f"def f(resps, docs):\n    {code}\n", filter_list="[{name: mine, filter: [{function: custom, "
                                "filter_fn: !function utils.f}, {function: take_first}]}]")
                self.write_task(name="other")
                done = self.evald("run", self.write_config(**self.settings(tasks=["coded", "other"])), "--json", "--quiet", timeout=120)
                self.assertEqual(done.returncode, 2, done.stderr)
                document = json.loads(done.stdout)
                self.assertRegex(document["error"], f"task 'coded', filter pipeline 'mine', step 1, all documents together: .*{expected}")
                self.assertIn("exact_match,none", document["results"]["other"])

    def test_faults_of_filters_and_metrics_are_named(self):
        def filtered(body, function="{function: custom, filter_fn: !function utils.f}"):
            return f"def f(resps, docs):\n    {body}\n", {"filter_list": f"[{{name: mine, filter: [{function}, {{function: take_first}}]}}]"}

        def metric(body, aggregation="mean"):
            return f"def f(references, predictions):\n    {body}\n", {"metrics": f"{{metric: !function utils.f, aggregation: {aggregation}}}"}

        place = r"task 'coded', document \d+: filter pipeline 'mine', step 1 \(custom\): the function '.*utils.f': "
        for (code, keys), expected in (
                (filtered("return resps[0][99]"), place + r"IndexError: .*utils.py:2"),
                (filtered("pass"), place + "TypeError: the filter gives None, expected a list"),
                (filtered("return resps + resps"), place + "ValueError: the filter gives 2 lists of responses for 1 documents"),
                (filtered("return [(1,) for _ in resps]"), place + "TypeError: .* of type tuple"),
                (filtered("return resps", "{function: !function utils.f, k: 1}"), "TypeError: f.. got an unexpected keyword argument 'k'"),
                (filtered("return resps", "{function: !function utils.f, k: !function utils.g}"), "has a setting that is a function"),
                (metric("return 'good'"), r"task 'coded', document \d+: the function '.*utils.f': TypeError: the metric gives 'good' of type str"),
                (metric("return None"), "TypeError: the metric gives None of type NoneType, expected a number"),
                (metric("return references[7]"), r"IndexError: .*utils.py:2"),
                (metric("return 1", "f1"), "metric 'f', the function '.*utils.f': found 1, expected a pair of numbers"),
                (metric("import subprocess\n    try: subprocess.run('x')\n    except OSError: return 0"), "tries to start a program"),
                (("def g(references, predictions): return 1\nf = g\n", metric("")[1]), "the function '.*utils.f' calls itself 'g'"),
                (("f = 5\n", metric("")[1]), "is no function")):
            with self.subTest(code=code, **keys):
                self.write_task(code, **keys)
                self.assertRegex(self.run_failed(), expected)
        code, keys = metric("return 1")
        self.write_task(code, unsafe_code="true", **keys)
        self.assertIn("the function runs the model's code, and task code may start no program", self.run_failed())
        self.write_task(code, metrics="{metric: !function utils.f, aggregation: mean}, {metric: f, aggregation: mean}")
        self.assertIn("metric_list has 2 metrics with the name 'f'", self.run_failed())
        code, keys = filtered("return resps")
        self.write_task(code, kind="multiple_choice", doc_to_choice="['a', 'b']", doc_to_target="1", **{**keys, "metrics": "{metric: acc}"})
        self.assertIn("which is served only for generate_until", self.run_failed())

    def test_without_leave_filters_and_metrics_are_refused(self):
        self.write_task("def f(references, predictions): return 0\n", metrics="{metric: !function utils.f, aggregation: mean}")
        said = self.run_failed(task_code=None)
        self.assertIn(f"the function 'f' of {self.tasks}/utils.py is not known as a metric", said)
        self.assertIn("--allow-task-code", said)
        self.write_filtered()
        said = self.run_failed(task_code=None)
        self.assertIn(f"the function 'marked' of {self.tasks}/utils.py is not known as a filter", said)
        self.assertIn("--allow-task-code", said)

    def test_without_leave_an_aggregation_is_refused(self):
        self.write_task("def f(items): return 0\n", metrics="{metric: exact_match, aggregation: !function utils.f}")
        said = self.run_failed(task_code=None)
        self.assertIn(f"the function 'f' of {self.tasks}/utils.py is not known as an aggregation", said)
        self.assertIn("--allow-task-code", said)
        self.write_task("def f(items)\n", metrics="{metric: exact_match, aggregation: !function utils.f}")
        self.assertIn("SyntaxError", self.run_failed())  # before anything is generated
        self.assertFalse(list(self.folder.glob("runs/*/generations/*/*.jsonl")))

    def test_two_runs_are_not_compared_by_redrawn_aggregates(self):
        self.write_task("def f(items): return sum(items) / 100\n", metrics="{metric: exact_match, aggregation: !function utils.f}")
        config = self.write_config(**self.settings(output={"dir": "runs", "name": "one"}))
        self.run_done(config)
        done = self.evald("compare", self.folder / "runs" / "one", self.folder / "runs" / "one")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the metric's aggregation is a function of the task's own", done.stdout)

    def test_a_label_may_name_the_right_context_of_one_continuation(self):
        self.write_task(kind="multiple_choice", doc_to_text="'{{keep}}'", doc_to_choice='"{{[\'the \' + question, \'a \' + question]}}"',
                        doc_to_target="'{{answer}}'", metrics="{metric: acc}")
        self.run_done(self.write_config(**self.settings(task_code="refuse")))
        prompts = self.prompts()
        self.assertEqual(prompts[:2], ["the 0  +  1?", "a 0  +  1?"])
        for sample in self.samples_of("coded"):
            scores = [float(pair[0]) for pair in sample["filtered_resps"]]
            self.assertEqual(sample["acc"], float(scores.index(max(scores)) == sample["doc"]["keep"]), sample)

    def test_without_leave_nothing_runs(self):
        self.write_task("raise SystemExit('it ran')\ndef text(doc): pass\n", doc_to_text="!function utils.text")
        said = self.run_failed(task_code=None)
        self.assertIn(f"the function 'text' of {self.tasks}/utils.py is not built in", said)
        self.assertIn("--allow-task-code", said)
        self.assertIn("found 'yes', expected refuse, allow or unsafe", self.run_failed(task_code="'yes'".strip("'")))

    def test_errors_name_function_file_line_and_document(self):
        for code, expected in (
                ("def text(doc):\n    return doc['absent']\n", r"utils.text': KeyError: 'absent' \(.*/utils.py:2, document 0\)"),
                ("import no_such_module\n", "ModuleNotFoundError: .*no_such_module.*-m pip install no_such_module"),
                ("def text(doc)\n", r"SyntaxError: .*/utils.py.*:1"),
                ("def other(doc): pass\n", "has no function 'text'"),
                ("text = 5\n", "is no function"),
                ("def text(doc): return None\n", "doc_to_text gives None, not text"),
                ("def text(doc): return {1, 2}\n", "doc_to_text gives .*, not text"),
                ("import sys\ndef text(doc): sys.exit(3)\n", "SystemExit: 3"),
                ("import os\ndef text(doc): os._exit(3)\n", "the process of the task's code ended with status 3"),
                ("import os\ndef text(doc): os.abort()\n", "the process of the task's code was ended by signal"),
                ("def text(doc): return 'x' * (1 << 40)\n", "MemoryError"),
                ("def text(doc):\n    return text(doc)\n", "RecursionError"),
                ("def text(doc):\n    a = []\n    a.append(a)\n    return a\n", "RecursionError|cannot be kept|not text"),
        ):
            with self.subTest(code=code):
                self.write_task(code, doc_to_text="!function utils.text")
                self.assertRegex(self.run_failed(), expected)

    def test_documents_that_are_none(self):
        for gives, expected in (("None", "gives None, expected documents"), ("[]", "gives no documents"), ("5", "TypeError"),
                                ("['a']", "expected a mapping of columns")):
            with self.subTest(gives=gives):
                self.write_task(f"def docs(dataset): return {gives}\n", process_docs="!function utils.docs")
                self.assertRegex(self.run_failed(), expected)

    def test_a_function_without_end_ends_with_the_time_for_preparing(self):
        self.write_task("def text(doc):\n    while True: pass\n", doc_to_text="!function utils.text")
        begin = time.monotonic()
        self.assertIn("'limits.seconds' sets that", self.run_failed(limits={"seconds": 3}))
        self.assertLess(time.monotonic() - begin, 60)

    def test_functions_reach_nothing(self):
        """Each attempt raises in the function, or finds nothing there."""
        (self.folder / "secret.txt").write_text("SECRET")
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        attempts = [
            f"open({str(self.folder / 'secret.txt')!r}).read()", "open('/etc/passwd').read()", "open('/proc/self/environ').read()",
            "open(__file__ + '/../../secret.txt').read()", f"open({str(self.folder / 'made.txt')!r}, 'w')", "open('/evil', 'w')",
            f"__import__('socket').create_connection(('127.0.0.1', {listener.getsockname()[1]}), 2)",
            "__import__('os').fork()", "__import__('subprocess').run(['/bin/true'])", "__import__('os').kill(1, 0) or 1 / 0",
            "__import__('os').listdir('/home')", "__import__('ctypes').CDLL(None).ptrace(0) and 1 / 0",
        ]
        code = "def text(doc):\n    held = []\n    for attempt in ATTEMPTS:\n        try:\n            eval(attempt)\n" \
               "        except BaseException:\n            held.append(attempt)\n" \
               "    return ' | '.join(a for a in ATTEMPTS if a not in held) or 'nothing'\n"
        self.write_task(f"ATTEMPTS = {attempts!r}\n{code}", doc_to_text="!function utils.text")
        self.run_done(self.write_config(**self.settings()))
        self.assertEqual(set(self.prompts()), {"nothing"})
        self.assertFalse((self.folder / "made.txt").exists())

    def test_links_that_lead_out_of_the_task_s_folders_are_refused(self):
        (self.folder / "secret.txt").write_text("SECRET")
        (self.tasks / "linked.txt").symlink_to(self.folder / "secret.txt")
        self.write_task("def text(doc): return open(__file__.replace('utils.py', 'linked.txt')).read()\n", doc_to_text="!function utils.text")
        said = self.run_failed()
        self.assertIn("linked.txt: a link on its way leads nowhere, or outside", said)

    def test_what_functions_print_is_logged_and_bounded(self):
        self.write_task("def text(doc):\n    print('hello \\x1b[31m')\n    print('x' * 10_000_000)\n    return 'q'\n",
                        doc_to_text="!function utils.text")
        done = self.evald("run", self.write_config(**self.settings()), "--log-level", "info")
        self.assertEqual(done.returncode, 0, done.stderr[-2000:])
        self.assertNotIn("\x1b[31m", done.stderr)
        self.assertLess(len(done.stderr), 2_000_000)

    def test_answers_on_the_channel_are_not_trusted(self):
        for line, expected in (("b'not json\\n'", "answer of the task's code"), ("b'[]\\n'", "is no object"),
                               ("b'{\"ok\": {\"values\": []}}\\n'", "found 0 values"), ("b'{\"ok\": 5}\\n'", "answer of the task's code"),
                               ("b'{\"ok\": {\"values\": [[1], [2], [3], [4], [5], [6], [7], [8], [9], [10], [11]]}}\\n'", "found 11 values"),
                               ("b'{\"want\": 5}\\n'", "want")):
            with self.subTest(line=line):
                self.write_task(f"import os\ndef text(doc):\n    os.write(3, {line})\n    import time; time.sleep(60)\n",
                                doc_to_text="!function utils.text")
                self.assertIn(expected, self.run_failed())


class OnAService(TaskCode, Service):
    def post(self, **changes):
        config = self.settings(task_dirs=[str(self.tasks)], **changes)
        status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
        return status, json.loads(body)

    def setUp(self):
        super().setUp()
        self.write_rows([{"question": f"{i} + 1?", "answer": str(i + 1)} for i in range(4)])
        self.write_task("""
            def text(doc):
                return "Q: " + doc["question"]
            def results(doc, results):
                return {"right": float(results[0] == doc["answer"])}
            """, doc_to_text="!function utils.text", process_results="!function utils.results",
            metrics="{metric: right, aggregation: mean}")

    def test_a_service_decides(self):
        self.serve()
        status, body = self.post()
        self.assertEqual(status, 422, body)
        self.assertIn("this service does not run the Python code of task files", json.dumps(body))

    def test_a_submission_asks(self):
        self.serve(task_code="allow", roots=[str(self.tasks)])
        status, body = self.post()
        self.assertEqual(status, 201, body)
        self.wait_for("the end", lambda: self.state(body["id"]) == "done", 60)
        status, body = self.post(task_code=None)
        self.assertIn("is not built in", json.dumps(body))
        status, body = self.post(task_python="/usr/bin/python3")
        self.assertIn("leave it out: this service runs", json.dumps(body))

    def test_a_submission_names_no_program(self):
        """A Python also reads tables, for tasks without functions, as the service's user."""
        program = self.folder / "python"
        program.write_text(f"#!/bin/sh\ntouch {self.folder}/ran\n")
        program.chmod(0o755)
        for serves in ({}, {"task_code": "allow"}):
            with self.subTest(serves=serves):
                self.serve(roots=[str(self.tasks)], **serves)
                status, body = self.post(task_code=None, task_python=str(program))
                self.assertEqual(status, 422, body)
                self.assertIn("leave it out: this service runs", json.dumps(body))
                self.assertFalse((self.folder / "ran").exists())
                self.stop()

    def test_task_code_decides_nothing_of_other_tasks(self):
        """Prepared tasks are shared: hostile code must not decide what lies under another task's key."""
        lib, shadow = self.tasks / "lm_eval" / "tasks" / "lib", self.folder / "shadow" / "lm_eval" / "tasks" / "lib"
        for folder, text in ((lib, "def text(doc): return doc['question']\n"), (shadow, HOSTILE)):
            folder.mkdir(parents=True)
            (folder / "shared.py").write_text(text)
        self.write_task(HOSTILE, name="hostile", module="hostile", doc_to_text="!function hostile.text")
        for name, code in (("early", "from lm_eval.tasks.lib.shared import text\n"),
                           ("late", "def text(doc):\n    from lm_eval.tasks.lib.shared import text\n    return text(doc)\n"),
                           ("maybe", "def text(doc):\n    try:\n        from lm_eval.tasks.lib.shared import text\n"
                                     "    except ImportError:\n        return 'POISON'\n    return text(doc)\n")):
            self.write_task(code, name=name, module=name, doc_to_text=f"!function {name}.text")
        self.serve(task_code="allow")
        roots = str(self.tasks / "lm_eval" / "tasks")
        def prompts(name, *folders, tasks=()):
            config = self.settings(tasks=[*tasks, name], task_dirs=[*folders, str(self.tasks)])
            status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
            self.assertEqual(status, 201, body)
            run = json.loads(body)["id"]
            self.wait_for("the end", lambda: self.state(run) in ("done", "failed"), 60)
            return self.ask("GET", f"/v1/runs/{run}/samples/{name}")[2] if self.state(run) == "done" else b""
        for name in ("early", "late", "maybe"):
            with self.subTest(name):
                prompts(name, str(self.folder / "shadow"), tasks=["hostile"])
                prompts(name, str(shadow.parent))
                prompts(name)
                honest = prompts(name, roots)
                self.assertTrue(honest)
                self.assertNotIn(b"POISON", honest)

    def interpreters(self):
        """The Python processes below the service and its agent, whose command lines name the test's folder."""
        parents, names, latest = {}, {}, set()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                process, text = int(entry.name), (entry / "stat").read_text()
                command = (entry / "cmdline").read_bytes()
            except (OSError, ValueError):
                continue
            names[process] = text[text.index("(") + 1:text.rindex(")")]
            parents[process] = int(text.rpartition(")")[2].split()[1])
            if names[process] == "evald" and str(self.folder).encode() in command:
                latest.add(process)
        below = set()
        while latest:
            latest = {process for process, parent in parents.items() if parent in latest}
            below |= latest
        return {process for process in below if names[process].startswith("python")}

    def test_functions_end_with_their_job(self):
        """Otherwise their threads would go on computing, and their memory would stay taken."""
        self.write_task("""
            import threading, time
            kept = []
            def results(doc, results):
                kept.append(bytearray(b"x") * (50 << 20))
                threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
                return {"right": 1.0}
            """, process_results="!function utils.results", metrics="{metric: right, aggregation: mean}")
        self.serve(task_code="allow", metrics={"processes": 1})
        _, body = self.post()
        self.wait_for("the end of the run", lambda: self.state(body["id"]) == "done", 60)
        left = self.interpreters()
        self.wait_for("the end of the functions' process", lambda: self.interpreters() < left, 30)

    def test_modules_of_other_users_are_not_shared(self):
        """Both runs' modules have one path while they are scored, one after the other, in the same metric process."""
        self.serve(task_code="allow", metrics={"processes": 1})
        def right():
            status, body = self.post()
            self.assertEqual(status, 201, body)
            self.wait_for("the end", lambda: self.state(body["id"]) == "done", 60)
            return json.loads(self.ask("GET", f"/v1/runs/{body['id']}/results")[2])["results"]["coded"]["right,none"]
        code = (self.tasks / "utils.py").read_text()
        self.assertEqual(right(), 0.0)
        (self.tasks / "utils.py").write_text(code.replace("float(", "1 + float("))
        self.assertEqual(right(), 1.0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
