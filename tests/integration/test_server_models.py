"""A server that is given (base_url) may get another model at any time, and several servers may answer behind one address. A
run has one model."""
import collections
import http.server
import json
import threading
import unittest

from service_case import Service

TEXT = "an answer"


class Server:
    """Answers as OpenAI's completions do. `name_of(caller)` names the model of a reply."""

    def __init__(self, name):
        self.name_of = lambda caller: name
        self.listed = name
        self.answered = collections.Counter()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def reply(self, answer):
                body = json.dumps(answer).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self):
                self.reply({"data": [{"id": owner.listed, "max_model_len": 512}]} if "models" in self.path else {})

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    model = owner.name_of(self.client_address)
                except ConnectionError:
                    self.close_connection = True
                    return
                owner.answered[model] += 1
                answer = {"choices": [{"index": 0, "text": TEXT, "finish_reason": "stop"}]}
                self.reply(answer if model is None else {"model": model, **answer})

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_address[1]}"


class Models(Service):
    def settings(self, server, **changes):
        self.make_suite(40, 0)
        return {"tasks": ["sums"], "engine": {"name": "openai", "base_url": server.url}, "workers": {"count": 1}, **changes}

    def test_each_run_of_a_service_looks_at_the_server_anew(self):
        server = Server("ckpt-100")
        self.serve()
        for name in ("ckpt-100", "ckpt-200"):
            server.listed, server.name_of = name, lambda caller, name=name: name
            self.check_run(server, name, name)
        server.listed, server.name_of = "ckpt-300", lambda caller: None  # replies that name no model
        self.check_run(server, "ckpt-300", None)

    def check_run(self, server, listed, model):
        run = self.submit(**self.settings(server))
        self.wait_for("the end", lambda: self.state(run) in ("done", "incomplete", "failed"), 60)
        self.assertEqual(self.state(run), "done")
        engine = json.loads(self.ask("GET", f"/v1/runs/{run}/results")[2])["evald"]["engine"]
        self.assertEqual((engine["version"], engine.get("model")), (listed, model))

    def test_workers_that_reach_different_models_end_the_run(self):
        server = Server("prod")
        first = []

        def by_caller(caller):
            first.append(caller)
            return "a" if caller == first[0] else "b"

        server.name_of = by_caller  # an engine keeps its connection while it has one request at a time
        settings = self.settings(server, workers={"count": 2, "threads": 1})
        settings["engine"]["concurrency"] = 1
        done = self.evald("run", self.write_config(**settings), "--quiet", timeout=60)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertRegex(done.stderr, "the server's replies name the model '[ab]' on worker w[01], and '[ab]' on worker")

    def test_a_resumed_run_keeps_its_model(self):
        server = Server("prod")
        calls = []

        def until_it_fails(caller):
            calls.append(caller)
            if len(calls) > 25:
                raise ConnectionError("the server is gone")
            return "snapshot-1"

        server.name_of = until_it_fails
        settings = self.settings(server, output={"dir": "runs", "name": "r"})
        settings["engine"].update(model="prod", retries=0, concurrency=1)
        settings["workers"]["max_attempts"] = 1
        config = self.write_config(**settings)
        first = self.evald("run", config, "--quiet", timeout=60)
        self.assertEqual(first.returncode, 3, first.stderr)
        server.name_of = lambda caller: "snapshot-2"
        second = self.evald("run", config, "--quiet", "--resume", "r", timeout=60)
        self.assertEqual(second.returncode, 2, second.stderr)
        self.assertIn("this run was begun with another engine", second.stderr)
        server.name_of = lambda caller: "snapshot-1"
        third = self.evald("run", config, "--quiet", "--resume", "r", timeout=60)
        self.assertEqual(third.returncode, 0, third.stderr)


if __name__ == "__main__":
    unittest.main()
