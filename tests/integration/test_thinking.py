"""Models that think before they answer, and answers that ran into max_gen_toks. The example model writes its
calculation, then "####", then the number: the calculation stands for the thinking here."""
import json
import os
import re
import shutil
import unittest

from evald_case import QUICKSTART, EvaldCase, scores

END, END_ID = "####", 331
TEMPLATE = (
    "{%- for message in messages %}{{ message.content }}{% endfor %}"
    "{%- if enable_thinking is defined and not enable_thinking %}{{ ' [no thoughts]' }}{% endif %}"
    "{{- effort | default('') }}"
)
MATH = "quickstart_math"


class ThinkingCase(EvaldCase):
    def setUp(self):
        super().setUp()
        self.checkpoint = self.folder / "checkpoint"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-01200", self.checkpoint)
        (self.checkpoint / "chat_template.jinja").write_text(TEMPLATE)

    def write(self, name, engine=None, task=None, **changes):
        changes = {"tasks": [dict({"task": MATH, "limit": 12}, **(task or {}))], **changes}
        return self.write_config(f"{name}.yaml", checkpoint=str(self.checkpoint),
                                 engine=dict({"name": "native"}, **(engine or {})),
                                 task_dirs=[str(QUICKSTART / "tasks"), "tasks"], workers={"count": 1, "threads": 1},
                                 staging={"root": str(self.folder / "staging")},
                                 output={"dir": "runs", "name": name}, **changes)

    def generations(self, name, task=MATH):
        lines = []
        for path in (self.folder / "runs" / name / "generations" / task).glob("*.jsonl"):
            lines += map(json.loads, path.read_text().splitlines())
        return sorted(lines, key=lambda line: line["doc_id"])

    def refused(self, config, *expected):
        done = self.evald("run", config, "--quiet")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        for part in expected:
            self.assertIn(part, done.stderr)


class Answers(ThinkingCase):
    def test_the_answer_is_what_follows_the_thinking(self):
        plain_results = self.run_done(self.write("plain"))
        plain = self.generations("plain")
        self.assertTrue(all(END in line["text"] for line in plain), "the model shows its calculation")
        thinking_results = self.run_done(self.write("thinking", {"think_end_token": END}))
        thinking = self.generations("thinking")
        for whole, line in zip(plain, thinking, strict=True):
            self.assertEqual(line["thinking"] + line["text"], whole["text"])
            self.assertEqual(line["text"], whole["text"].split(END)[-1].lstrip())
            self.assertEqual((line["finish"], line["tokens_out"]), (whole["finish"], whole["tokens_out"]))
            self.assertNotIn("thinking", whole)
        flexible = "exact_match,flexible-extract"
        self.assertEqual(thinking_results["results"][MATH][flexible], plain_results["results"][MATH][flexible])
        self.assertGreater(plain_results["results"][MATH]["exact_match,strict-match"], 0.5)
        self.assertEqual(thinking_results["results"][MATH]["exact_match,strict-match"], 0, "metrics see the answer alone")
        self.assertEqual(thinking_results["evald"]["thinking"], {MATH: {"think_end_token": END}})
        self.assertEqual(plain_results["evald"]["thinking"], {})
        self.assertEqual(thinking_results["config"]["model_args"]["think_end_token"], END)
        self.assertEqual(thinking_results["evald"]["engine"], plain_results["evald"]["engine"])
        samples = self.folder / "runs" / "thinking" / f"samples_{MATH}.jsonl"
        for sample in map(json.loads, samples.read_text().splitlines()):
            line = thinking[sample["doc_id"]]
            self.assertEqual(sample["evald_thinking"], [[line["thinking"]]])
            self.assertEqual(sample["resps"], [[line["text"]]])
        self.assertNotIn("evald_thinking", (self.folder / "runs" / "plain" / f"samples_{MATH}.jsonl").read_text())

        # The token's id, or its digits, do the same as its text.
        for name, end in (("id", END_ID), ("digits", str(END_ID))):
            self.assertEqual(scores(self.run_done(self.write(name, {"think_end_token": end}))), scores(thinking_results))
            self.assertEqual(self.generations(name), thinking)

        # Scored again, by each way to do so, the answers have the same scores.
        replay = self.write("replay", {"name": "replay", "generations": str(self.folder / "runs" / "thinking"),
                                       "think_end_token": END})
        self.assertEqual(scores(self.run_done(replay)), scores(thinking_results))
        self.assertEqual(self.generations("replay"), thinking)
        generations = self.folder / "generations.jsonl"
        generations.write_text("".join(json.dumps(line) + "\n" for line in thinking))
        for file in (samples, generations):
            done = self.evald("score", "--task", MATH, "--task-dir", QUICKSTART / "tasks", "--generations", file,
                              "--limit", "12", "--json", env=dict(os.environ, XDG_CACHE_HOME=str(self.folder / "xdg")))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["results"][MATH][flexible],
                             thinking_results["results"][MATH][flexible])

    def test_stop_strings_do_not_count_in_the_thinking(self):
        # Each calculation has a "="; no number has one. Each number of two digits has a second one.
        until = {"generation_kwargs": {"until": ["="]}}
        self.run_done(self.write("plain"))
        self.run_done(self.write("cut", task=until))
        self.run_done(self.write("thinking", {"think_end_token": END}, until))
        plain, cut, thinking = (self.generations(name) for name in ("plain", "cut", "thinking"))
        self.assertTrue(all(line["finish"] == "stop" and END not in line["text"] for line in cut))
        self.assertEqual([line["text"] for line in thinking],
                         [line["text"].split(END)[-1].lstrip() for line in plain])
        self.assertTrue(all("=" in line["thinking"] for line in thinking))
        self.assertEqual({line["finish"] for line in thinking}, {"eos"})
        # Behind the thinking they count.
        digit = {"generation_kwargs": {"until": list("0123456789")}}
        self.run_done(self.write("digits", {"think_end_token": END}, digit))
        self.assertEqual({(line["text"], line["finish"]) for line in self.generations("digits")}, {("", "stop")})

    def test_a_task_has_thinking_of_its_own(self):
        task = (QUICKSTART / "tasks" / "quickstart_math.yaml").read_text()
        (self.tasks / "other.yaml").write_text(re.sub(r"\.\./data", str(QUICKSTART / "data"), task)
                                               .replace("task: quickstart_math", "task: other"))
        config = self.write("run", {"enable_thinking": True, "think_end_token": END}, chat_template=True,
                            chat_template_args={"effort": " <low>"}, fewshot_as_multiturn=False,
                            tasks=[{"task": MATH, "limit": 4}, {"task": "other", "limit": 4, "enable_thinking": False},
                                   {"task": "quickstart_choice", "limit": 4, "enable_thinking": False}])
        results = self.run_done(config)
        self.assertEqual(results["evald"]["thinking"], {
            MATH: {"enable_thinking": True, "think_end_token": END}, "other": {"enable_thinking": False},
            "quickstart_choice": {"enable_thinking": False}})
        self.assertEqual(results["config"]["model_args"]["chat_template_args"], {"effort": " <low>"})
        for name, ending in ((MATH, " <low>"), ("other", " [no thoughts] <low>"), ("quickstart_choice", " [no thoughts] <low>")):
            sample = json.loads((self.folder / "runs" / "run" / f"samples_{name}.jsonl").read_text().splitlines()[0])
            prompt = sample["arguments"]["gen_args_0"]["arg_0"]
            self.assertTrue(prompt.endswith("Answer:" + ending), prompt[-60:])

    def test_what_cannot_be_is_refused(self):
        thinking = {"enable_thinking": True, "think_end_token": END}
        choices = [MATH, "quickstart_choice"]
        self.refused(self.write("a", thinking, chat_template=True, tasks=choices),
                     "the task 'quickstart_choice' scores log-likelihoods",
                     "tasks: [{task: quickstart_choice, enable_thinking: false}]")
        self.refused(self.write("b", {"think_end_token": 99999}), f"task '{MATH}': think_end_token: the tokenizer has no "
                     "token 99999; its ids go from 0 to 1023")
        self.refused(self.write("c", {"think_end_token": ""}), "c.yaml", "key 'engine.think_end_token': found \"\"",
                     "the id of a token from 0")
        self.refused(self.write("d", {"enable_thinking": True}, chat_template=True), "'think_end_token' is absent")
        self.refused(self.write("e", thinking), "'chat_template' is not set")
        validated = self.evald("validate", self.write("f", thinking, chat_template=True, tasks=choices))
        self.assertEqual(validated.returncode, 2, validated.stdout)
        self.assertIn("scores log-likelihoods", validated.stderr)
        validated = self.evald("validate", self.write("g", {"think_end_token": 99999}))
        self.assertEqual(validated.returncode, 2, validated.stdout)
        self.assertIn("has no token 99999", validated.stderr)
        self.assertEqual(list(self.folder.glob("runs/*/generations/*/*")), [], "nothing was computed")

    def test_a_run_is_not_resumed_with_other_thinking(self):
        self.killed_at("run.planned", 1, self.write("run", {"think_end_token": END}))
        for other in ({}, {"think_end_token": END_ID}, {"think_end_token": "="}):
            done = self.evald("run", self.write("run", other), "--resume", "run", "--quiet")
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("differing: tasks", done.stderr)
        results = self.run_done(self.write("run", {"think_end_token": END}), "--resume", "run")
        self.assertEqual(results["n-samples"][MATH]["effective"], 12)
        self.assertTrue(all(line["thinking"].rstrip().endswith(END) for line in self.generations("run")))


class Truncated(ThinkingCase):
    def test_truncated_answers_are_counted_shown_and_bounded(self):
        short = {"generation_kwargs": {"max_gen_toks": 5}}
        done = self.evald("run", self.write("short", task=short), "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"Value +Stderr +Truncated\n")
        self.assertIn("12 of 12\n", done.stdout)
        self.assertIn(f"{MATH}: 12 of 12 answers (100.0 %) are truncated", done.stdout)
        results = json.loads((self.folder / "runs" / "short" / "results.json").read_text())
        self.assertEqual(results["evald"]["truncated_answers"], {MATH: {"answers": 12, "truncated": 12, "share": 1.0}})
        self.assertEqual(results["evald"]["truncated_prompts"], {MATH: 0})
        self.assertEqual({line["finish"] for line in self.generations("short")}, {"length"})
        whole = self.evald("run", self.write("whole", gates={"truncated": {"max": 0}}), "--quiet")
        self.assertEqual(whole.returncode, 0, whole.stdout)
        self.assertNotIn("Truncated", whole.stdout)

        failed = self.evald("run", self.write("failed", task=short, gates={"truncated": {"max": 0.02}}), "--quiet")
        self.assertEqual(failed.returncode, 1, failed.stdout)
        self.assertIn(f"above the maximum of 0.02: {MATH}: 12 of 12 answers (100.0 %) ran into max_gen_toks", failed.stdout)
        gate = json.loads((self.folder / "runs" / "failed" / "verdict.json").read_text())["gates"][0]
        self.assertEqual((gate["task"], gate["metric"], gate["candidate"], gate["outcome"]), ("*", "truncated", 1, "fail"))
        rules = [{"task": MATH, "metric": "truncated", "max": 1}]
        own = self.write("own", task=short, gates={"truncated": {"max": 0.02}, "rules": rules})
        self.assertEqual(self.evald("run", own, "--quiet").returncode, 0)

    def test_thinking_that_did_not_end_is_truncated(self):
        # "<<" stands in the unfinished calculation. It cuts what is scored, but does not make it an answer.
        def task(until):
            return {"generation_kwargs": {"max_gen_toks": 8, "until": until}}
        results = self.run_done(self.write("run", {"think_end_token": END}, task(["<<"])))
        self.run_done(self.write("whole", {"think_end_token": END}, task([])))
        lines, whole = self.generations("run"), self.generations("whole")
        self.assertTrue(all("thinking" not in line for line in lines))
        self.assertEqual({line["finish"] for line in lines}, {"length"})
        self.assertEqual(results["evald"]["truncated_answers"][MATH]["truncated"], 12)
        self.assertEqual([line["text"] for line in lines], [line["text"].split("<<")[0] for line in whole])
        self.assertTrue(all("<<" in line["text"] and line["tokens_out"] == 8 for line in whole))

    def test_gates_on_tasks_without_texts_are_refused(self):
        for gates in ({"truncated": {"max": 0.1}}, {"rules": [{"task": "quickstart_choice", "metric": "truncated", "max": 0.1}]}):
            self.refused(self.write("run", tasks=["quickstart_choice"], gates=gates), "no answer can be truncated")


if __name__ == "__main__":
    unittest.main(verbosity=2)
