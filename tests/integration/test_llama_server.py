"""The engine `llama-server` on a real llama-server of llama.cpp, against the native engine. EVALD_LLAMA_SERVER names the
program; without the variable, the one on PATH is used. EVALD_GGUF_PYTHON names a Python with numpy and gguf, which
writes the example's checkpoints as GGUF files; without it, python3 is used."""
import json
import os
import shutil
import subprocess
import unittest

from engine_case import CHECKPOINTS, EngineCase
from evald_case import BINARIES, SOURCE, scores

EXAMPLE = SOURCE / "examples" / "engines" / "llama-server.yaml"
LLAMA_SERVER = shutil.which(os.environ.get("EVALD_LLAMA_SERVER", "llama-server"))
PYTHON = os.environ.get("EVALD_GGUF_PYTHON", "python3")


def why_not():
    """The reason for which llama-server cannot be used; empty if it can."""
    if LLAMA_SERVER is None:
        return "no `llama-server` program: EVALD_LLAMA_SERVER may name one"
    if subprocess.run([PYTHON, "-c", "import gguf, numpy"], capture_output=True).returncode != 0:
        return f"{PYTHON} has no gguf: EVALD_GGUF_PYTHON may name a Python with gguf and numpy"
    return ""


class LlamaServer(EngineCase):
    TASKS = ("quickstart_code", "quickstart_math")
    LIMIT = int(os.environ.get("EVALD_LLAMA_SERVER_LIMIT", "12"))

    why_not = staticmethod(why_not)

    def gguf(self, step):
        """The checkpoint as GGUF in fp32, in which answers are the native engine's."""
        file = self.folder / f"{step}.gguf"
        subprocess.run([PYTHON, SOURCE / "bench" / "make_gguf.py", CHECKPOINTS / step, file, "--type", "f32"], check=True)
        return file

    def served(self, name, *settings, model="step-01200", tasks=None):
        return [EXAMPLE, *self.arguments(name, f"engine.command={json.dumps([LLAMA_SERVER])}",
                                         f"engine.model={self.gguf(model)}", *settings, tasks=tasks)]

    def serves(self, words):
        return str(self.folder / "step-01200.gguf") in words and "--port" in words

    def check_texts(self, found, expected):
        """Texts and numbers of tokens are the same. The server calls an answer that ends by itself stopped."""
        for answers in (found, expected):
            for answer in answers.values():
                answer.pop("finish", None)
        self.check_answers(found, expected)

    def test_scores_and_texts_are_the_native_engines_also_after_a_kill(self):
        expected_scores, expected = self.native()
        found_scores, log = self.killed(lambda server: server, *self.served("served", "engine.concurrency=2"))
        self.assertIn("the server ended (signal 9); start 1 of 3", log)
        self.assertEqual(len(expected), 2 * self.LIMIT)
        self.check_texts(self.answers("served"), expected)
        self.assertEqual(found_scores, expected_scores)

    def test_each_checkpoint_has_its_own_scores(self):
        for step in sorted(path.name for path in CHECKPOINTS.iterdir())[:2]:
            with self.subTest(step):
                expected, _ = self.native(f"native-{step}", f"checkpoint={CHECKPOINTS / step}")
                document = self.run_done(*self.served(f"served-{step}", f"checkpoint={CHECKPOINTS / step}", model=step))
                self.assertEqual(scores(document), expected)

    def test_a_file_of_another_checkpoint_is_noticed(self):
        """The GGUF file is the user's: nothing but the parity check sees that the file holds other weights."""
        first = sorted(path.name for path in CHECKPOINTS.iterdir())[0]
        done = self.evald("run", *self.served("other", model=first), "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("parity", done.stderr)
        self.assertFalse((self.folder / "runs" / "other" / "results.json").exists())

    def test_log_likelihoods_are_refused_and_never_made_up(self):
        done = self.evald("run", *self.served("choice", tasks=("quickstart_choice",)), "--quiet")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("engine 'llama-server' does not serve", done.stderr)
        self.assertFalse((self.folder / "runs" / "choice" / "results.json").exists())

    def test_a_file_that_is_no_model_ends_with_the_servers_words(self):
        (self.folder / "bad.gguf").write_bytes(b"GGUF, but not really")
        done = self.evald("run", *self.served("bad", f"engine.model={self.folder / 'bad.gguf'}", "engine.restarts=0"), "--quiet")
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("ended before it was ready (exit status 1): gguf_init_from_reader: this GGUF file is version", done.stderr)


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
