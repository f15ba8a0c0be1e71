"""The metric `judge`: another model rates the answers. The judge is an HTTP server of the test, or `evald endpoint`."""
import json
import os
import pathlib
import re
import shutil
import unittest
import unittest.mock

from evald_case import QUICKSTART, SOURCE, EvaldCase
from judge_server import RESET, JudgeServer, hang
from service_case import ServiceCase, answer_to
from test_agents import Agents

TASK = {
    "task": "essays", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": "essays.jsonl"}},
    "output_type": "generate_until", "test_split": "test", "doc_to_text": "{{question}}", "doc_to_target": "{{answer}}",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 8, "do_sample": False}}
JUDGE = {"metric": "judge", "prompt": "Number {{n}}.\nQuestion: {{question}}\nAnswer: {{response}}\nRate it from 1 to 10.",
         "pattern": "Score: ([0-9]+)", "range": [1, 10]}


def score(number):
    return number % 10 + 1


def good(server, number, call):
    return f"The answer is fine.\nScore: {score(number)}"


def mean(numbers):
    numbers = list(numbers)
    return sum(numbers) / len(numbers)


class JudgeCase(EvaldCase):
    DOCUMENTS = 24

    def setUp(self):
        super().setUp()
        with open(self.tasks / "essays.jsonl", "w") as out:
            for n in range(self.DOCUMENTS):
                out.write(json.dumps({"n": n, "question": f"Why {n}?", "answer": str(n), "other": f"Since {n}."}) + "\n")

    def task(self, *metrics, name="essays", **keys):
        task = {**TASK, "task": name, "metric_list": [{**JUDGE, **metric} for metric in metrics or ({},)], **keys}
        for metric in task["metric_list"]:
            for key in [key for key, value in metric.items() if value is None]:
                del metric[key]
        (self.tasks / f"{name}.yaml").write_text(json.dumps(task, indent=1))

    def play(self, answer, **options):
        server = JudgeServer(answer, **options)
        self.addCleanup(server.close)
        return server

    def config(self, url, judge=None, whole=False, **changes):
        """An eval.yaml whose judge is at `url`, with `judge` in place of its settings, or of all of them."""
        settings = judge if whole else {"base_url": url, "model": "a-judge", "concurrency": 4, "timeout_s": 20, **(judge or {})}
        options = {"tasks": ["essays"], "judge": settings, "output": {"dir": "runs", "name": "r"},
                   "engine": {"name": "emulated", "delay_ms": 0, "concurrency": 8}}
        return self.write_config(**{**options, **changes})

    def score_lines(self):
        return [json.loads(line) for path in self.only_run().glob("scores/essays/*.jsonl") for line in path.read_text().splitlines()]


class Judged(JudgeCase):
    def test_scores_and_costs_are_the_judges(self):
        server = self.play(good)
        self.task()
        os.environ["EVALD_TEST_JUDGE_KEY"] = "a-secret-key"
        self.addCleanup(os.environ.pop, "EVALD_TEST_JUDGE_KEY")
        config = self.config(server.url, {"api_key_env": "EVALD_TEST_JUDGE_KEY"})
        document = self.run_done(config)
        expected = mean(map(score, range(self.DOCUMENTS)))
        self.assertAlmostEqual(document["results"]["essays"]["judge,none"], expected)
        self.assertEqual(document["higher_is_better"]["essays"], {"judge": True})
        self.assertEqual(document["evald"]["judge"]["essays"], {
            "model": "a-judge", "base_url": server.url, "requests": self.DOCUMENTS, "tokens_in": 20 * self.DOCUMENTS,
            "tokens_out": 5 * self.DOCUMENTS, "cached": 0, "cached_tokens_in": 0, "cached_tokens_out": 0, "unparsed": 0})
        self.assertEqual(server.paths, {"/v1/chat/completions"})
        self.assertEqual(server.keys, {"Bearer a-secret-key"})
        self.assertEqual(set(server.calls.values()), {1})
        self.assertLessEqual(server.most_under_way, 4)
        self.assertEqual(server.bodies[0]["model"], "a-judge")
        self.assertEqual(server.bodies[0]["seed"], 1234)
        for path in self.folder.rglob("*"):
            if path.is_file():
                self.assertNotIn(b"a-secret-key", path.read_bytes(), path)
        lines = self.score_lines()
        self.assertEqual(len(lines), self.DOCUMENTS)
        self.assertIn("The answer is fine", lines[0]["detail"]["none"][0]["answers"][0]["answer"])
        # Another run finds the answers, and says so.
        again = self.evald("run", self.config(server.url, {"api_key_env": "EVALD_TEST_JUDGE_KEY"},
                                              output={"dir": "runs", "name": "again"}), "--quiet")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn(f"essays: the judge a-judge gave 0 answers (0 tokens in, 0 out); {self.DOCUMENTS} more were kept", again.stdout)
        self.assertEqual(set(server.calls.values()), {1})

    def test_every_way_to_answer_badly_is_asked_again(self):
        def answer(server, number, call):
            first = server.documents[number] == 1
            if not first:
                return good(server, number, call)
            return {1: "I like it.", 2: "<!doctype html><html>Score</html>", 3: "", 4: (429, "{}"), 5: (500, "oops"),
                    6: lambda: hang(8), 7: "x" * (5 << 20), 8: b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\n{",
                    9: (200, "<html>Sign in</html>"), 10: (200, ""), 11: b"no HTTP at all\r\n\r\n", 12: "Score: 77",
                    13: (200, "{\"choices\": []}"), 14: (408, ""), 15: b"", 16: RESET}.get(number, "Score: 5")

        def play(server, number, call):
            said = answer(server, number, call)
            return said() if callable(said) else said

        server = self.play(play)
        self.task({"match": "last"})
        document = self.run_done(self.config(server.url, {"timeout_s": 4}))
        bad = range(1, 17)
        self.assertAlmostEqual(document["results"]["essays"]["judge,none"],
                               mean(score(n) if n in bad else 5 for n in range(self.DOCUMENTS)))
        self.assertTrue(all(server.documents[n] == (2 if n in bad else 1) for n in range(self.DOCUMENTS)), server.documents)
        # Prose, a page as the judge's own words, nothing and a number out of range were whole answers, and cost tokens.
        self.assertEqual(document["evald"]["judge"]["essays"]["requests"], self.DOCUMENTS + 4)

    def test_a_failed_judge_never_scores_and_a_resume_asks_for_what_is_missing(self):
        def answer(server, number, call):
            if not healed and number in (3, 4):
                return "Who knows?"
            return (500, "no") if not healed and number == 11 else good(server, number, call)

        healed = []
        server = self.play(answer)
        self.task({"reasks": 1})
        config = self.config(server.url, {"retries": 1})
        broken = self.evald("run", config, "--quiet")
        self.assertEqual(broken.returncode, 3, broken.stderr)
        self.assertRegex(broken.stderr, r"task essays, documents 3 to 4: verdict: .*no verdict \(2 read\).*'Who knows\?'")
        self.assertRegex(broken.stderr, r"task essays, documents 11 to 11: verdict: .*status 500: no")
        self.assertEqual(json.loads((self.only_run() / "run.json").read_text())["state"], "incomplete")
        self.assertFalse((self.only_run() / "results.json").exists())
        self.assertEqual({n: server.documents[n] for n in (3, 4, 11)}, {3: 2, 4: 2, 11: 2})
        healed.append(True)
        asked = server.documents.total()
        server.forget()
        document = self.run_done(config, "--resume")
        self.assertEqual(server.documents, {3: 1, 4: 1, 11: 1})
        self.assertNotIn(1234, {body["seed"] for body in server.bodies if "Number 3." in body["messages"][0]["content"]})
        self.assertAlmostEqual(document["results"]["essays"]["judge,none"], mean(map(score, range(self.DOCUMENTS))))
        usage = document["evald"]["judge"]["essays"]
        self.assertEqual((usage["requests"], usage["cached"]), (asked - 2 + 3, 0), "answers of both lives, without the 500s")

    def test_verdicts_that_cannot_be_read_count_what_the_task_says(self):
        server = self.play(lambda server, number, call: "Hm." if number < 4 else good(server, number, call))
        self.task({"unparsed": 1, "reasks": 0})
        done = self.evald("run", self.config(server.url), "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("4 verdicts could not be read and count as 'unparsed'", done.stdout)
        results = json.loads((self.only_run() / "results.json").read_text())
        self.assertAlmostEqual(results["results"]["essays"]["judge,none"],
                               mean(1 if n < 4 else score(n) for n in range(self.DOCUMENTS)))

    def test_a_judge_that_is_down_ends_the_run_soon_and_other_tasks_are_scored(self):
        self.make_suite(sums=20, choice=20)
        self.task()
        config = self.config("http://127.0.0.1:9/v1", {"retries": 0}, tasks=["essays", "sums", "choice"])
        broken = self.evald("run", config, "--quiet", timeout=60)
        self.assertEqual(broken.returncode, 3, broken.stderr)
        self.assertIn("the judge at http://127.0.0.1:9/v1 did not answer", broken.stderr)
        results = json.loads((self.only_run() / "results.incomplete.json").read_text())
        self.assertEqual(set(results["results"]), {"sums", "choice"})
        self.assertEqual(results["evald"]["incomplete"], ["essays"])
        server = self.play(good)
        document = self.run_done(self.config(server.url, tasks=["essays", "sums", "choice"]), "--resume")
        self.assertAlmostEqual(document["results"]["essays"]["judge,none"], mean(map(score, range(self.DOCUMENTS))))

    def test_an_incomplete_run_says_what_the_judge_of_an_unfinished_task_took(self):
        self.make_suite(sums=20, choice=20)
        server = self.play(lambda server, number, call: (500, "oops") if number == 3 else good(server, number, call))
        self.task()
        broken = self.evald("run", self.config(server.url, {"retries": 0}, tasks=["essays", "sums"]), "--quiet")
        self.assertEqual(broken.returncode, 3, broken.stderr)
        results = json.loads((self.only_run() / "results.incomplete.json").read_text())
        self.assertEqual(results["evald"]["incomplete"], ["essays"])
        scored = len(self.score_lines())
        self.assertGreater(scored, 0)
        self.assertEqual(results["evald"]["judge"]["essays"]["requests"], scored)
        self.assertEqual(results["evald"]["judge"]["essays"]["tokens_in"], 20 * scored)
        self.assertIn(f"essays: the judge a-judge gave {scored} answers", broken.stdout)

    def test_a_pair_is_asked_in_both_orders(self):
        def answer(server, number, call):
            text = call["messages"][0]["content"]
            if number < 8:
                return "[[A]]"  # whatever stands there
            return "[[A]]" if "A: Since" in text else "[[B]]"  # the reference is better

        server = self.play(answer)
        self.task({"prompt": "Number {{n}}. {{question}}\nA: {{answer_a}}\nB: {{answer_b}}", "pattern": r"\[\[([ABC])\]\]",
                   "range": None, "reference": "other", "name": "wins"})
        document = self.run_done(self.config(server.url))
        self.assertAlmostEqual(document["results"]["essays"]["wins,none"], mean(0.5 if n < 8 else 0 for n in range(self.DOCUMENTS)))
        self.assertEqual(set(server.documents.values()), {2})

    def test_votes_samples_messages_and_json(self):
        def answer(server, number, call):
            if call["messages"][0]["role"] == "system":
                return "```json\n" + json.dumps({"verdict": {"score": 1 + call["seed"] % 3}}) + "\n```"
            return "yes" if number % 2 else "No"

        server = self.play(answer)
        votes = {"name": "votes", "prompt": None, "pattern": None, "json": "$.verdict.score", "range": [1, 3], "votes": 3, "seed": 0,
                 "temperature": 1, "messages": [{"role": "system", "content": "You judge {{n}}."}, {"role": "user", "content": "{{n}} {{response}}"}]}
        letter = {"name": "right", "pattern": "(yes|No)", "range": None, "choices": {"YES": 1, "no": 0}}
        self.task(votes, letter, generation_kwargs={"do_sample": True, "temperature": 1, "max_gen_toks": 8})
        task = {"task": "essays", "sample_metrics": ["right:pass@2", "avg@3", "votes:maj@3"]}
        document = self.run_done(self.config(server.url, tasks=[task]))
        results = document["results"]["essays"]
        self.assertEqual(results["votes,none"], 2)
        self.assertEqual(results["right,none"], 0.5)
        self.assertEqual(results["votes_avg@3,none"], 2)
        self.assertEqual(results["right_pass@2,none"], 0.5)
        self.assertEqual(results["votes_maj@3,none"], 2)

    def test_the_settings_of_a_task_take_the_place_of_the_runs(self):
        one, other = self.play(good), self.play(good)
        self.task()
        self.task(name="second")
        tasks = ["essays", {"task": "second", "judge": {"base_url": other.url, "model": "b-judge", "max_tokens": 7}}]
        document = self.run_done(self.config(one.url, {"temperature": 0.5}, tasks=tasks))
        self.assertEqual({body["model"] for body in one.bodies}, {"a-judge"})
        self.assertEqual({(body["model"], body["max_tokens"], body["temperature"]) for body in other.bodies}, {("b-judge", 7, 0.5)})
        self.assertEqual(document["evald"]["judge"]["second"]["model"], "b-judge")
        # Another model would give other scores; another address of it may go on.
        refused = self.evald("run", self.config(one.url, {"model": "c-judge", "temperature": 0.5}, tasks=tasks), "--resume", "--quiet")
        self.assertEqual(refused.returncode, 2, refused.stderr)

    def test_verdicts_of_different_judges_are_not_compared(self):
        server = self.play(good)
        self.task()
        for name, model in (("a", "one"), ("b", "one"), ("c", "another")):
            self.run_done(self.config(server.url, {"model": model}, output={"dir": "runs", "name": name}))
        runs = self.folder / "runs"
        same = self.evald("compare", runs / "a", runs / "b")
        self.assertNotIn("judges differ", same.stdout + same.stderr)
        other = self.evald("compare", runs / "a", runs / "c")
        self.assertIn("the judges differ: 'one' and 'another'", other.stdout + other.stderr)

    def test_generations_of_elsewhere_are_judged(self):
        server = self.play(good)
        self.task()
        with open(self.folder / "generations.jsonl", "w") as out:
            for n in range(self.DOCUMENTS):
                out.write(json.dumps({"doc_id": n, "idx": 0, "repeat": 0, "text": "Because.", "finish": "stop",
                                      "tokens_in": 1, "tokens_out": 1, "truncated": 0}) + "\n")
        arguments = ["score", "--task", "essays", "--task-dir", self.tasks, "--generations", self.folder / "generations.jsonl", "--json"]
        with unittest.mock.patch.dict(os.environ, XDG_CACHE_HOME=str(self.folder / "xdg")):
            self.assertIn("no judge is configured", self.evald(*arguments).stderr)
            done = self.evald(*arguments, "--judge-url", server.url, "--judge-model", "m")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertAlmostEqual(json.loads(done.stdout)["results"]["essays"]["judge,none"], mean(map(score, range(self.DOCUMENTS))))


class Killed(JudgeCase):
    def test_what_was_answered_is_not_asked_for_again(self):
        server = self.play(good)
        self.task()
        once = self.folder / "once"
        once.touch()
        killed = {"EVALD_FAIL_POINT": "evald-metric/judge.answer_kept:6", "EVALD_FAIL_POINT_ONCE": str(once)}
        document = self.run_done(self.config(server.url, {"concurrency": 1}), env=dict(os.environ, **killed))
        self.assertFalse(once.exists(), "the metric process was not killed")
        self.assertEqual(set(server.calls.values()), {1})
        self.assertAlmostEqual(document["results"]["essays"]["judge,none"], mean(map(score, range(self.DOCUMENTS))))
        self.assertEqual(document["evald"]["judge"]["essays"]["requests"], self.DOCUMENTS, "none is taken for another run's")

    def test_a_kill_of_all_loses_nothing_that_was_kept(self):
        server = self.play(good)
        self.task()
        config = self.config(server.url)
        process = self.start("run", config, "--quiet", start_new_session=True)
        kept = lambda: list((self.folder / "cache" / "judge").glob("*/*.json"))
        self.wait_for("answers", lambda: len(kept()) >= 4)
        process.kill()
        process.communicate()
        self.wait_until_gone(process.pid)
        keys = {path.stem for path in kept()}
        before = len(server.bodies)
        server.forget()
        document = self.run_done(config, "--resume")
        self.assertFalse({server.key_of(body) for body in server.calls} & keys)
        self.assertLess(len(server.bodies), self.DOCUMENTS, before)
        self.assertAlmostEqual(document["results"]["essays"]["judge,none"], mean(map(score, range(self.DOCUMENTS))))
        self.assertEqual(document["evald"]["judge"]["essays"]["requests"], self.DOCUMENTS)


class Refused(JudgeCase):
    def test_what_is_wrong_is_said_before_anything_is_done(self):
        cases = (
            ({}, {"judge": None}, "task 'essays': it has the metric 'judge', and no judge is configured"),
            ({}, {"judge": {"model": "m"}}, "key 'base_url': absent"),
            ({}, {"judge": {"base_url": "http://h/v1"}}, "key 'model': absent"),
            ({}, {"judge": {"base_url": "http://me:pw@h/v1", "model": "m"}}, "judge.base_url"),
            ({}, {"judge": {"base_url": "http://h/v1", "model": "m", "token": "x"}}, "unknown key 'judge.token'"),
            ({}, {"judge": {"base_url": "http://h/v1", "model": "m", "api_key_env": "EVALD_NOT_SET"}}, "the variable EVALD_NOT_SET is not set"),
            ({"promt": "x"}, {}, "has no key 'promt'; did you mean 'prompt'?"),
            ({"pattern": "Score: [0-9]+"}, {}, "has 0 groups, and group 1 is the verdict"),
            ({"range": None}, {}, "says not which verdicts there are"),
            ({"votes": 3}, {}, "3 votes would be one and the same"),
            ({"prompt": "{{qestion}}"}, {}, "'qestion' is undefined"),
            ({"reference": "gold", "range": None}, {}, "the document's field 'gold' is absent"),
        )
        for metric, changes, message in cases:
            with self.subTest(message):
                self.task(metric)
                config = self.config("http://127.0.0.1:9/v1", whole="judge" in changes, **changes)
                for command in ("validate", "run"):
                    done = self.evald(command, config, "--quiet")
                    self.assertEqual(done.returncode, 2, done.stderr)
                    self.assertIn(message, done.stderr)
                self.assertEqual(list(self.folder.glob("runs/*/generations/*/*")), [])

    def test_the_example_is_valid(self):
        with unittest.mock.patch.dict(os.environ, JUDGE_KEY="a-key"):
            done = self.evald("validate", SOURCE / "examples" / "judge" / "eval.yaml", "--set", f"cache_dir={self.folder}/cache",
                              "--set", f"state_dir={self.folder}/state")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"paired_math .* asks a judge")
        self.assertIn("judge       judge at http://127.0.0.1:8000/v1", done.stdout)

    def test_tasks_that_no_judge_can_rate(self):
        self.task(output_type="loglikelihood")
        self.assertIn("the metric 'judge' needs answers that are generated", self.evald("validate", self.config("http://h/v1")).stderr)
        self.task({}, {})
        self.assertIn("2 metrics with the name 'judge'", self.evald("validate", self.config("http://h/v1")).stderr)
        self.task({"name": "a,b"})
        self.assertIn("the metric's name is 'a,b'", self.evald("validate", self.config("http://h/v1")).stderr)


class Endpoint(JudgeCase):
    DOCUMENTS = 6

    def test_a_checkpoint_of_ones_own_judges(self):
        checkpoint = self.folder / "with-template"
        shutil.copytree(sorted((QUICKSTART / "checkpoints").glob("step-*"))[-1], checkpoint)
        shutil.copy(SOURCE / "examples" / "endpoint" / "chat_template.jinja", checkpoint)
        endpoint = self.start("endpoint", checkpoint, "--key-file", self.folder / "key", "--threads", 1, "--json")
        self.addCleanup(lambda: (endpoint.kill(), endpoint.communicate()))
        served = json.loads(endpoint.stdout.readline())
        # A small model that does sums: its number is the verdict.
        self.task({"prompt": "Question: Tom has {{n}} apples and gets 2 more. How many apples does he have?\nAnswer:",
                   "pattern": "#### ([0-9]+)", "range": [0, 1000000], "max_tokens": 48, "unparsed": 0})
        with unittest.mock.patch.dict(os.environ, EVALD_TEST_JUDGE_KEY=(self.folder / "key").read_text().strip()):
            config = self.config(served["url"], {"model": served["model"], "api_key_env": "EVALD_TEST_JUDGE_KEY"})
            document = self.run_done(config)
            usage = document["evald"]["judge"]["essays"]
            self.assertGreaterEqual(usage["requests"], self.DOCUMENTS)
            self.assertGreater(usage["tokens_in"], 10 * self.DOCUMENTS)
            self.assertGreater(usage["tokens_out"], self.DOCUMENTS)
            details = [line["detail"]["none"][0]["answers"][0] for line in self.score_lines()]
            self.assertTrue(any("unparsed" not in detail for detail in details), details)
            for detail in details:
                found = re.findall("#### ([0-9]+)", detail["answer"])
                self.assertEqual(detail["score"], float(found[-1]) if "unparsed" not in detail else 0)
        with unittest.mock.patch.dict(os.environ, EVALD_TEST_JUDGE_KEY="a-wrong-key"):
            config = self.config(served["url"], {"model": served["model"], "api_key_env": "EVALD_TEST_JUDGE_KEY", "max_tokens": 47},
                                 output={"dir": "runs", "name": "wrong"})
            refused = self.evald("run", config, "--quiet")
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("status 401", refused.stderr)


class Service(ServiceCase, JudgeCase):
    def submitted(self, judge, tasks=("essays",)):
        config = {"tasks": list(tasks), "task_dirs": [str(self.tasks)], "judge": judge, "engine": {"name": "emulated", "delay_ms": 0}}
        return self.ask_for(config)

    def ask_for(self, config):
        return answer_to(self.url, "POST", "/v1/runs", {"config": config})

    def test_a_submission_asks_no_judge_that_the_operator_does_not_allow(self):
        server, other = self.play(good), self.play(good)
        self.task()
        settings = lambda **changes: {"base_url": server.url, "model": "m", **changes}
        environment = dict(os.environ, EVALD_TEST_JUDGE_KEY="the-services-key")
        self.serve(judge_urls=[server.url], judge_keys={server.url: "EVALD_TEST_JUDGE_KEY"}, environment=environment)
        for judge in (settings(base_url=other.url), settings(base_url=server.url[:-3]), settings(api_key_env="HOME"),
                      settings(base_url="http://127.0.0.1:9", api_key_env="EVALD_TEST_JUDGE_KEY"), settings(timeout_s=600),
                      settings(base_url=server.url + "/../../admin"), settings(base_url=server.url.replace("http://", "http://x@"))):
            with self.subTest(judge):
                status, text = self.submitted(judge)
                self.assertEqual(status, 422, text)
                self.assertIn(b"judge", text)
        override = {"task": "essays", "judge": {"base_url": other.url, "model": "m"}}
        status, text = self.submitted(settings(), [override])
        self.assertEqual(status, 422, text)
        status, text = self.submitted(settings(api_key_env="EVALD_TEST_JUDGE_KEY"))
        self.assertEqual(status, 201, text)
        run = json.loads(text)["id"]
        self.wait_for("the run", lambda: self.call("GET", f"/v1/runs/{run}")["state"] in ("done", "incomplete", "failed"))
        self.assertEqual(self.call("GET", f"/v1/runs/{run}")["state"], "done")
        results = self.call("GET", f"/v1/runs/{run}/results")
        self.assertAlmostEqual(results["results"]["essays"]["judge,none"], mean(map(score, range(self.DOCUMENTS))))
        self.assertEqual(server.keys, {"Bearer the-services-key"})
        self.assertEqual(other.bodies, [])

    def test_without_a_list_no_judge_is_asked(self):
        server = self.play(good)
        self.task()
        self.serve()
        status, text = self.submitted({"base_url": server.url, "model": "m"})
        self.assertEqual(status, 422, text)
        self.assertIn(b"judge_urls", text)


class Hosts(Agents, JudgeCase):
    DOCUMENTS = 80

    def test_another_host_asks_too_and_what_it_does_not_rate_is_missing(self):
        server = self.play(lambda server, number, call: "Hm." if broken and number == 7 else good(server, number, call))
        broken = [True]
        self.task({"reasks": 0})
        self.serve(**self.make_access(), output_dir="runs-of-the-service", metrics={"processes": 1}, judge_urls=[server.url])
        self.start_agent("north", devices="cpu:0,cpu:1")
        self.wait_host("north")
        judge = {"base_url": server.url, "model": "m", "concurrency": 2}
        run = self.finished(self.submit_to_all("north", engine={**self.ENGINE, "delay_ms": 150}, tasks=["essays"], judge=judge))
        self.assertEqual(run["state"], "incomplete", run)
        self.assertIn("task essays, documents 7 to 7: verdict", json.dumps(run["problems"]))
        self.assertTrue(list(self.folder.glob("hosts/north/judge/*/*.json")), "the other host has asked nothing")
        broken.clear()
        run = self.finished(self.submit_to_all("north", engine={**self.ENGINE, "delay_ms": 150}, tasks=["essays"], judge=judge))
        self.assertEqual(run["state"], "done", run)
        results = json.loads((pathlib.Path(run["directory"]) / "results.json").read_text())
        self.assertAlmostEqual(results["results"]["essays"]["judge,none"], mean(map(score, range(self.DOCUMENTS))))


if __name__ == "__main__":
    unittest.main()
