"""The REST interface agrees with docs/openapi.json: schemathesis sends requests and checks each answer.

scripts/install-packages --with-schema-tester puts schemathesis into build/schemathesis. EVALD_SCHEMATHESIS
names another virtual environment. EVALD_FULL=1 sends ten times as many requests.
"""
import os
import pathlib
import subprocess
import unittest

from evald_case import BINARIES, SOURCE
from service_case import Service

VENV = pathlib.Path(os.environ.get("EVALD_SCHEMATHESIS", SOURCE / "build" / "schemathesis"))
TESTER = VENV / "bin" / "schemathesis"
EXAMPLES = 200 if os.environ.get("EVALD_FULL", "0") == "1" else 12
DEMO = BINARIES / "tests" / "api_demo"
MISSING = "" if TESTER.exists() else f"no {TESTER}: scripts/install-packages --with-schema-tester installs it"

# The answers allowed for requests that fit the document and for those that do not. A request whose form is right may
# still be refused (no such run, a wrong state, a path that does not exist); that is no fault. A run that was just
# created has its files only when it is done.
CHECKS = """
[checks]
positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "503"]
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "431", "503"]

# It wants an upgrade; and a range must lie within the file.
[[operations]]
include-path-regex = "^/v1/agents/"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "416", "422", "426", "503"]
checks.negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "416", "422", "426", "431", "503"]

[[operations]]
include-path-regex = "/(results|timeline|verdict|report|samples/.*)$"
checks.ensure_resource_availability.enabled = false
"""


# The service in memory takes each eval.yaml as it is.
UNREAD_CONFIGS = """
[[operations]]
include-path-regex = "^/v1/(runs|watches)$"
checks.negative_data_rejection.enabled = false
"""


@unittest.skipIf(MISSING, MISSING)
class Schema(Service):
    def ask_everything(self, url, phases, more_checks=""):
        (self.folder / "schemathesis.toml").write_text(CHECKS + more_checks)
        done = subprocess.run(
            [TESTER, "--config-file", self.folder / "schemathesis.toml", "run", f"{url}/v1/openapi.json",
             "--exclude-path-regex", "events$", "--max-examples", str(EXAMPLES), "--phases", phases, "--seed", "1",
             "--no-color"],
            capture_output=True, text=True, timeout=800, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:] + done.stderr[-2000:])
        print(done.stdout[done.stdout.rfind("SUMMARY"):], flush=True)

    def test_of_a_real_service(self):
        self.serve()
        run = self.submit()
        self.wait_for("the run", lambda: self.state(run) == "done", 120)
        self.ask_everything(self.url, "examples,fuzzing,stateful")
        self.assert_lives()

    def test_of_a_service_in_memory(self):
        demo = subprocess.Popen([DEMO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(demo.wait)
        self.addCleanup(demo.stdin.close)
        self.addCleanup(demo.stdout.close)
        self.ask_everything(demo.stdout.readline().strip(), "examples,coverage,fuzzing,stateful", UNREAD_CONFIGS)


if __name__ == "__main__":
    unittest.main(verbosity=2)
