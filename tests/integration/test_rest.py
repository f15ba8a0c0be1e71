"""The REST interface of a real service: hostile requests, followers under load, and the commands that use it.

EVALD_FULL=1 runs the load for 60 s.
"""
import contextlib
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import unittest

from evald_case import BINARIES
from service_case import Service

FULL = os.environ.get("EVALD_FULL", "0") == "1"


class Hostile(Service):
    def test_hostile_requests_are_refused_and_harm_nothing(self):
        self.serve()
        run = self.submit()
        self.wait_for("the run", lambda: self.state(run) == "done", 120)
        (self.folder / "runs" / "secret.json").write_text("kept from all")
        deep = b"[" * 100_000
        bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 10)}]\n" for i in range(10))
        post = lambda body, kind="application/json": self.ask("POST", "/v1/runs", body, Content_Type=kind)[0]
        for what, status in {
            "deep JSON": post(b'{"config":' + deep),
            "deep text in JSON": post(json.dumps({"yaml": "[" * 100_000})),
            "deep YAML": post(b"tasks: " + deep, "application/yaml"),
            "deep YAML blocks": post("\n".join(" " * i + "a:" for i in range(1000)), "application/yaml"),
            "a YAML bomb": post(bomb, "application/yaml"),
            "a YAML bomb in a known key": post(bomb + "tasks: *k\n", "application/yaml"),
            "a large body": post(b"a" * (2 << 20), "application/yaml"),
            "bytes that are no text": post(bytes(range(256)), "application/yaml"),
            "an unknown media type": post("<a/>", "text/xml"),
            "a path that is a device": post(json.dumps({"config": {"checkpoint": "/dev/zero", "tasks": ["sums"]}})),
            "a path with a NUL": post(json.dumps({"config": {"checkpoint": "/a\0b", "tasks": ["sums"]}})),
            "deep lists in an override": post(json.dumps({"yaml": "tasks: [sums]", "set": ["engine.x=" + "[" * 4000]})),
            "a bomb in an override": post(json.dumps({"yaml": "tasks: [sums]", "set": ["name=&a [*a, *a]"]})),
            "a name that leaves the folder": post(json.dumps({"config": {"tasks": ["sums"], "output": {"name": "../x"}}})),
            "a name that moves the cursor": post(json.dumps({"config": {"name": "\x1b[2J", "tasks": ["sums"], "task_dirs": [
                str(self.tasks)], "engine": {"name": "emulated"}}})),
            "an endless name": post(json.dumps({"config": {"name": "x" * 100_000, "tasks": ["sums"], "task_dirs": [
                str(self.tasks)], "engine": {"name": "emulated"}}})),
            "a task that is a path": post(json.dumps({"config": {"tasks": ["../../etc/passwd"], "engine": {"name": "emulated"}}})),
            "a tag that runs a program": post("tasks: !!python/object/apply:os.system [id]", "application/yaml"),
            "a compressed body": self.ask("POST", "/v1/runs", b"\x1f\x8b\x08\x00aaaa", Content_Type="application/json",
                                          Content_Encoding="gzip")[0],
            "a command": post(json.dumps({"config": {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {
                "name": "openai", "command": "touch /tmp/harm"}}})),
        }.items():
            with self.subTest(what):
                self.assertIn(status, (400, 413, 415, 422), what)
        for path in (f"/v1/runs/{run}/samples/..%2F..%2Fsecret", f"/v1/runs/{run}%2F../results", "/v1/runs/..%2fsecret.json/results",
                     f"/v1/runs/{run}/samples/%2e%2e", "/v1/logs/..%2Fstate.db", "/assets/../../etc/passwd", "/assets/%2e%2e/x",
                     "//etc/passwd", "/v1/watches/..%2f..", "/v1/logs/..%2f..%2fserve.yaml", "/v1/runs/%00", "/v1/runs/" + "a" * 10_000, "/v1/runs/%ff"):
            with self.subTest(path):
                status, _, body = self.ask("GET", path)
                self.assertIn(status, (400, 404), path)
                self.assertNotIn(b"kept from all", body)
        self.assert_lives()

    def test_a_submission_reaches_only_what_the_configuration_allows(self):
        inside, outside = self.tasks, self.folder / "outside"
        outside.mkdir()
        (inside / "link").symlink_to(outside)
        self.make_suite(4, 4)
        self.serve(roots=[str(inside)], engine_urls=["http://127.0.0.1:9"])
        openai = lambda **changes: {"name": "openai", "concurrency": 1, **changes}
        for what, config in {
            "a checkpoint outside": {"checkpoint": str(outside)},
            "a checkpoint behind a link": {"checkpoint": str(inside / "link")},
            "a checkpoint behind dots": {"checkpoint": f"{inside}/../outside"},
            "task files outside": {"task_dirs": [str(outside)]},
            "data outside": {"data_dir": "/etc"},
            "answers outside": {"engine": {"name": "replay", "generations": str(outside)}},
            "a baseline outside": {"gates": {"baseline": str(outside), "rules": [
                {"task": "sums", "metric": "exact_match", "max_drop": 0.1}]}},
            "a server that is not listed": {"engine": openai(base_url="http://169.254.169.254/latest")},
            "one that begins like a listed one": {"engine": openai(base_url="http://127.0.0.1:90")},
            "one whose user looks like a listed one": {"engine": openai(base_url="http://127.0.0.1:9@evil.example")},
            "one behind dots": {"engine": openai(base_url="http://127.0.0.1:9/../admin")},
            "an engine that starts a server": {"engine": {"name": "vllm"}, "checkpoint": str(inside)},
            "a program": {"engine": openai(command=["/bin/sh"])},
            "a program's environment": {"engine": openai(base_url="http://127.0.0.1:9", environment={"LD_PRELOAD": "/tmp/x.so"})},
        }.items():
            with self.subTest(what):
                body = json.dumps({"config": {"tasks": ["sums"], "task_dirs": [str(inside)], "engine": {"name": "emulated"}, **config}})
                status, _, answer = self.ask("POST", "/v1/runs", body, Content_Type="application/json")
                self.assertEqual(status, 422, answer)
                self.assertRegex(answer, b"outside the folders|does not call|does not start ")
        watch = {"checkpoints": str(outside), "config": {"tasks": ["sums"], "task_dirs": [str(inside)], "engine": {"name": "emulated"}}}
        status, _, answer = self.ask("POST", "/v1/watches", json.dumps(watch), Content_Type="application/json")
        self.assertEqual(status, 422)
        self.assertIn(b"outside the folders", answer)
        self.assertEqual(json.loads(self.ask("GET", "/v1/runs")[2])["runs"], [])

    def test_no_submission_names_a_file_that_an_engine_writes(self):
        """Only the worker's environment gives paths for tests. No setting may give one, not even in a stored
        submission."""
        self.make_suite(4, 4)
        self.serve()
        target = self.folder / "authorized_keys"
        for setting in ({"journal": str(target)}, {"times": "/etc"}, {"journal": None}):
            engine = {"name": "emulated", **setting}
            config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": engine}
            for path, body in (("/v1/runs", {"config": config}), ("/v1/watches", {"config": config, "checkpoints": str(self.folder)})):
                status, _, answer = self.ask("POST", path, json.dumps(body), Content_Type="application/json")
                self.assertEqual(status, 422, answer)
                self.assertIn(b"unknown key", answer)
        self.assertFalse(target.exists())
        # A submission that an earlier version accepted is checked again before anything of it is done.
        config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated"}}
        status, _, answer = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
        self.assertEqual(status, 201, answer)
        run = json.loads(answer)["id"]
        self.wait_for("its end", lambda: json.loads(self.ask("GET", f"/v1/runs/{run}")[2])["state"] == "done")
        self.stop()
        config["engine"]["journal"] = str(target)
        stored = json.dumps({"yaml": json.dumps(config), "base": "/", "set": [], "user": "", "priority": 0, "idempotency_key": ""})
        with contextlib.closing(sqlite3.connect(self.folder / "state" / "state.db")) as database, database:
            database.execute("UPDATE runs SET state = 'queued', submission = ? WHERE run = ?", (stored, run))
        record = next((self.folder / "runs").glob("*/run.json"))
        record.write_text(json.dumps({**json.loads(record.read_text()), "state": "incomplete"}))
        self.serve()
        shown = self.wait_for("its end", lambda: (r := json.loads(self.ask("GET", f"/v1/runs/{run}")[2]))["state"] == "failed" and r)
        self.assertIn("unknown key", shown["problems"][0])
        self.assertFalse(target.exists())

    def test_a_task_named_as_a_path_touches_nothing(self):
        self.make_suite(4, 4)
        self.serve()
        others = self.folder / "runs" / "others"
        others.mkdir(parents=True)
        for number, name in enumerate(("../../x", "../others/generations", "/etc/x", "..", "a\nforged line of a log", "\x1b[2J")):
            text = (self.tasks / "sums.yaml").read_text().replace("task: sums", "task: " + json.dumps(name))
            (self.tasks / f"hostile{number}.yaml").write_text(text)
            config = {"tasks": [name], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated"}}
            status, _, answer = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
            self.assertEqual(status, 422, answer)
            self.assertIn(b"task", answer)
        # The name of the run does not leave the folder either.
        for name in ("..", "../x", "a/b", ".hidden", "a\nb"):
            config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated"}, "output": {"name": name}}
            status, _, answer = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
            self.assertEqual(status, 422, answer)
            self.assertIn(b"output.name", answer)
        self.assertEqual(sorted(path.name for path in (self.folder / "runs").iterdir()), ["others"])
        self.assertEqual(list(others.iterdir()), [])
        # The other files of the folder are still there.
        config = {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "emulated"}}
        status, _, answer = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
        self.assertEqual(status, 201, answer)

    def test_a_key_goes_to_its_own_server_alone(self):
        self.make_suite(4, 4)
        listed = ["http://127.0.0.1:9", "http://127.0.0.1:7"]
        self.serve(engine_urls=listed, engine_keys={listed[0]: "EVALD_TEST_KEY"})
        config = lambda **engine: {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {"name": "openai", **engine}}
        for what, engine in {
            "another variable": {"base_url": listed[0], "api_key_env": "HOME"},
            "another server": {"base_url": listed[1], "api_key_env": "EVALD_TEST_KEY"},
            "a path that makes another server": {"base_url": listed[0], "api_key_env": "EVALD_TEST_KEY", "health_path": "@evil.example/"},
        }.items():
            with self.subTest(what):
                body = json.dumps({"config": config(**engine)})
                status, _, answer = self.ask("POST", "/v1/runs", body, Content_Type="application/json")
                self.assertEqual(status, 422, answer)
                self.assertRegex(answer, b"only the server's own|a path on the server")

    def test_the_services_keys_go_to_no_server_that_it_does_not_know(self):
        self.make_suite(4, 4)
        self.serve()
        engine = {"name": "openai", "base_url": "http://127.0.0.1:9", "api_key_env": "HOME"}
        body = json.dumps({"config": {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": engine}})
        status, _, answer = self.ask("POST", "/v1/runs", body, Content_Type="application/json")
        self.assertEqual(status, 422)
        self.assertIn(b"engine_urls", answer)

    def test_broken_http_is_refused(self):
        self.serve()
        for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0" * 10_000,
                     b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 100_000 + b"\r\n\r\n",
                     b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"):
            with self.subTest(data[:40]):
                answer = self.raw(data)
                self.assertRegex(answer[:12], rb"^HTTP/1.1 4\d\d|^HTTP/1.1 505|^$")
        self.assert_lives()

    def test_requests_that_never_end_do_not_hold_others_up(self):
        self.serve()
        held = []
        for i in range(200):
            client = socket.create_connection((self.host, self.port), timeout=20)
            client.sendall(b"POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
                           if i % 2 else b"GET / HTTP/1.1\r\nA: b\r\n")
            held.append(client)
        self.assert_lives()  # although none of the connections has ended: an unfinished body has a minute
        # A connection with an unfinished header is closed after 10 seconds.
        held[0].settimeout(60)
        self.assertEqual(held[0].recv(1), b"")
        for client in held:
            client.close()

    def test_other_pages_cannot_reach_a_service_without_tokens(self):
        self.serve()
        run = self.submit()
        self.assertEqual(self.ask("POST", f"/v1/runs/{run}/cancel", Origin="http://evil.example")[0], 403)
        self.assertEqual(self.ask("GET", "/v1/runs", Host="evil.example")[0], 421)

    @unittest.skipUnless(os.geteuid() == 0, "only root can call as another user")
    def test_other_users_cannot_reach_a_service_without_tokens(self):
        self.serve()
        code = ("import encodings.idna, http.client, os, sys; os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[3])); "
                "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=60); "
                "c.request('GET', sys.argv[2]); r = c.getresponse(); print(r.status, r.read().decode())")

        def ask(user, path):
            return subprocess.run([sys.executable, "-c", code, str(self.port), path, str(user)], cwd="/",
                                  capture_output=True, text=True, timeout=60, check=True).stdout
        for path in ("/v1/runs", "/", "/healthz", "/readyz", "/metrics", "/v1/openapi.json"):
            self.assertTrue(ask(0, path).startswith("200 "), path)
            answer = ask(65534, path)
            self.assertTrue(answer.startswith("403 "), answer)
            problem = json.loads(answer[4:])
            self.assertEqual(problem["type"], "urn:evald:problem:other-user")
            self.assertIn("uid 65534", problem["detail"])
            self.assertIn("tokens", problem["remedy"])


class Load(Service):
    """Followers and many requests during an emulated run. `evald-bench serve` measures how fast the answers come.
    Here nothing may be lost, and memory may not grow."""

    def follow(self, ids):
        """A follower on this connection: a thread that reads the ids of its events until the run is done."""
        client = socket.create_connection((self.host, self.port), timeout=120)
        client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = client.recv(65536)
        self.assertIn(b" 200 ", head)

        def read():
            text = head
            with client:
                while b'"state":"done"' not in text and (data := client.recv(65536)):
                    text += data
            ids.extend(int(found) for found in re.findall(rb"\nid: (\d+)\n", text))
        thread = threading.Thread(target=read)
        thread.start()
        return thread

    def requests(self, path, rate, seconds, statuses):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        begin = time.monotonic()
        for i in range(int(rate * seconds)):
            time.sleep(max(0.0, begin + i / rate - time.monotonic()))
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
        connection.close()

    def memory(self):
        text = pathlib.Path(f"/proc/{self.daemon.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) * 1024

    def test_followers_and_requests(self):
        seconds, rate, followers = (60, 1000, 200) if FULL else (4, 200, 50)
        self.serve()
        # The run takes longer than the requests, so all followers are there before it ends.
        run = self.submit(sums=500 * seconds + 2000, choice=10, engine={"name": "emulated", "delay_ms": 8, "concurrency": 4})
        self.wait_for("the run", lambda: self.state(run) == "running", 60)
        seen = [[] for _ in range(followers)]
        threads = [self.follow(ids) for ids in seen]
        before, statuses = self.memory(), []
        paths = [f"/v1/runs/{run}", "/v1/runs?limit=10", "/v1/workers", "/healthz"]
        clients = [threading.Thread(target=self.requests, args=(path, rate / len(paths), seconds, statuses)) for path in paths]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        after = self.memory()
        for thread in threads:
            thread.join()
        print(f"{len(statuses)} requests beside {followers} followers; memory {before >> 20} to {after >> 20} MiB; "
              f"{len(seen[0])} events each", flush=True)
        self.assertEqual(set(statuses), {200})
        for ids in seen:
            self.assertEqual(ids, list(range(ids[0], ids[-1] + 1)), "an event is missing, or came twice")
        self.assertLess(after - before, 64 << 20)
        self.assert_lives()


class Bench(unittest.TestCase):
    def test_the_benchmark_loses_nothing(self):
        done = subprocess.run([BINARIES / "evald-bench", "serve", "--quick", "--json"], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = json.loads(done.stdout)
        self.assertEqual(found["workload"], "serve")
        self.assertGreater(found["value"], 0)
        details = found["details"]
        self.assertEqual((details["failed"], details["followers_lost"], list(details["statuses"])), (0, 0, ["200"]))
        self.assertEqual(details["requests"], 540)
        self.assertGreater(details["run_samples_per_second"], 0)


class Webhooks(Service):
    def test_are_signed_and_tried_again(self):
        got, secret = [], "a secret of the hook"

        class Hook(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.append((self.headers["Evald-Delivery"], self.headers["Evald-Signature"], self.headers["Evald-Event"], body))
                self.send_response(503 if len(got) == 1 else 204)
                self.end_headers()

            def log_message(self, *_):
                pass
        hook = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        threading.Thread(target=hook.serve_forever, daemon=True).start()
        self.addCleanup(hook.server_close)
        self.addCleanup(hook.shutdown)
        os.environ["EVALD_TEST_HOOK_SECRET"] = secret
        self.addCleanup(os.environ.pop, "EVALD_TEST_HOOK_SECRET")
        self.serve(webhooks=[{"url": f"http://127.0.0.1:{hook.server_port}/hook", "secret_env": "EVALD_TEST_HOOK_SECRET",
                              "events": ["run.state"]}])
        # The service notices within 200 ms that a run is active. A shorter run would go from preparing to done.
        run = self.submit(engine={"name": "emulated", "delay_ms": 20, "concurrency": 4})
        self.wait_for("the last event", lambda: any(b'"state":"done"' in body for _, _, _, body in got), 120)
        self.assertEqual(got[0][0], got[1][0], "the first was refused and comes again under its id")
        for _, signature, event, body in got:
            fields = dict(part.split("=", 1) for part in signature.split(","))
            expected = hmac.new(secret.encode(), fields["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
            self.assertEqual(fields["v1"], expected)
            self.assertEqual(event, "run.state")
        states = [json.loads(body)["data"]["state"] for _, _, _, body in got[1:]]
        self.assertEqual(states, ["queued", "preparing", "running", "done"])
        self.assertEqual({json.loads(body)["run"] for _, _, _, body in got}, {run})
        # The service counts a delivery once it has the answer.
        counted = b'evald_webhook_deliveries_total{result="delivered"} 4'
        self.wait_for("the count", lambda: counted in self.ask("GET", "/metrics")[2])


class Secure(Service):
    """TLS and tokens, as needed beyond loopback."""

    def serve_securely(self, **changes):
        pem, key, tokens = self.folder / "cert.pem", self.folder / "key.pem", self.folder / "tokens"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                        key, "-out", pem, "-days", "2", "-subj", "/CN=evald", "-addext", "subjectAltName=IP:127.0.0.1"],
                       check=True, capture_output=True)
        self.token = {role: f"the-token-of-{role}-{os.urandom(8).hex()}" for role in ("read", "submit", "admin")}
        tokens.write_text("".join(f"{role} {role} sha256:{hashlib.sha256(token.encode()).hexdigest()}\n"
                                  for role, token in self.token.items()))
        tokens.chmod(0o600)
        self.serve(tls={"certificate": str(pem), "key": str(key)}, tokens=str(tokens), **changes)
        self.ca = pem

    def by(self, role, *arguments):
        return self.evald(*arguments, "--server", self.url, "--ca-file", self.ca, env={**os.environ, "EVALD_TOKEN": self.token[role]})

    def test_commands_over_tls_with_tokens(self):
        self.serve_securely(listen="0.0.0.0:0")
        self.url = self.url.replace("0.0.0.0", "127.0.0.1")
        self.make_suite(10, 10)
        eval_yaml = self.write_config(task_dirs=["tasks"], cache_dir=None, state_dir=None, output=None, workers=None, metrics=None)
        done = self.by("read", "submit", eval_yaml)
        self.assertEqual(done.returncode, 2)
        self.assertIn("needs the role submit", done.stderr)
        done = self.by("submit", "submit", eval_yaml, "--wait", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        run = json.loads(done.stdout)
        self.assertEqual(run["user"], "submit")
        self.assertEqual(self.by("read", "status", run["id"]).returncode, 0)
        self.assertIn("sums", self.by("read", "results", run["id"]).stdout)
        self.assertIn("needs the role admin", self.by("submit", "logs").stderr)
        self.assertEqual(self.by("admin", "logs").returncode, 0)
        folder = self.folder / "checkpoints"
        folder.mkdir()
        done = self.by("submit", "watch", "--checkpoints", folder, eval_yaml, "--detach")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.by("read", "watch", "--remove", done.stdout.strip()).returncode, 2)
        self.assertEqual(self.by("admin", "watch", "--remove", done.stdout.strip()).returncode, 0)
        self.assertIn("EVALD_TOKEN", self.evald("status", "--server", self.url, "--ca-file", self.ca).stderr)
        self.assertIn("certificate", self.evald("status", "--server", self.url).stderr)

    def test_beyond_loopback_it_starts_only_with_both(self):
        for changes in ({}, {"tokens": "tokens"}):
            path = self.folder / "serve.yaml"
            token = hashlib.sha256(b"a-token-of-some-length").hexdigest()
            (self.folder / "tokens").write_text(f"a admin sha256:{token}\n")
            (self.folder / "tokens").chmod(0o600)
            path.write_text(json.dumps({"listen": "0.0.0.0:0", "state_dir": "state", **changes}))
            done = self.evald("serve", path)
            self.assertEqual(done.returncode, 2)
            self.assertIn("needs TLS", done.stderr)


class Commands(Service):
    def test_submit_watch_results_cancel(self):
        self.serve()
        self.make_suite(20, 10)
        eval_yaml = self.write_config(task_dirs=["tasks"], cache_dir=None, state_dir=None, output=None, workers=None,
                                      metrics=None)
        server = {"env": {**os.environ, "EVALD_SERVER": self.url}}
        run = self.evald("submit", eval_yaml, "--key", "k", **server)
        self.assertEqual(run.returncode, 0, run.stderr)
        again = self.evald("submit", eval_yaml, "--key", "k", "--json", **server)
        self.assertEqual(json.loads(again.stdout)["id"], run.stdout.strip())
        name = run.stdout.strip()
        watched = self.evald("watch", name, "--json", **server)
        self.assertEqual(watched.returncode, 0, watched.stderr)
        events = [json.loads(line) for line in watched.stdout.splitlines()]
        self.assertEqual(events[-1]["data"]["state"], "done")
        self.assertEqual([e["sequence"] for e in events], sorted({e["sequence"] for e in events}))
        results = self.evald("results", name, "--json", **server)
        self.assertIn("sums", json.loads(results.stdout)["results"])
        self.assertIn("sums", self.evald("results", name, **server).stdout)
        self.assertIn(name, self.evald("status", **server).stdout)
        self.assertEqual(json.loads(self.evald("status", name, "--json", **server).stdout)["state"], "done")
        self.assertEqual(self.evald("cancel", name, **server).returncode, 2)
        self.assertEqual(self.evald("logs", "--json", **server).returncode, 0)
        self.assertEqual(self.evald("watch", "none", **server).returncode, 2)

    def test_nobody_there_is_said(self):
        done = self.evald("status", "--server", "http://127.0.0.1:1")
        self.assertEqual(done.returncode, 3)
        self.assertIn("evald serve", done.stderr)
        done = self.evald("status", "--server", "http://example.org", env={**os.environ, "EVALD_TOKEN": "x" * 20})
        self.assertEqual(done.returncode, 2)
        self.assertIn("unencrypted", done.stderr)

    def test_a_watch_survives_a_restart_of_the_service(self):
        self.serve()
        port = self.port
        run = self.submit(sums=400, engine={"name": "emulated", "delay_ms": 20, "concurrency": 4})
        watch = self.start("watch", run, "--json", "--server", self.url)
        first = watch.stdout.readline()
        self.assertTrue(first)
        self.daemon.kill()
        self.daemon.wait()
        self.stop()
        self.serve(listen=f"127.0.0.1:{port}")
        out, err = watch.communicate(timeout=120)
        self.assertEqual(watch.returncode, 0, err)
        sequences = [json.loads(line)["sequence"] for line in [first, *out.splitlines()]]
        self.assertEqual(sequences, sorted(set(sequences)), "no event is missed or seen twice")


if __name__ == "__main__":
    unittest.main()
