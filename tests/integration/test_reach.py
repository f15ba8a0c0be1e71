"""The reach of a submission: it reads nothing outside the service's roots, by any name, and learns nothing about the
files there."""
import json
import os
import pathlib
import shutil
import time
import unittest
import unittest.mock

from evald_case import OVER, QUICKSTART
from service_case import Service

SECRET = "TOP-SECRET-LINE"
NOT_THERE = "is not there, or lies outside the folders that this service reads"
LOST_LINK = "a link on its way leads nowhere, or outside the folders that may be read"


class Reach(Service):
    def setUp(self):
        super().setUp()
        self.make_suite(4, 4)
        self.outside = self.folder / "outside"
        self.outside.mkdir()
        (self.outside / "secret.jsonl").write_text(json.dumps({"question": SECRET, "answer": SECRET}) + "\n")
        (self.outside / "secret.txt").write_text(f"{SECRET}: [not, YAML: {SECRET}\n")

    def post(self, **changes):
        config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated", "concurrency": 4}, **changes}
        status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
        return status, json.loads(body)

    def ended(self, run, seconds=60):
        def over():
            found = json.loads(self.ask("GET", f"/v1/runs/{run}")[2])
            return found if found["state"] in OVER else None
        return self.wait_for(f"run {run} to end", over, seconds)

    def words(self, answer):
        """The text of a refusal or of a failed run's problems. It must not contain the secret."""
        status, body = answer
        text = json.dumps(body) if status != 201 else json.dumps(self.ended(body["id"])["problems"])
        self.assertNotIn(SECRET, text)
        return text

    def same(self, first, second, *names):
        """Both attempts were refused in the same words, except for the names that they asked for."""
        texts = [self.words(first), self.words(second)]
        for name in names:
            texts = [text.replace(str(name), "NAME") for text in texts]
        self.assertEqual(texts[0], texts[1])
        self.assertRegex(texts[0], "not there|leads nowhere")
        self.assert_nothing_leaked()

    def assert_nothing_leaked(self):
        for folder in ("runs", "cache", "staging", "state"):
            for file in (self.folder / folder).rglob("*"):
                if file.is_file():
                    self.assertNotIn(SECRET.encode(), file.read_bytes(), file)

    def with_data(self, name):
        text = (self.tasks / "sums.yaml").read_text().replace("task: sums", "task: reads")
        (self.tasks / "reads.yaml").write_text(text.replace("sums.jsonl", json.dumps(str(name))))
        answer = self.post(tasks=["reads"])
        self.words(answer)
        return answer

    def test_data_files(self):
        self.serve(roots=[str(self.tasks)])
        secret, absent = self.outside / "secret.jsonl", self.outside / "absent.jsonl"
        self.same(self.with_data(secret), self.with_data(absent), secret, absent)
        self.same(self.with_data("../outside/secret.jsonl"), self.with_data("../outside/absent.jsonl"), secret, absent)
        (self.tasks / "link.jsonl").symlink_to(secret)
        (self.tasks / "dead.jsonl").symlink_to(absent)
        self.same(self.with_data("link.jsonl"), self.with_data("dead.jsonl"), "link.jsonl", "dead.jsonl")
        (self.tasks / "folder").symlink_to(self.outside)
        self.same(self.with_data("folder/secret.jsonl"), self.with_data("folder/absent.jsonl"), "secret.jsonl", "absent.jsonl")
        # A link that stays inside is followed, since data folders have such links.
        (self.tasks / "inside.jsonl").symlink_to(self.tasks / "sums.jsonl")
        status, body = self.with_data("inside.jsonl")
        self.assertEqual((status, self.ended(body["id"])["state"]), (201, "done"))

    def test_the_environment_of_a_process_is_nobodys_data(self):
        """A service without roots refuses these too: its processes' environments hold the keys of engines."""
        with unittest.mock.patch.dict(os.environ, EVALD_TEST_KEY=SECRET):
            self.serve()
        environments = [f"/proc/{self.daemon.pid}/environ", "/proc/self/environ", "/proc/thread-self/environ",
                        f"/proc/{self.daemon.pid}/task/{self.daemon.pid}/environ",
                        f"/proc/{self.daemon.pid}/root/proc/{self.daemon.pid}/environ", "/dev/fd/../environ"]
        self.assertIn(SECRET.encode(), pathlib.Path(environments[0]).read_bytes(), "nothing would be tried")
        status, body = self.with_data("sums.jsonl")
        run = self.ended(body["id"])
        worker = json.loads(self.ask("GET", "/v1/workers")[2])["workers"][0]["pid"]
        self.assertIn(SECRET.encode(), pathlib.Path(f"/proc/{worker}/environ").read_bytes(), run)
        for number, environment in enumerate([*environments, f"/proc/{worker}/environ"]):
            link = self.tasks / f"link{number}.jsonl"
            link.symlink_to(environment)
            (self.tasks / f"folder{number}").symlink_to(pathlib.Path(environment).parent)
            for name in (environment, link.name, f"folder{number}/environ"):
                with self.subTest("data", name=name):
                    text = self.words(self.with_data(name))
                    self.assertRegex(text, "is not there|the kernel shows processes")
            with self.subTest("include", name=environment):
                (self.tasks / "reads.yaml").write_text(f"include: {environment}\ntask: reads\n")
                self.assertRegex(self.words(self.post(tasks=["reads"])), "is not there|the kernel shows processes")
        (self.tasks / "reads.yaml").unlink()
        for name, config in (("task files", {"task_dirs": [str(self.tasks), f"/proc/{worker}"]}),
                             ("data", {"data_dir": f"/proc/{worker}"}),
                             ("a checkpoint", {"checkpoint": f"/proc/{worker}"}),
                             ("answers", {"engine": {"name": "replay", "generations": f"/proc/{worker}/environ"}})):
            with self.subTest(name):
                status, body = answer = self.post(**config)
                self.words(answer)
                if status == 201 and name != "data":  # the run needs nothing of the folder
                    self.assertEqual(self.ended(body["id"])["state"], "failed")
        self.assert_nothing_leaked()

    def test_includes(self):
        self.serve(roots=[str(self.tasks)])
        def includes(name):
            (self.tasks / "reads.yaml").write_text(f"include: {json.dumps(str(name))}\ntask: reads\n")
            answer = self.post(tasks=["reads"])
            self.assertEqual(answer[0], 422, answer)
            return answer
        secret, absent = self.outside / "secret.txt", self.outside / "absent.txt"
        self.same(includes(secret), includes(absent), secret, absent, "secret.txt", "absent.txt")
        self.same(includes("../outside/secret.txt"), includes("../outside/absent.txt"), "secret.txt", "absent.txt")
        (self.tasks / "link").symlink_to(secret)
        (self.tasks / "dead").symlink_to(absent)
        self.same(includes("link"), includes("dead"), "link", "dead")
        (self.tasks / "reads.yaml").unlink()
        # A task file must not be such a link either: the task of that name could be another folder's then.
        for target in (secret, absent):
            (self.tasks / "linked.yaml").symlink_to(target)
            self.assertIn(LOST_LINK, self.words(self.post()))
            (self.tasks / "linked.yaml").unlink()

    def test_task_files_and_checkpoints_and_watches(self):
        self.serve(roots=[str(self.tasks)])
        for key in ("checkpoint", "data_dir"):
            with self.subTest(key):
                self.same(self.post(**{key: str(self.outside)}), self.post(**{key: str(self.folder / "absent")}),
                          self.outside, self.folder / "absent")
        self.same(self.post(task_dirs=[str(self.outside)]), self.post(task_dirs=[str(self.folder / "absent")]),
                  self.outside, self.folder / "absent")
        def watch(folder):
            config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated"}}
            status, _, body = self.ask("POST", "/v1/watches", json.dumps({"checkpoints": str(folder), "config": config}),
                                       Content_Type="application/json")
            return status, json.loads(body)
        self.same(watch(self.outside), watch(self.folder / "absent"), self.outside, self.folder / "absent")

    def test_a_chat_template(self):
        checkpoint = self.tasks / "checkpoint"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", checkpoint)
        self.serve(roots=[str(self.tasks)])
        template = checkpoint / "chat_template.jinja"
        answers = []
        for target in (self.outside / "secret.txt", self.outside / "absent"):
            template.unlink(missing_ok=True)
            template.symlink_to(target)
            answers.append(self.post(checkpoint=str(checkpoint), engine={"name": "native"}, chat_template=True))
            self.words(answers[-1])
        texts = [self.words(answer) for answer in answers]
        self.assertEqual(texts[0], texts[1])
        self.assertIn(LOST_LINK, texts[0])
        self.assert_nothing_leaked()

    def test_a_tokenizer(self):
        checkpoint = self.tasks / "checkpoint"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", checkpoint)
        self.serve(roots=[str(self.tasks)])
        config = checkpoint / "tokenizer_config.json"
        config.unlink(missing_ok=True)
        config.symlink_to(self.outside / "secret.txt")
        self.assertIn(LOST_LINK, self.words(self.post(checkpoint=str(checkpoint), engine={"name": "native"})))
        config.unlink()
        (checkpoint / "config.json").unlink()
        (checkpoint / "config.json").symlink_to(self.outside / "secret.txt")
        self.assertIn(LOST_LINK, self.words(self.post(checkpoint=str(checkpoint), engine={"name": "native"})))
        self.assert_nothing_leaked()

    def test_a_file_that_may_be_left_out_is_not_left_out_if_it_is_a_link(self):
        """Without the file the run would compute something else than its owner meant, and say nothing."""
        checkpoint = self.tasks / "checkpoint"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", checkpoint)
        data = self.tasks / "data"
        data.mkdir()
        shutil.copy(self.tasks / "sums.jsonl", data / "test-1.jsonl")
        text = (self.tasks / "sums.yaml").read_text().replace("task: sums", "task: reads")
        text = "".join(line + "\n" for line in text.splitlines() if not line.startswith(("dataset_", "  ")) or "metric" in line)
        (self.tasks / "reads.yaml").write_text(f"dataset_path: ./data\n{text}")
        self.serve(roots=[str(self.tasks)])
        ask = lambda: self.post(checkpoint=str(checkpoint), tasks=["reads"], engine={"name": "native"}, chat_template=False)
        status, body = ask()
        self.assertEqual((status, self.ended(body["id"])["state"]), (201, "done"), body)
        for link in (data / "test-2.jsonl", checkpoint / "generation_config.json", checkpoint / "tokenizer_config.json",
                     checkpoint / "additional_chat_templates"):
            with self.subTest(link=link):
                kept = link.read_bytes() if link.is_file() else None
                link.unlink(missing_ok=True)
                link.symlink_to(self.outside / "secret.jsonl")
                self.assertIn(LOST_LINK, self.words(ask()))
                link.unlink()
                if kept is not None:
                    link.write_bytes(kept)

    def test_a_checkpoint_that_is_exchanged_while_it_waits(self):
        for name, folder in (("inside", self.tasks), ("outside", self.outside)):
            shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", folder / "checkpoint")
        (self.outside / "checkpoint" / "config.json").write_text(json.dumps({"secret": SECRET}))
        self.serve(roots=[str(self.tasks)], active_runs=1)
        self.make_suite(2000, 4)
        status, first = self.post(engine={"name": "emulated", "concurrency": 1, "delay_ms": 50})
        self.assertEqual(status, 201, first)
        status, second = self.post(checkpoint=str(self.tasks / "checkpoint"), tasks=["choice"], engine={"name": "native"})
        self.assertEqual((status, second["state"]), (201, "queued"), second)
        (self.tasks / "checkpoint").rename(self.tasks / "moved")
        (self.tasks / "checkpoint").symlink_to(self.outside / "checkpoint")
        self.assertEqual(self.ask("POST", f"/v1/runs/{first['id']}/cancel")[0], 200)
        run = self.ended(second["id"])
        self.assertEqual(run["state"], "failed", run)
        self.assertIn(NOT_THERE, json.dumps(run["problems"]))
        self.assert_nothing_leaked()

    def test_a_baseline_and_replayed_answers(self):
        (self.outside / "results.json").write_text(json.dumps({"results": {"sums": {"exact_match,none": 1}}, "secret": SECRET}))
        self.serve(roots=[str(self.tasks)])
        rules = [{"task": "sums", "metric": "exact_match", "max_drop": 0.1}]
        (self.tasks / "baseline").symlink_to(self.outside)
        (self.tasks / "nothing").symlink_to(self.folder / "absent")
        self.same(self.post(gates={"baseline": str(self.tasks / "baseline"), "rules": rules}),
                  self.post(gates={"baseline": str(self.tasks / "nothing"), "rules": rules}),
                  self.tasks / "baseline", self.tasks / "nothing")
        answers = self.tasks / "answers"
        answers.mkdir()
        (answers / "sums.jsonl").symlink_to(self.outside / "secret.txt")
        status, body = self.post(engine={"name": "replay", "generations": str(answers)})
        self.assertEqual(status, 201, body)
        run = self.ended(body["id"], 120)
        self.assertNotEqual(run["state"], "done")
        self.assertNotIn(SECRET, json.dumps(run))
        self.assert_nothing_leaked()


if __name__ == "__main__":
    unittest.main(verbosity=2)
