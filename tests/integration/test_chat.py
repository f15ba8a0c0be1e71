"""Prompts made with a chat template, from eval.yaml to the files that a run leaves behind."""
import hashlib
import json
import shutil
import unittest

from evald_case import QUICKSTART, EvaldCase

TEMPLATE = (
    "{%- if messages[0].role == 'system' and messages[0].content == 'no' %}{{ raise_exception('no') }}{% endif %}"
    "{%- for message in messages %}{{ '<' ~ message.role ~ '>' ~ message.content ~ eos_token }}{% endfor %}"
    "{%- if add_generation_prompt %}{{ '<assistant>' }}{% endif %}"
)


class Chat(EvaldCase):
    def setUp(self):
        super().setUp()
        self.make_suite(sums=6, choice=6)
        self.checkpoint = self.folder / "checkpoint"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-01200", self.checkpoint)
        (self.checkpoint / "chat_template.jinja").write_text(TEMPLATE)

    def write(self, **changes):
        return self.write_config(checkpoint=str(self.checkpoint), engine={"name": "native"},
                                 workers={"count": 1, "threads": 1}, staging={"root": str(self.folder / "staging")},
                                 **changes)

    def first_prompts(self, run):
        """The arguments of each task's first sample."""
        samples = {path.name.split("_")[1]: path for path in run.glob("samples_*.jsonl")}
        return {task: json.loads(path.read_text().splitlines()[0])["arguments"] for task, path in samples.items()}

    def test_a_run_asks_what_the_template_writes_and_says_so(self):
        config = self.write(chat_template=True, system_instruction="Be brief.",
                            tasks=["choice", {"task": "sums", "num_fewshot": 0}])
        results = self.run_done(config)
        prompts = self.first_prompts(self.only_run())
        begin = "<system>Be brief.<|endoftext|><user>"
        sums = begin + "Question: What is 0 plus 1?\nAnswer:<|endoftext|><assistant>"
        self.assertEqual(prompts["sums.jsonl"]["gen_args_0"]["arg_0"], sums)
        choice = begin + "Which letter is number 0?\nAnswer:<|endoftext|><assistant>"
        self.assertEqual(prompts["choice.jsonl"]["gen_args_1"], {"arg_0": choice, "arg_1": "B"})
        self.assertEqual(results["chat_template"], TEMPLATE)
        self.assertEqual(results["chat_template_sha"], hashlib.sha256(TEMPLATE.encode()).hexdigest())
        self.assertEqual(results["system_instruction"], "Be brief.")
        self.assertEqual(results["system_instruction_sha"], hashlib.sha256(b"Be brief.").hexdigest())
        self.assertIs(results["fewshot_as_multiturn"], True)

    def test_plain_prompts_stay_plain(self):
        results = self.run_done(self.write(tasks=["sums"]))
        self.assertEqual(self.first_prompts(self.only_run())["sums.jsonl"]["gen_args_0"]["arg_0"],
                         "Question: What is 0 plus 1?\nAnswer:")
        for key in ("chat_template", "chat_template_sha", "system_instruction", "fewshot_as_multiturn"):
            self.assertIsNone(results[key], key)

    def test_validate_names_the_template(self):
        plan = self.evald("validate", self.write(chat_template=True, fewshot_as_multiturn=False), "--json")
        self.assertEqual(plan.returncode, 0, plan.stderr)
        prompts = json.loads(plan.stdout)["prompts"]
        self.assertEqual(prompts["chat_template"]["from"], str(self.checkpoint / "chat_template.jinja"))
        self.assertIs(prompts["fewshot_as_multiturn"], False)
        text = self.evald("validate", self.write(chat_template=True)).stdout
        self.assertIn("chat_template.jinja", text)
        self.assertIn("examples as turns", text)

    def test_what_cannot_be_rendered_is_refused_before_anything_runs(self):
        cases = {
            None: "found no chat template, expected chat_template.jinja or chat_template in tokenizer_config.json",
            "{% if %}": "chat_template.jinja: line 1: ",
            "{{ messages | nosuch }}": "nosuch",
            "{{ strftime_now('%d') }}": "chat_date",
        }
        for template, message in cases.items():
            path = self.checkpoint / "chat_template.jinja"
            path.unlink(missing_ok=True)
            if template:
                path.write_text(template)
            done = self.evald("run", self.write(chat_template=True), "--quiet")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(message, done.stderr)

    def test_an_interrupted_run_is_not_resumed_with_other_prompts(self):
        self.run_done(self.write(chat_template=True, output={"dir": "runs", "name": "one"}))
        run = self.folder / "runs" / "one"
        record = json.loads((run / "run.json").read_text())
        self.assertIs(record["deciding"]["prompts"]["chat_template"], True)
        (run / "results.json").unlink()
        (run / "run.json").write_text(json.dumps(dict(record, state="running")))
        for other in ({"system_instruction": "x"}, {}, {"chat_template": True, "fewshot_as_multiturn": False}):
            config = self.write(**other, output={"dir": "runs", "name": "one"})
            done = self.evald("run", config, "--resume", "one", "--quiet")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("differing: prompts", done.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
