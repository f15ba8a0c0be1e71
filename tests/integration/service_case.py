"""A running service for integration tests, spoken to over plain HTTP."""
import http.client
import json
import re
import signal
import socket
import subprocess

from evald_case import EvaldCase


class Service(EvaldCase):
    def serve(self, **changes):
        config = {"listen": "127.0.0.1:0", "state_dir": str(self.folder / "state"),
                  "output_dir": str(self.folder / "runs"), "cache_dir": str(self.folder / "cache"),
                  "staging": {"root": str(self.folder / "staging")},
                  "workers": {"count": 1, "threads": 1}, "metrics": {"processes": 1}}
        config.update(changes)
        config = {key: value for key, value in config.items() if value is not None}
        path = self.folder / "serve.yaml"
        path.write_text(json.dumps(config))
        self.process = self.start("serve", path, "--json")
        self.addCleanup(self.stop)
        line = self.process.stdout.readline()
        self.assertTrue(line, "the service does not start")
        self.url = json.loads(line)["url"]
        self.host, port = re.match(r"https?://([^:]+):(\d+)", self.url).groups()
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
        connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        try:
            try:
                connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was refused before all of it was sent: the answer is there
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
