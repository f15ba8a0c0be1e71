"""Running services for integration tests."""
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request

from evald_case import OVER, EvaldCase, scores


def answer_to(url, method, path, body=None, timeout=60, context=None, **headers):
    """Status and text of the answer to a request whose body is JSON. `context` verifies the service's certificate."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json", **headers}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout, context=context) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


class ServiceCase(EvaldCase):
    """A service that is asked in JSON."""
    https = None  # what verifies the service's certificate
    WORKERS = 2
    LOG = ("--log-level", "info")
    ENGINE = {"name": "emulated", "delay_ms": 10, "concurrency": 4}

    def setUp(self):
        super().setUp()
        self.daemon = None
        self.addCleanup(self.kill)

    def kill(self):
        if self.daemon and self.daemon.poll() is None:
            self.daemon.kill()
        if self.daemon:
            self.daemon.communicate()

    def stop(self):
        """Ends the service as an operator does."""
        if self.daemon is None or self.daemon.stdout.closed:
            return
        if self.daemon.poll() is None:
            self.daemon.send_signal(signal.SIGTERM)
        try:
            self.daemon.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()

    def agent(self):
        """The process id of the agent of the service's own host, whose children the others are."""
        host = lambda: next((h for h in self.call("GET", "/v1/hosts")["hosts"] if h["id"] == "local"), None)
        return self.wait_for("the agent", lambda: (h := host()) and h["state"] == "connected" and h["pid"])

    @staticmethod
    def ended(pid):
        """Whether the process has ended, though whoever adopted it may not have waited for it yet."""
        try:
            return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1].startswith("Z")
        except OSError:
            return True

    def worker_pids(self):
        """Of every worker of the service's host, once each has said hello."""
        shown = lambda: tuple(w["pid"] for w in self.call("GET", "/v1/workers")["workers"])
        return self.wait_for("every worker", lambda: (pids := shown()) and all(pids) and pids)

    def restart(self, **changes):
        self.daemon.kill()
        self.daemon.communicate()
        self.serve(**changes)

    def serve(self, environment=None, **changes):
        config = {"listen": "127.0.0.1:0", "state_dir": "state", "cache_dir": "cache",
                  "workers": {"count": self.WORKERS, "threads": 1}, "metrics": {"processes": self.WORKERS},
                  "staging": {"root": str(self.folder / "staging")}, **changes}
        path = self.folder / "serve.yaml"
        path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))
        self.daemon = self.start("serve", path, "--json", *self.LOG, env=environment)
        line = self.daemon.stdout.readline()
        self.assertTrue(line, "the service does not start")
        self.url = json.loads(line)["url"]

    def call(self, method, path, body=None, status=200, **headers):
        if self.https:
            headers = {"Authorization": "Bearer the-token-of-an-admin", **headers}
        found, text = answer_to(self.url, method, path, body, context=self.https, **headers)
        self.assertEqual(found, status, text)
        return json.loads(text)

    def submit(self, status=201, key=None, priority=0, user="", **changes):
        config = json.loads(self.write_config(**changes).read_text())
        headers = {"Idempotency-Key": key} if key else {}
        body = {"config": config, "base": str(self.folder), "priority": priority, "user": user}
        return self.call("POST", "/v1/runs", body, status, **headers)

    def run_of(self, run):
        return self.call("GET", f"/v1/runs/{run['id']}")

    def finished(self, run, seconds=120):
        return self.wait_for("the run's end", lambda: (now := self.run_of(run))["state"] in OVER and now, seconds)

    def undisturbed(self):
        document = self.run_done(self.write_config(engine={"name": "emulated"}, output={"dir": "plain", "name": "p"}))
        return scores(document), self.samples(self.folder / "plain" / "p")

    def check(self, expected, run):
        self.assertEqual(run["state"], "done", run)
        folder = pathlib.Path(run["directory"])
        self.assertEqual(scores(json.loads((folder / "results.json").read_text())), expected[0])
        self.assertEqual(self.samples(folder), expected[1])


class Service(ServiceCase):
    """A service that is asked over plain HTTP, byte by byte if need be."""
    WORKERS = 1
    LOG = ()  # nobody reads what is said

    def serve(self, **changes):
        super().serve(**{"output_dir": str(self.folder / "runs"), **changes})
        self.addCleanup(self.stop)
        self.host, port = re.match(r"https?://([^:]+):(\d+)", self.url).groups()
        self.port = int(port)

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            try:
                connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            except (BrokenPipeError, ConnectionResetError):
                pass  # the service refused the request before all of it was sent: its answer is there
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

    def raw(self, data, seconds=60):
        """The service's answer to these bytes."""
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
        self.assertIsNone(self.daemon.poll(), "the service ended")
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)
