"""The openai engine on a real `transformers serve`, against the native engine. EVALD_TRANSFORMERS names the
`transformers` program of a Python with transformers[serving] and torch. Without the variable, the one on PATH is
used."""
import json
import os
import shutil
import socket
import subprocess
import unittest

from engine_case import EngineCase
from evald_case import BINARIES, QUICKSTART, SOURCE, scores

EXAMPLE = SOURCE / "examples" / "engines" / "transformers-serve.yaml"
TRANSFORMERS = shutil.which(os.environ.get("EVALD_TRANSFORMERS", "transformers"))
# On a model as small as the example's, more threads are slower.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


def why_not():
    """The reason for which `transformers serve` cannot be used; empty if it can."""
    if TRANSFORMERS is None:
        return "no `transformers` program: EVALD_TRANSFORMERS may name one"
    try:
        shown = subprocess.run([TRANSFORMERS, "serve", "--help"], capture_output=True, text=True, timeout=120,
                               env=dict(os.environ, COLUMNS="200", NO_COLOR="1"))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{TRANSFORMERS}: {error}"
    if shown.returncode != 0 or "/v1/completions" not in shown.stdout:
        return f"{TRANSFORMERS} cannot serve: it needs transformers[serving] 5 or later"
    return ""


class TransformersServe(EngineCase):
    TASKS = ("quickstart_code", "quickstart_math")
    LIMIT = int(os.environ.get("EVALD_TRANSFORMERS_LIMIT", "12"))

    why_not = staticmethod(why_not)

    def served(self, name, *settings):
        """The arguments of `run` for the example on a server that evald starts."""
        command = [TRANSFORMERS, "serve", "{checkpoint}", "--host={host}", "--port={port}", "--device=cpu",
                   "--dtype=float32"]
        return [EXAMPLE, *self.arguments(name, f"engine.command={json.dumps(command)}",
                                         f"engine.environment={json.dumps(ENVIRONMENT)}", *settings)]

    def texts(self, name):
        """Text and length of the prompt of each answer. The server does not tell more."""
        return {key: (answer["text"], answer["tokens_in"]) for key, answer in self.answers(name).items()}

    def same_as_native(self, name, found_scores):
        expected_scores, _ = self.native()
        expected, found = self.texts("native"), self.texts(name)
        self.assertEqual(found.keys(), expected.keys())
        self.assertEqual(len(found), 2 * self.LIMIT)
        equal = sum(found[key] == expected[key] for key in expected)
        print(f"{equal} of {len(expected)} answers are the native engine's, ", end="", flush=True)
        self.assertEqual(found, expected)
        self.assertEqual(found_scores, expected_scores)

    def test_killed_in_the_middle_it_is_started_again_and_answers_as_the_native_engine(self):
        found, log = self.killed(lambda server: server, *self.served("served", "engine.concurrency=4"))
        self.assertIn("the server ended (signal 9); start 1 of 3", log)
        self.same_as_native("served", found)

    def test_a_server_that_runs_already(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        checkpoint = QUICKSTART / "checkpoints" / "step-01200"
        with open(self.folder / "server.log", "w") as log:
            server = subprocess.Popen([TRANSFORMERS, "serve", str(checkpoint), "--host=127.0.0.1",
                                       f"--port={port}", "--device=cpu", "--dtype=float32"],
                                      stdout=log, stderr=log, env=dict(os.environ, **ENVIRONMENT))
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        address = ["engine.command=[]", f"engine.base_url=http://127.0.0.1:{port}", f"engine.model={checkpoint}"]
        document = self.run_done(EXAMPLE, *self.arguments("running", *address))
        self.same_as_native("running", scores(document))
        self.assertIsNone(server.poll(), "a server that evald did not start goes on")

    def test_log_likelihoods_are_refused_and_never_made_up(self):
        choice = f"tasks={json.dumps([{'task': 'quickstart_choice', 'limit': 2}])}"
        for name, reason, settings in (
                ("off", "switched off by `scoring: false`", []),
                ("text", "`prompt: tokens` is needed for scoring", ["engine.scoring=true"]),
                ("tokens", "status 400: prompt must be a string", ["engine.scoring=true", "engine.prompt=tokens"])):
            with self.subTest(name):
                done = self.evald("run", *self.served(name, choice, *settings), "--quiet")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(reason, done.stderr)
                self.assertNotIn("starting it again", done.stderr, "nothing that another try would mend")
                self.assertFalse((self.folder / "runs" / name / "results.json").exists())


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
