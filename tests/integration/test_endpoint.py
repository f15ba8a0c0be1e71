"""evald endpoint: the OpenAI-compatible API of a checkpoint, from its command line to its end.

Texts and log-probabilities are held against those of `evald run` on the same documents.
"""
import concurrent.futures
import http.client
import json
import os
import select
import signal
import socket
import stat
import unittest

from evald_case import BINARIES, QUICKSTART, EvaldCase

CHECKPOINT = QUICKSTART / "checkpoints" / "step-01200"
GPU_WORKER = BINARIES / "evald-worker-cuda-emulated"


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=120)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class EndpointCase(EvaldCase):
    def serve(self, *arguments, checkpoint=CHECKPOINT, device="cpu", **options):
        """Starts an endpoint, and returns its process and what it says of itself."""
        process = self.start("endpoint", checkpoint, "--device", device, "--threads", "1", "--json", *arguments, **options)
        self.addCleanup(self.end, process)
        ready, _, _ = select.select([process.stdout], [], [], 120)
        line = process.stdout.readline() if ready else ""
        if not line:
            process.kill()
            self.fail(f"the endpoint says nothing; {process.communicate()[1]}")
        return process, json.loads(line)

    def end(self, process):
        if process.poll() is None:
            process.kill()
        process.communicate()

    def connect(self, said):
        if said["url"].startswith("unix:"):
            return UnixConnection(said["url"][len("unix:"):])
        return http.client.HTTPConnection(said["url"][len("http://"):], timeout=120)

    def ask(self, said, path, body=None, key=None):
        """(status, JSON) of one call."""
        connection = self.connect(said)
        key = key if key is not None else said["key"]
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        text = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        connection.request("GET" if body is None else "POST", path, text, headers)
        answer = connection.getresponse()
        result = answer.status, json.loads(answer.read())
        connection.close()
        return result

    def complete(self, said, **body):
        status, answer = self.ask(said, "/v1/completions", {"temperature": 0, **body})
        self.assertEqual(status, 200, answer)
        return answer


class Answers(EndpointCase):
    def test_texts_and_scores_are_those_of_a_run(self):
        config = self.folder / "eval.yaml"
        config.write_text(json.dumps({
            "checkpoint": str(CHECKPOINT), "tasks": [{"task": name, "limit": 12} for name in ("quickstart_math", "quickstart_choice")],
            "task_dirs": [str(QUICKSTART / "tasks")], "engine": {"name": "native"},
            "workers": {"threads": 1, "devices": ["cpu:0"]}, "output": {"dir": "runs"},
            "cache_dir": "cache", "state_dir": "state"}))
        self.run_done(config)
        _, said = self.serve()
        for task, kind in (("quickstart_math", self.check_text), ("quickstart_choice", self.check_choices)):
            samples = self.samples_of(task)
            self.assertEqual(len(samples), 12)
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                for done in [pool.submit(kind, said, sample) for sample in samples]:
                    done.result()

    def samples_of(self, task):
        """One sample for each document."""
        found = {}
        for line in (self.only_run() / f"samples_{task}.jsonl").read_text().splitlines():
            sample = json.loads(line)
            found[sample["doc_id"]] = sample
        return list(found.values())

    def check_text(self, said, sample):
        context, settings = (sample["arguments"]["gen_args_0"][f"arg_{i}"] for i in (0, 1))
        settings = json.loads(settings) if isinstance(settings, str) else settings
        answer = self.complete(said, prompt=context, max_tokens=settings["max_gen_toks"], stop=settings["until"])
        self.assertEqual(answer["choices"][0]["text"], sample["resps"][0][0])

    def check_choices(self, said, sample):
        for number, (expected,) in enumerate(sample["resps"]):
            arguments = sample["arguments"][f"gen_args_{number}"]
            context, choice = arguments["arg_0"], arguments["arg_1"]
            tokens = [self.ask(said, "/tokenize", {"prompt": text, "add_special_tokens": False})[1]["tokens"]
                      for text in (context, context + choice)]
            answer = self.complete(said, prompt=tokens[1], max_tokens=1, logprobs=1, echo=True)
            logprobs = answer["choices"][0]["logprobs"]
            values = logprobs["token_logprobs"][len(tokens[0]):-1]
            best = [max(top.values()) for top in logprobs["top_logprobs"][len(tokens[0]):-1]]
            self.assertEqual([sum(values), values == best],
                             [float(expected[0]), expected[1] in (True, "True")])

    def test_a_thousand_connections(self):
        _, said = self.serve("--engine", "emulated", "--set", "delay_ms=20", "--set", "concurrency=256",
                             "--set", "text=an answer")
        connections = [self.connect(said) for _ in range(1000)]
        for connection in connections:
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "x"}),
                               {"Authorization": f"Bearer {said['key']}"})
        for connection in connections:
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200)
            self.assertEqual(json.loads(answer.read())["choices"][0]["text"], "an answer")
            connection.close()

    def test_a_reader_that_does_not_read_holds_nobody_up(self):
        _, said = self.serve()
        slow = self.connect(said)
        slow.request("POST", "/v1/completions", json.dumps({"prompt": "def", "max_tokens": 1900, "stream": True,
                                                            "n": 8, "logprobs": 20}),
                     {"Authorization": f"Bearer {said['key']}"})
        for _ in range(20):
            self.complete(said, prompt="def", max_tokens=4)
        slow.close()


class CommandLine(EndpointCase):
    def test_says_how_to_call_it_and_ends_in_order(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("endpoint", CHECKPOINT, "--device", "cpu", "--threads", "1")
            self.addCleanup(self.end, process)
            said = "".join(process.stderr.readline() for _ in range(4))
            self.assertIn("'step-01200' is served at http://127.0.0.1:", said)
            self.assertIn("curl http://127.0.0.1:", said)
            self.assertIn("export OPENAI_API_KEY=", said)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
            self.assertEqual((process.returncode, out), (0, ""), err)

    def test_a_key_file(self):
        key = self.folder / "key"
        _, said = self.serve("--key-file", key)
        self.assertEqual(stat.S_IMODE(key.stat().st_mode), 0o600)
        self.assertIsNone(said["key"])
        self.assertEqual(said["key_file"], str(key))
        text = key.read_text().strip()
        self.assertEqual(self.ask(said, "/v1/models", key=text)[0], 200)
        status, answer = self.ask(said, "/v1/models", key=text[:-1] + "x")
        self.assertEqual((status, answer["error"]["code"]), (401, "invalid_api_key"))
        key.chmod(0o644)
        self.refused("others than its owner", "--key-file", key)

    def test_the_key_is_on_no_command_line(self):
        process, said = self.serve()
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            self.assertNotIn(said["key"].encode(), file.read())

    def test_a_unix_socket(self):
        path = self.folder / "model.sock"
        process, said = self.serve("--socket", path)
        self.assertEqual(said["url"], f"unix:{path}")
        self.assertIsNone(said["key"])
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(self.ask(said, "/v1/models")[1]["data"][0]["id"], "step-01200")
        self.refused("another process listens there", "--socket", path)
        process.terminate()
        process.wait(60)
        self.assertFalse(path.exists())
        process, said = self.serve("--socket", path)
        process.kill()
        process.wait(60)
        self.assertTrue(path.exists())
        _, said = self.serve("--socket", path)  # that of a dead process is taken over
        self.assertEqual(self.ask(said, "/health")[0], 200)

    def test_a_model_name(self):
        _, said = self.serve("--model-name", "mine")
        self.assertEqual(said["model"], "mine")
        for name, status in (("mine", 200), (str(CHECKPOINT), 200), ("step-01200", 404)):
            self.assertEqual(self.ask(said, "/v1/completions", {"model": name, "prompt": "x", "max_tokens": 1})[0],
                             status, name)

    def refused(self, text, *arguments, checkpoint=CHECKPOINT, status=2):
        device = () if "--device" in arguments else ("--device", "cpu")
        done = self.evald("endpoint", checkpoint, *device, *arguments, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertIn(text, done.stderr)

    def test_wrong_arguments(self):
        self.refused("there is no folder", checkpoint=self.folder / "none")
        empty = self.folder / "empty"
        empty.mkdir()
        self.refused("config.json", checkpoint=empty)
        self.refused("exclude each other", "--port", "5", "--socket", "x")
        self.refused("expected native or emulated", "--engine", "vllm")
        self.refused("--set: key 'chunks'", "--set", "chunks=5")
        self.refused("--set: key 'chunk'", "--set", "chunk=many")
        self.refused("KEY=VALUE", "--set", "chunk")
        self.refused("expected at most 2048", "--set", "max_length=4096")
        self.refused("expected 1 to 107", "--socket", "/tmp/" + "x" * 120)
        self.refused("cuda:GPU-none", "--device", "cuda:GPU-none", status=3)
        _, said = self.serve()
        self.refused("Address already in use", "--port", said["url"].rsplit(":", 1)[1])


@unittest.skipUnless(GPU_WORKER.exists(), "evald-worker-cuda-emulated is not built")
class OnAGpu(EndpointCase):
    def setUp(self):
        super().setUp()
        self.environment = {**os.environ, "EVALD_WORKER_CUDA": str(GPU_WORKER), "EVALD_EMULATED_GPUS": f"1:{256 << 20}",
                            "EVALD_DEVICE_LOCKS": str(self.folder / "locks")}
        self.few = [word for setting in ("kv_cache=16MiB", "chunk=64", "concurrency=4", "copy_threads=1")
                    for word in ("--set", setting)]

    def test_answers_as_on_the_processor(self):
        body = {"prompt": "def add(a, b):", "max_tokens": 6, "logprobs": 1, "echo": True}
        _, on_processor = self.serve()
        expected = self.complete(on_processor, **body)["choices"][0]
        for device in ("auto", "cuda:GPU-emulated-0"):
            process, said = self.serve(*self.few, device=device, env=self.environment)
            found = self.complete(said, **body)["choices"][0]
            self.assertEqual(found["text"], expected["text"])
            self.assertEqual(found["logprobs"]["tokens"], expected["logprobs"]["tokens"])
            for one, other in zip(found["logprobs"]["token_logprobs"][1:], expected["logprobs"]["token_logprobs"][1:]):
                self.assertAlmostEqual(one, other, delta=0.05)  # a GPU computes in bf16
            process.terminate()
            process.wait(60)

    def test_a_gpu_is_held_alone(self):
        self.serve(*self.few, device="auto", env=self.environment)
        done = self.evald("endpoint", CHECKPOINT, "--device", "auto", timeout=60, env=self.environment)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("is held by process", done.stderr)


class BadInput(EndpointCase):
    @classmethod
    def setUpClass(cls):
        cls.case = cls("start_one")
        cls.case.setUp()
        cls.process, cls.said = cls.case.serve()

    @classmethod
    def tearDownClass(cls):
        cls.case.doCleanups()

    def start_one(self):
        pass

    def error(self, path, body, status, key=None):
        found, answer = self.ask(self.said, path, body, key)
        self.assertEqual(found, status, answer)
        self.assertEqual(sorted(answer["error"]), ["code", "message", "param", "type"])
        return answer["error"]["message"]

    def tearDown(self):
        status, _ = self.ask(self.said, "/v1/completions", {"prompt": "def", "max_tokens": 1})
        self.assertEqual(status, 200, "the endpoint serves no more")

    def test_bodies_that_are_no_json(self):
        for body in ("", "{", "nonsense", b"\xff\xfe", "[" * 100_000, '{"prompt": "a"} x', "NaN"):
            self.error("/v1/completions", body, 400)
            self.error("/v1/chat/completions", body, 400)
            self.error("/tokenize", body, 400)

    def test_wrong_types_everywhere(self):
        names = ("prompt model max_tokens temperature top_p top_k min_p n seed stop echo logprobs stream stream_options "
                 "best_of suffix logit_bias messages tools").split()
        for name in names:
            for value in (-1, 1e300, "x" * 10_000, [], [[]], [[[]]], {}, {"a": {}}, True, [None]):
                if (name, value) == ("stream", True):
                    continue  # a right value
                status, answer = self.ask(self.said, "/v1/completions", {"prompt": "def", "max_tokens": 1, name: value})
                self.assertIn(status, (200, 400, 404), f"{name}: {value}: {answer}")

    def test_a_prompt_that_is_too_long(self):
        self.assertIn("at most 2048", self.error("/v1/completions", {"prompt": [5] * 2048, "max_tokens": 1}, 400))
        self.assertIn("at most 2048", self.error("/v1/completions", {"prompt": "x " * 500_000}, 400))

    def test_a_huge_body(self):
        connection = self.connect(self.said)
        connection.putrequest("POST", "/v1/completions")
        connection.putheader("Authorization", f"Bearer {self.said['key']}")
        connection.putheader("Content-Length", str(9 << 20))
        connection.endheaders()
        answer = connection.getresponse()
        self.assertEqual(answer.status, 413)
        self.assertEqual(json.loads(answer.read())["error"]["type"], "invalid_request_error")
        connection.close()
        self.assertIn("values", self.error("/v1/completions", '{"prompt": [' + "1," * 3_000_000 + "1]}", 400))

    def test_an_unknown_model(self):
        self.assertIn("'gpt-4' is not served", self.error("/v1/completions", {"prompt": "x", "model": "gpt-4"}, 404))

    def test_wrong_keys(self):
        for key in ("x", "x" * 100_000, "ü" * 40):
            connection = self.connect(self.said)
            connection.putrequest("POST", "/v1/completions")
            connection.putheader("Authorization", b"Bearer " + key.encode())
            connection.putheader("Content-Length", "2")
            connection.endheaders(b"{}")
            self.assertIn(connection.getresponse().status, (401, 431))
            connection.close()

    def test_clients_that_leave(self):
        for _ in range(50):
            connection = self.connect(self.said)
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "def", "max_tokens": 2000, "n": 4}),
                               {"Authorization": f"Bearer {self.said['key']}"})
            connection.close()
        # 200 texts of 2,000 tokens would take minutes
        status, _ = self.ask(self.said, "/v1/completions", {"prompt": "def", "max_tokens": 1})
        self.assertEqual(status, 200)


if __name__ == "__main__":
    unittest.main()
