"""A client generated from the served OpenAPI document calls every route of a real service.

scripts/install-packages --with-schema-tester puts openapi-python-client into build/schemathesis. EVALD_SCHEMATHESIS names
another virtual environment that has it.
"""
import json
import os
import pathlib
import subprocess
import unittest

from evald_case import SOURCE
from service_case import Service

VENV = pathlib.Path(os.environ.get("EVALD_SCHEMATHESIS", SOURCE / "build" / "schemathesis")) / "bin"
GENERATOR = VENV / "openapi-python-client"
MISSING = "" if GENERATOR.exists() else f"no {GENERATOR}: scripts/install-packages --with-schema-tester installs it"
METHODS = ("get", "put", "post", "patch", "delete")


@unittest.skipIf(MISSING, MISSING)
class GeneratedClient(Service):
    WORKERS = 2

    def test_calls_every_route(self):
        self.make_suite(40, 20)
        self.serve(staging={"root": str(self.folder / "staging"), "keep": "1GiB"})  # so that a list of what is staged has an entry
        document = json.loads(self.ask("GET", "/v1/openapi.json")[2])
        path = self.folder / "openapi.json"
        path.write_text(json.dumps(document))
        environment = {**os.environ, "PATH": f"{VENV}:{os.environ['PATH']}"}
        done = subprocess.run([GENERATOR, "generate", "--path", path, "--output-path", self.folder / "evald_client", "--meta",
                               "none", "--fail-on-warning"],
                              capture_output=True, text=True, timeout=120, cwd=self.folder, env=environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertNotIn("warning", (done.stdout + done.stderr).lower())
        calls = subprocess.run([VENV / "python", "-B", SOURCE / "tests/integration/openapi_calls.py", self.folder / "evald_client",
                                self.url, self.folder], capture_output=True, text=True, timeout=120)
        self.assertEqual(calls.returncode, 0, calls.stdout + calls.stderr)
        operations = [item[method]["operationId"] for item in document["paths"].values() for method in METHODS if method in item]
        self.assertEqual(json.loads(calls.stdout), sorted(operations))


if __name__ == "__main__":
    unittest.main(verbosity=2)
