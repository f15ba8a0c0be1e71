"""The REST interface of a real service: the schema-driven tester, hostile requests, and followers under load.

EVALD_SCHEMATHESIS names a virtual environment with schemathesis (pip install schemathesis); without it
those tests are skipped. EVALD_FULL=1 runs the load for 60 s.
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import threading
import time
import unittest

from evald_case import BINARIES, SOURCE, EvaldCase

VENV = os.environ.get("EVALD_SCHEMATHESIS", "")
FULL = os.environ.get("EVALD_FULL", "0") == "1"
DEMO = BINARIES / "tests" / "api_demo"

CHECKS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "503"]
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "431", "503"]
"""


class Service(EvaldCase):
    def serve(self, **changes):
        config = {"listen": "127.0.0.1:0", "state_dir": str(self.folder / "state"),
                  "output_dir": str(self.folder / "runs"), "cache_dir": str(self.folder / "cache"),
                  "staging": {"root": str(self.folder / "staging")},
                  "workers": {"count": 1, "threads": 1}, "metrics": {"processes": 1}}
        config.update(changes)
        path = self.folder / "serve.yaml"
        path.write_text(json.dumps(config))
        self.process = self.start("serve", path, "--json")
        self.addCleanup(self.stop)
        line = self.process.stdout.readline()
        self.assertTrue(line, "the service does not start")
        self.url = json.loads(line)["url"]
        self.host, port = re.match(r"http://([^:]+):(\d+)", self.url).groups()
        self.port = int(port)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def submit(self, **changes):
        self.make_suite(changes.pop("sums", 40), changes.pop("choice", 20))
        config = {"tasks": ["sums", "choice"], "task_dirs": [str(self.tasks)],
                  "engine": {"name": "emulated", "delay_ms": 2, "concurrency": 4}}
        config.update(changes)
        status, _, body = self.ask("POST", "/v1/runs", json.dumps({"config": config}), Content_Type="application/json")
        self.assertEqual(status, 201, body)
        return json.loads(body)["id"]

    def state(self, run):
        return json.loads(self.ask("GET", f"/v1/runs/{run}")[2])["state"]

    def raw(self, data, seconds=10):
        """What the service says to these bytes."""
        with socket.create_connection((self.host, self.port), timeout=seconds) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = b""
            try:
                while piece := client.recv(65536):
                    answer += piece
            except OSError:
                pass
            return answer

    def assert_lives(self):
        self.assertIsNone(self.process.poll(), "the service ended")
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)


def schemathesis(folder, url, examples):
    (folder / "schemathesis.toml").write_text(CHECKS)
    return subprocess.run(
        [str(pathlib.Path(VENV) / "bin" / "schemathesis"), "--config-file", str(folder / "schemathesis.toml"), "run",
         f"{url}/v1/openapi.json", "--exclude-path-regex", "events$", "--max-examples", str(examples), "--seed", "1"],
        capture_output=True, text=True, timeout=800, cwd=folder)


@unittest.skipUnless(VENV, "EVALD_SCHEMATHESIS names no virtual environment with schemathesis")
class Schema(Service):
    def test_the_service_does_what_its_document_says(self):
        self.serve()
        run = self.submit()
        self.wait_for("the run", lambda: self.state(run) == "done", 120)
        done = schemathesis(self.folder, self.url, 200 if FULL else 20)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
        self.assert_lives()

    def test_so_does_the_interface_over_a_service_in_memory(self):
        demo = subprocess.Popen([str(DEMO)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(demo.wait)
        self.addCleanup(demo.stdin.close)
        self.addCleanup(demo.stdout.close)
        done = schemathesis(self.folder, demo.stdout.readline().strip(), 200 if FULL else 20)
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])


class Hostile(Service):
    def test_hostile_requests_are_refused_and_harm_nothing(self):
        self.serve()
        run = self.submit()
        self.wait_for("the run", lambda: self.state(run) == "done", 120)
        (self.folder / "runs" / "secret.json").write_text("secret")
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
            "a command": post(json.dumps({"config": {"tasks": ["sums"], "task_dirs": [str(self.tasks)], "engine": {
                "name": "openai", "command": "touch /tmp/harm"}}})),
        }.items():
            with self.subTest(what):
                self.assertIn(status, (400, 413, 415, 422), what)
        for path in (f"/v1/runs/{run}/samples/..%2F..%2Fsecret", f"/v1/runs/{run}%2F../results", "/v1/runs/..%2fsecret.json/results",
                     f"/v1/runs/{run}/samples/%2e%2e", "/v1/logs/..%2Fstate.db", "/assets/../../etc/passwd", "/assets/%2e%2e/x",
                     "//etc/passwd", "/v1/runs/%00", "/v1/runs/" + "a" * 10_000, "/v1/runs/%ff"):
            with self.subTest(path):
                status, _, body = self.ask("GET", path)
                self.assertIn(status, (400, 404), path)
                self.assertNotIn(b"secret", body)
        self.assert_lives()

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
        begun = time.monotonic()
        self.assert_lives()
        self.assertLess(time.monotonic() - begun, 2)
        # Unfinished headers are closed after 10 seconds.
        held[0].settimeout(20)
        self.assertEqual(held[0].recv(1), b"")
        for client in held:
            client.close()

    def test_other_pages_cannot_reach_a_service_without_tokens(self):
        self.serve()
        run = self.submit()
        self.assertEqual(self.ask("POST", f"/v1/runs/{run}/cancel", Origin="http://evil.example")[0], 403)
        self.assertEqual(self.ask("GET", "/v1/runs", Host="evil.example")[0], 421)


class Load(Service):
    """200 followers and 1,000 requests a second while an emulated run goes on."""

    def follower(self, counts, place, stop):
        with socket.create_connection((self.host, self.port), timeout=30) as client:
            client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.settimeout(1)
            while not stop.is_set():
                try:
                    data = client.recv(65536)
                except TimeoutError:
                    continue
                if not data:
                    return
                counts[place] += data.count(b"\nid: ") + data.startswith(b"id: ")

    def requests(self, path, rate, seconds, times):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        begin = time.monotonic()
        for i in range(int(rate * seconds)):
            due = begin + i / rate
            time.sleep(max(0.0, due - time.monotonic()))
            sent = time.monotonic()
            connection.request("GET", path)
            response = connection.getresponse()
            response.read()
            times.append((time.monotonic() - sent, response.status))
        connection.close()

    def memory(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", text).group(1)) * 1024

    def test_followers_and_requests(self):
        seconds, rate, followers = (60, 1000, 200) if FULL else (5, 200, 50)
        self.serve()
        run = self.submit(sums=500 * seconds, choice=10, engine={"name": "emulated", "delay_ms": 8, "concurrency": 4})
        self.wait_for("the run", lambda: self.state(run) == "running", 60)
        stop, counts = threading.Event(), [0] * followers
        threads = [threading.Thread(target=self.follower, args=(counts, i, stop)) for i in range(followers)]
        for thread in threads:
            thread.start()
        before, times = self.memory(), []
        paths = [f"/v1/runs/{run}", "/v1/runs?limit=10", "/v1/workers", "/healthz"]
        clients = [threading.Thread(target=self.requests, args=(path, rate / len(paths), seconds, times)) for path in paths]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        after = self.memory()
        stop.set()
        for thread in threads:
            thread.join()
        took = sorted(time_ for time_, _ in times)
        p99 = took[int(len(took) * 0.99)]
        print(f"{len(took)} requests in {seconds} s beside {followers} followers: p50 {took[len(took) // 2] * 1e3:.1f} ms, "
              f"p99 {p99 * 1e3:.1f} ms; memory {before >> 20} to {after >> 20} MiB; {min(counts)} to {max(counts)} events each")
        self.assertEqual({status for _, status in times}, {200})
        self.assertGreater(min(counts), 0)
        self.assertLess(max(counts) - min(counts), max(10, max(counts) // 10))
        self.assertLess(after - before, 64 << 20)
        # Python's own threads share the machine with the service here.
        self.assertLess(p99, 0.5)
        self.assert_lives()


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
        self.process.kill()
        self.process.wait()
        self.stop()
        self.serve(listen=f"127.0.0.1:{port}")
        out, err = watch.communicate(timeout=120)
        self.assertEqual(watch.returncode, 0, err)
        sequences = [json.loads(line)["sequence"] for line in [first, *out.splitlines()]]
        self.assertEqual(sequences, sorted(set(sequences)), "no event is missed or seen twice")


if __name__ == "__main__":
    unittest.main()
