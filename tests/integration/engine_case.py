"""What tests of engines with a server share: the example's tasks, the native engine's answers to compare with, and
the killing of a server."""
import json
import os
import pathlib
import shutil
import signal
import unittest

from evald_case import QUICKSTART, scores
from service_case import ServiceCase

CHECKPOINTS = QUICKSTART / "checkpoints"


class EngineCase(ServiceCase):
    WORKERS = 1
    LOG = ()  # nobody reads what is said
    TASKS = ("quickstart_code", "quickstart_math", "quickstart_choice")
    LIMIT = 12  # documents of each task

    @staticmethod
    def why_not():
        """The reason for which the server cannot be used; empty if it can."""
        return ""

    @classmethod
    def setUpClass(cls):
        reason = cls.why_not()
        if reason:
            raise unittest.SkipTest(reason)

    def setUp(self):
        super().setUp()
        root = pathlib.Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else self.folder
        self.staging = root / f"evald-test-engine-{os.getpid()}"
        self.addCleanup(shutil.rmtree, self.staging, ignore_errors=True)

    def arguments(self, name, *settings, tasks=None):
        """The example's configuration with paths of this test and few documents."""
        chosen = [{"task": task, "limit": self.LIMIT} for task in tasks or self.TASKS]
        values = [f"tasks={json.dumps(chosen)}", f"output.dir={self.folder / 'runs'}", f"output.name={name}",
                  f"cache_dir={self.folder / 'cache'}", f"state_dir={self.folder / 'state'}",
                  f"staging.root={self.staging}", *settings]
        return [word for value in values for word in ("--set", value)]

    def native(self, name="native", *settings, tasks=None):
        document = self.run_done(QUICKSTART / "eval.yaml", *self.arguments(name, *settings, tasks=tasks))
        return scores(document), self.answers(name)

    def answers(self, name):
        return self.answers_in(self.folder / "runs" / name)

    def answers_in(self, folder):
        answers = {}
        for path in folder.glob("generations/*/*.jsonl"):
            for line in path.read_text().splitlines():
                answer = json.loads(line)
                key = (path.parent.name, answer["doc_id"], answer["idx"], answer["repeat"])
                self.assertNotIn(key, answers, "no request is answered twice")
                answers[key] = answer
        return answers

    def check_answers(self, found, expected):
        """Texts are the same, log-likelihoods within 1e-3."""
        self.assertEqual(found.keys(), expected.keys())
        for key, answer in expected.items():
            other = found[key]
            if "loglikelihood" in answer:
                self.assertAlmostEqual(other["loglikelihood"], answer["loglikelihood"], delta=1e-3, msg=key)
                self.assertEqual(other.get("is_greedy"), answer.get("is_greedy"), key)
            else:
                self.assertEqual(other["text"], answer["text"], key)
            self.assertEqual((other["tokens_in"], other["tokens_out"]), (answer["tokens_in"], answer["tokens_out"]), key)

    def serves(self, words):
        """Whether a command line is that of a server on this test's staged checkpoint."""
        return "serve" in words and any(str(self.staging) in word for word in words)

    def servers(self):
        """Process ids of this test's servers."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if entry.name.isdigit() and self.serves(words):
                found.append(int(entry.name))
        return found

    def killed(self, victim, *arguments):
        """The results of a run in whose middle `victim(server)` is killed, and the log of its worker."""
        process = self.start("run", *arguments, "--json", "--quiet")
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        folder = self.folder / "runs" / "served"

        def answering():
            self.assertIsNone(process.poll(), "the run ended before the server was killed")
            return self.servers() and sum(path.stat().st_size for path in folder.glob("generations/*/*"))
        try:
            self.wait_for("the first answers", answering, seconds=600)
            servers = self.servers()
            self.assertEqual(len(servers), 1, "one worker, one server")
            os.kill(victim(servers[0]), signal.SIGKILL)
            out, err = process.communicate(timeout=900)
        finally:
            process.kill()
        self.assertEqual(process.returncode, 0, f"{out}\n{err}\n{self.logs()}")
        self.assertEqual(self.servers(), [], "no server outlives the run")
        return scores(json.loads(out)), (folder / "logs" / "w0.log").read_text(errors="replace")
