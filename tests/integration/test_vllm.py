"""The engine `vllm` on a real vLLM, against the native engine. EVALD_VLLM names the `vllm` program of a Python with
vLLM 0.32 or later; its CPU build will do. Without the variable, the one on PATH is used."""
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import unittest

from evald_case import BINARIES, OVER, QUICKSTART, SOURCE, scores
from service_case import ServiceCase

EXAMPLE = SOURCE / "examples" / "engines" / "vllm.yaml"
CHECKPOINTS = QUICKSTART / "checkpoints"
VLLM = shutil.which(os.environ.get("EVALD_VLLM", "vllm"))
LIMIT = int(os.environ.get("EVALD_VLLM_LIMIT", "12"))  # documents of each task
TASKS = ("quickstart_code", "quickstart_math", "quickstart_choice")
# Choices of several tokens, which are scored in another way than those of one, and rolling log-likelihoods.
MORE_TASKS = {
    "words": """output_type: multiple_choice
doc_to_text: "{{question.strip()}}\\nAnswer:"
doc_to_choice: "{{[choices[0] ~ ' the old', choices[1] ~ ' the old', choices[2] ~ ' the old', choices[3] ~ ' the old']}}"
doc_to_target: answer
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
""",
    "rolling": """output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{question}} {{choices[0]}}"
metric_list: [{metric: bits_per_byte}]
"""}


def why_not():
    """The reason for which vLLM cannot be used; empty if it can."""
    if VLLM is None:
        return "no `vllm` program: EVALD_VLLM may name one"
    try:
        shown = subprocess.run([VLLM, "--version"], capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{VLLM}: {error}"
    return "" if shown.returncode == 0 else f"{VLLM} --version: exit status {shown.returncode}"


def untie(source, target):
    """A copy of a checkpoint whose output layer is a tensor of its own, with the same values."""
    shutil.copytree(source, target)
    config = json.loads((target / "config.json").read_text())
    config["tie_word_embeddings"] = False
    (target / "config.json").write_text(json.dumps(config))
    data = (target / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + length])
    tensors = data[8 + length:]
    embedding = dict(header["model.embed_tokens.weight"])
    begin, end = embedding["data_offsets"]
    embedding["data_offsets"] = [len(tensors), len(tensors) + end - begin]
    header["lm_head.weight"] = embedding
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (target / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + tensors + tensors[begin:end])


class Vllm(ServiceCase):
    WORKERS = 1
    LOG = ()  # nobody reads what is said

    @classmethod
    def setUpClass(cls):
        reason = why_not()
        if reason:
            raise unittest.SkipTest(reason)

    def setUp(self):
        super().setUp()
        root = pathlib.Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else self.folder
        self.staging = root / f"evald-test-vllm-{os.getpid()}"
        self.addCleanup(shutil.rmtree, self.staging, ignore_errors=True)

    def arguments(self, name, *settings, tasks=TASKS):
        """The example's configuration with paths of this test and few documents."""
        chosen = [{"task": task, "limit": LIMIT} for task in tasks]
        values = [f"tasks={json.dumps(chosen)}", f"output.dir={self.folder / 'runs'}", f"output.name={name}",
                  f"cache_dir={self.folder / 'cache'}", f"state_dir={self.folder / 'state'}",
                  f"staging.root={self.staging}", *settings]
        return [word for value in values for word in ("--set", value)]

    def vllm(self, name, *settings, tasks=TASKS):
        """The arguments of `run` for the example in fp32, in which answers are the native engine's."""
        return [EXAMPLE, *self.arguments(name, f"engine.command={json.dumps([VLLM])}", "engine.dtype=float32",
                                         "engine.kv_cache=1GiB", *settings, tasks=tasks)]

    def write_more_tasks(self):
        data = QUICKSTART / "data" / "choice" / "test.jsonl"
        for name, text in MORE_TASKS.items():
            (self.tasks / f"{name}.yaml").write_text(
                f"task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: {{test: {data}}}}}\n"
                f"test_split: test\nmetadata: {{version: 1.0}}\n{text}")

    def native(self, name="native", *settings, tasks=TASKS):
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

    @staticmethod
    def loads(folder):
        """What the worker reported of each load, from the run's timeline."""
        timeline = json.loads((folder / "timeline.json").read_text())
        return [event["args"] for event in timeline["traceEvents"] if event.get("name") == "pull" and "scoring" in event.get("args", {})]

    def servers(self):
        """Process ids of servers on this test's staged checkpoint."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            if entry.name.isdigit() and "serve" in words and any(str(self.staging) in w for w in words):
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

    def test_scores_and_answers_are_the_native_engines_also_after_a_kill(self):
        self.write_more_tasks()
        tasks = (*TASKS, *MORE_TASKS)
        more = f"task_dirs={json.dumps([str(QUICKSTART / 'tasks'), str(self.tasks)])}"
        expected_scores, expected = self.native("native", more, tasks=tasks)
        lengths = {answer["tokens_out"] for (task, *_), answer in expected.items() if task == "words"}
        self.assertGreater(max(lengths), 1, "choices of several tokens")
        found_scores, log = self.killed(lambda server: server, *self.vllm("served", more, tasks=tasks))
        self.assertIn("the server ended (signal 9); start 1 of 3", log)
        self.check_answers(self.answers("served"), expected)
        for results in (found_scores, expected_scores):  # a perplexity shows the last bits of its log-likelihoods
            del results["results"]["rolling"]
        self.assertEqual(found_scores, expected_scores)
        load, = self.loads(self.folder / "runs" / "served")
        ways = {way["name"]: way["right"] for way in load["scoring"]["ways"]}
        self.assertEqual(ways, {"next token": True, "prompt, cached": True, "prompt": True}, load)

    def test_a_server_whose_engine_is_killed_is_started_again_whatever_its_exit_status(self):
        def engine(server):
            found = [entry for entry in pathlib.Path(f"/proc/{server}/task/{server}/children").read_text().split()
                     if b"EngineCore" in pathlib.Path(f"/proc/{entry}/cmdline").read_bytes()]
            self.assertEqual(len(found), 1, "one engine")
            return int(found[0])
        expected_scores, expected = self.native()
        found_scores, log = self.killed(engine, *self.vllm("served"))
        self.assertRegex(log, r"the server ended \(exit status \d+\); start 1 of 3")
        self.check_answers(self.answers("served"), expected)
        self.assertEqual(found_scores, expected_scores)

    def test_thinking_is_the_native_engines(self):
        # The calculation before "####" is the thinking. A server with the stop string would end it at its first "=".
        chosen = [{"task": "quickstart_math", "limit": LIMIT, "generation_kwargs": {"until": ["="]}}]
        thinking = ('engine.think_end_token="####"', f"tasks={json.dumps(chosen)}")
        expected_scores, expected = self.native("native", *thinking)
        found = self.run_done(*self.vllm("served", *thinking))
        self.assertEqual(scores(found), expected_scores)
        self.check_answers(self.answers("served"), expected)
        for key, answer in self.answers("served").items():
            self.assertIn("=", answer["thinking"])
            self.assertEqual((answer["thinking"], answer["finish"]), (expected[key]["thinking"], expected[key]["finish"]))

    def test_a_watch_swaps_checkpoint_after_checkpoint_into_one_server(self):
        steps = sorted(path.name for path in CHECKPOINTS.iterdir())
        untied, watched = self.folder / "untied", self.folder / "watched"
        untied.mkdir()
        watched.mkdir()
        expected = {}
        for step in steps:
            untie(CHECKPOINTS / step, untied / step)
            expected[step] = self.native(step, f"checkpoint={untied / step}")
        path = f"{pathlib.Path(VLLM).parent}:{os.environ['PATH']}"
        self.serve(environment={**os.environ, "PATH": path}, allow_engines=["vllm"], staging={"root": str(self.staging)})
        config = {"tasks": [{"task": task, "limit": LIMIT} for task in TASKS], "task_dirs": [str(QUICKSTART / "tasks")],
                  "engine": {"name": "vllm", "dtype": "float32", "kv_cache": "1GiB"}}
        self.call("POST", "/v1/watches", {"config": config, "checkpoints": str(watched)}, 201)
        loads = []
        for count, step in enumerate(steps, 1):
            (untied / step).rename(watched / step)

            def over():
                runs = self.call("GET", "/v1/runs?limit=200")["runs"]
                return len(runs) == count and all(run["state"] in OVER for run in runs) and runs
            run = next(run for run in self.wait_for(step, over, 600) if run["checkpoint"].endswith(step))
            self.assertEqual(run["state"], "done", self.run_of(run))
            folder = pathlib.Path(self.run_of(run)["directory"])
            self.check_answers(self.answers_in(folder), expected[step][1])
            self.assertEqual(scores(json.loads((folder / "results.json").read_text())), expected[step][0])
            loads += self.loads(folder)
        self.assertEqual([load["swapped"] for load in loads], [False, True, True, True], loads)
        self.assertEqual({load["server_starts"] for load in loads}, {1})
        seconds = [load["seconds"] for load in loads]
        print(f"start {seconds[0]:.1f} s, swaps {', '.join(f'{s:.2f}' for s in seconds[1:])} s, ", end="", flush=True)
        self.assertLess(max(seconds[1:]), seconds[0] / 5)


if __name__ == "__main__":
    if not os.access(BINARIES / "evald", os.X_OK):
        raise SystemExit(f"no evald in {BINARIES}")
    unittest.main(verbosity=2)
