"""Generation settings: the checkpoint's settings are in force and named. A request that can never be answered is an
error of its own task only."""
import collections
import itertools
import json
import re
import shutil
import statistics
import struct
import unittest

from evald_case import QUICKSTART, EvaldCase

TASK = r"""task: NAME
dataset_path: json
dataset_kwargs: {data_files: {test: sums.jsonl}}
output_type: generate_until
test_split: test
doc_to_text: "{{question}}"
doc_to_target: "{{answer}}"
generation_kwargs: KWARGS
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
"""


class Generation(EvaldCase):
    def setUp(self):
        super().setUp()
        self.make_suite(sums=6, choice=6)
        self.checkpoint = self.folder / "checkpoint"
        shutil.copytree(sorted((QUICKSTART / "checkpoints").glob("step-*"))[-1], self.checkpoint)

    def task(self, name, kwargs):
        text = TASK.replace("NAME", name).replace("KWARGS", json.dumps(kwargs))
        (self.tasks / f"{name}.yaml").write_text(text)

    def settings(self, **settings):
        path = self.checkpoint / "generation_config.json"
        path.write_text(json.dumps({"eos_token_id": 0, **settings}))

    def config(self, name, tasks, **changes):
        return self.write_config(checkpoint="checkpoint", tasks=tasks, engine={"name": "native"},
                                 workers={"count": 1, "threads": 1}, output={"dir": "runs", "name": name}, **changes)

    def answers(self, name, task):
        lines = (self.folder / "runs" / name / f"samples_{task}.jsonl").read_text().splitlines()
        return [json.loads(line)["resps"] for line in lines]

    def test_several_samples_are_scored_apart_and_together(self):
        sampled = {"task": "quickstart_math", "limit": 12, "sample_metrics": ["avg@6", "pass@2", "pass^2", "maj@5"],
                   "generation_kwargs": {"do_sample": True, "temperature": 0.8}}
        suite = {"task_dirs": [str(QUICKSTART / "tasks")]}
        document = self.run_done(self.config("sampled", [sampled], **suite))
        expected = {"avg@6": [], "pass@2": [], "pass^2": [], "maj@5": []}
        lines = (self.folder / "runs" / "sampled" / "samples_quickstart_math.jsonl").read_text().splitlines()
        for line in [line for line in map(json.loads, lines) if line["filter"] == "strict-match"]:
            answers = [re.search(r"#### (-?[0-9.,]+)", text) for text in line["resps"][0]]
            answers = [found.group(1) if found else "[invalid]" for found in answers]
            self.assertEqual(len(answers), 6)
            right = [answer.rstrip(".") == line["target"].split("#### ")[1] for answer in answers]
            pairs = list(itertools.combinations(right, 2))
            expected["avg@6"].append(sum(right) / 6)
            expected["pass@2"].append(sum(map(any, pairs)) / len(pairs))
            expected["pass^2"].append(sum(map(all, pairs)) / len(pairs))
            most = collections.Counter(answers[:5]).most_common(1)[0][0]
            expected["maj@5"].append(right[answers.index(most)])
        results = document["results"]["quickstart_math"]
        for entry, values in expected.items():
            name = f"exact_match_{entry}"
            self.assertAlmostEqual(results[f"{name},strict-match"], statistics.mean(map(float, values)))
            error = statistics.stdev(map(float, values)) / len(values) ** 0.5
            self.assertAlmostEqual(results[f"{name}_stderr,strict-match"], error, msg=entry)
            self.assertIs(document["higher_is_better"]["quickstart_math"][name], True)
        self.assertGreater(len(set(expected["avg@6"])), 2, "samples differ")

        for change, message in (({"generation_kwargs": {"do_sample": False}}, "the answers are greedy"),
                                ({"repeats": 3}, "needs 6 samples, and repeats is 3"),
                                ({"sample_metrics": ["mean@4"]}, r'sample_metrics has "mean@4"'),
                                ({"sample_metrics": ["acc:avg@4"]}, "the task has no metric 'acc'")):
            with self.subTest(change=change):
                refused = self.evald("validate", self.config("refused", [{**sampled, **change}], **suite))
                self.assertEqual(refused.returncode, 2)
                self.assertRegex(refused.stderr, message)

    def test_the_checkpoints_settings_are_in_force_unless_ignored(self):
        self.task("greedy", {"until": ["\n\n"], "max_gen_toks": 24, "do_sample": False})
        self.task("drawn", {"until": ["\n\n"], "max_gen_toks": 4, "temperature": 0.9})
        self.settings()
        plain = self.run_done(self.config("plain", ["greedy", "drawn"]))
        self.settings(repetition_penalty=1.8, no_repeat_ngram_size=1, top_k=3, top_p=0.5)
        served = self.run_done(self.config("served", ["greedy", "drawn"]))
        ignored = self.run_done(self.config("ignored", ["greedy", "drawn"], generation_config="ignore"))
        self.assertNotEqual(self.answers("plain", "greedy"), self.answers("served", "greedy"))
        self.assertEqual(self.answers("plain", "greedy"), self.answers("ignored", "greedy"))

        kwargs = plain["configs"]["greedy"]["generation_kwargs"]
        self.assertEqual(kwargs, {"until": ["\n\n"], "max_gen_toks": 24, "do_sample": False}, "as in the harness")
        self.assertEqual(plain["configs"]["drawn"]["generation_kwargs"]["top_k"], 50)
        self.assertEqual(served["configs"]["greedy"]["generation_kwargs"]["repetition_penalty"], 1.8)
        self.assertEqual(served["evald"]["generation"]["drawn"],
                         {"do_sample": True, "eos_token_id": 0, "no_repeat_ngram_size": 1, "repetition_penalty": 1.8,
                          "temperature": 0.9, "top_k": 3, "top_p": 0.5})
        self.assertEqual(ignored["evald"]["generation"]["drawn"],
                         {"do_sample": True, "eos_token_id": 0, "temperature": 0.9, "top_k": 0, "top_p": 1.0})
        record = json.loads((self.folder / "runs" / "served" / "run.json").read_text())
        self.assertEqual(record["generation"], served["evald"]["generation"])
        self.assertEqual(record["deciding"]["generation_config"], "checkpoint")

    def poison(self, tensor):
        """Makes the first number of a tensor NaN."""
        path = self.checkpoint / "model.safetensors"
        data = bytearray(path.read_bytes())
        size = struct.unpack("<Q", data[:8])[0]
        about = json.loads(data[8:8 + size])[tensor]
        nan = {"F32": b"\0\0\xc0\x7f", "BF16": b"\xc0\x7f", "F16": b"\0\x7e"}[about["dtype"]]
        at = 8 + size + about["data_offsets"][0]
        data[at:at + len(nan)] = nan
        path.write_bytes(data)

    def test_nan_is_scored_as_the_harness_scores_it_and_counted(self):
        self.settings()
        self.poison("model.norm.weight")
        config = self.config("nan", ["sums", "choice"])
        results = self.run_done(config)
        self.assertEqual(results["evald"]["undefined"], {"choice": 6, "sums": 6})
        self.assertEqual({r[0][0] for document in self.answers("nan", "choice") for r in document}, {"nan"})
        first = [json.loads(line) for line in
                 (self.folder / "runs" / "nan" / "samples_choice.jsonl").read_text().splitlines()]
        for sample in first:  # np.argmax takes the first NaN
            self.assertEqual(sample["acc"], 1.0 if sample["target"] == "0" else 0.0)
        shown = self.evald("run", self.config("again", ["choice"])).stdout
        self.assertIn("choice: 6 documents have a NaN log-likelihood", shown)
        self.task("drawn", {"until": ["\n\n"], "max_gen_toks": 4, "temperature": 0.9})
        drawn = self.evald("run", self.config("drawn", ["drawn", "choice"]), "--quiet")
        self.assertEqual(drawn.returncode, 2, drawn.stderr)
        self.assertIn("not finite, so that none can be drawn", drawn.stderr)

    def test_other_settings_cannot_resume_a_run(self):
        self.settings()
        self.killed_at("run.planned", 1, self.config("run", ["sums"]))
        done = self.evald("run", self.config("run", ["sums"], generation_config="ignore"), "--resume", "run", "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("differing: generation_config", done.stderr)

    def refused(self, tasks, *expected):
        done = self.evald("run", self.config("run", tasks), "--json", "--quiet")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        document = json.loads(done.stdout)
        for part in expected:
            self.assertIn(part, document["error"])
        return document

    def test_an_answer_beyond_the_context_is_refused_before_the_run(self):
        self.task("endless", {"until": ["\n"], "max_gen_toks": 100000})
        self.settings()
        document = self.refused(["endless", "sums", "choice"], "task 'endless'", "max_gen_toks (100000)",
                                "lower the task's max_gen_toks")
        self.assertNotIn("results", document)

    def test_a_single_impossible_document_is_found_by_the_engine(self):
        # The first prompt fits into max_length, the last does not.
        with open(self.tasks / "sums.jsonl", "w") as out:
            for i in range(4):
                out.write(json.dumps({"question": "1 + 1 " * (1 + 20 * (i == 3)), "answer": "2"}) + "\n")
        self.task("mixed", {"until": ["\n"], "max_length": 40})
        self.settings()
        document = self.refused(["mixed", "choice"], "task mixed", "document 3", "max_length in generation_kwargs is 40")
        self.assertEqual(document["evald"]["incomplete"], ["mixed"])
        self.assertEqual(document["n-samples"]["choice"]["effective"], 6)

    def test_a_setting_that_is_not_served_is_refused_for_what_generates(self):
        self.settings(num_beams=4)
        document = self.refused(["sums", "choice"], "generation_config.json: num_beams: 4 is not served",
                                "generation_config: ignore")
        self.assertEqual(document["n-samples"]["choice"]["effective"], 6)


if __name__ == "__main__":
    unittest.main()
