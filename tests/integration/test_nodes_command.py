"""A launcher by programs of the user: nodes are processes on this machine. And the manifests of examples/kubernetes."""
import importlib.util
import json
import os

import subprocess
import unittest

from evald_case import SOURCE
from page_case import free_port
from service_case import ServiceCase

START = """#!/bin/sh
mkdir -p {folder}/jobs
eval "exec setsid \\"$EVALD\\" agent $EVALD_AGENT_ARGUMENTS" </dev/null >"{folder}/jobs/$EVALD_JOB_NAME.log" 2>&1 &
echo $! >"{folder}/jobs/$EVALD_JOB_NAME.pid"
echo $!
"""
STOP = """#!/bin/sh
for file in {folder}/jobs/$EVALD_JOB_NAME.pid; do
  if [ -e "$file" ]; then kill "$(cat "$file")" 2>/dev/null || true; fi
done
"""
LIST = """#!/bin/sh
for file in {folder}/jobs/"$EVALD_JOB_PREFIX"*.pid; do
  [ -e "$file" ] || continue
  pid=$(cat "$file") state=over
  if [ -e /proc/$pid/exe ] 2>/dev/null; then state=running; fi
  printf '{{"job": "%s", "name": "%s", "state": "%s", "node": "here"}}\\n' $pid "$(basename "$file" .pid)" $state
done
"""
LOG = """#!/bin/sh
tail -n 3 {folder}/jobs/$EVALD_JOB_NAME.log
"""
KUBECTL = """#!/bin/sh
echo "$@" >>{folder}/calls
case "$1 $2" in
"create -f") cat >>{folder}/created; echo --- >>{folder}/created ;;
"get jobs") printf 'evald-ab-kubernetes-1 active\\nevald-ab-kubernetes-2 active\\nevald-ab-kubernetes-3 over\\nanother pending\\n' ;;
"get pods") printf 'evald-ab-kubernetes-1 Running node7\\nevald-ab-kubernetes-2 Pending -\\n' ;;
esac
"""


class CommandLauncher(ServiceCase):
    listen = "127.0.0.1:0"

    def program(self, name, text):
        path = self.folder / name
        path.write_text(text.format(folder=self.folder))
        path.chmod(0o755)
        return str(path)

    def serve(self, **launcher):
        programs = {name: [self.program(name, text)] for name, text in
                    {"start": START, "stop": STOP, "list": LIST, "log": LOG}.items()}
        command = {**programs, "nodes": {"max": 2}, "startup": "1s", "worth": "1s", "idle": "2s", "poll": "1s",
                   "agent": ["--devices", "cpu:0,cpu:1", "--metric-processes", "1"], **launcher}
        super().serve(listen=self.listen, agent={"host": "127.0.0.1", "listen": "127.0.0.1:0"}, workers=None,
                      launchers=[{"command": command}])
        self.addCleanup(self.end_agents)

    def end_agents(self):
        for file in self.folder.glob("jobs/*.pid"):
            subprocess.run(["kill", "-9", file.read_text().strip()], capture_output=True)

    def launcher(self):
        return self.call("GET", "/v1/launchers")["launchers"][0]

    def test_nodes_come_and_go(self):
        self.make_suite(200, 40)
        expected = self.undisturbed()
        self.serve()
        run = self.submit(engine={"name": "emulated", "delay_ms": 200, "concurrency": 2})
        self.wait_for("two nodes", lambda: len(self.launcher()["jobs"]) == 2)
        self.check(expected, self.finished(run))
        self.wait_for("the nodes to go back", lambda: not self.launcher()["jobs"])
        for file in self.folder.glob("jobs/*.pid"):
            self.wait_for("the end of the agent", lambda: self.ended(int(file.read_text())))

    def test_the_service_starts_again_while_its_agents_live(self):
        """No agent holds the service's sockets, though a program of the service started it."""
        self.make_suite(200, 40)
        expected = self.undisturbed()
        self.listen = f"127.0.0.1:{free_port()}"
        self.serve()
        run = self.submit(engine={"name": "emulated", "delay_ms": 200, "concurrency": 2})
        self.wait_for("two nodes at work", lambda: [job["state"] for job in self.launcher()["jobs"]] == ["working"] * 2)
        self.restart()
        self.check(expected, self.finished(run))

    def test_a_failing_program_is_shown(self):
        self.make_suite(20, 4)
        self.serve(start=[self.program("broken", "#!/bin/sh\necho 'no quota left' >&2\nexit 1\n")])
        run = self.submit()
        problems = self.wait_for("the problem", lambda: self.launcher()["problems"])
        self.assertIn("no quota left", problems[0])
        self.assertEqual(self.run_of(run)["state"], "preparing")


class Kubernetes(ServiceCase):
    FOLDER = SOURCE / "examples" / "kubernetes"

    def call_program(self, name, **variables):
        folder = self.folder / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "kubectl").write_text(KUBECTL.format(folder=self.folder))
        (folder / "kubectl").chmod(0o755)
        text = (self.FOLDER / "launcher" / name).read_text().replace("/config/", f"{self.folder}/")
        program = folder / name
        program.write_text(text)
        program.chmod(0o755)
        done = subprocess.run([program], capture_output=True, text=True,
                              env={"PATH": f"{folder}:{os.environ['PATH']}", **variables})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_secrets_stand_on_no_command_line(self):
        (self.folder / "agent-job.yaml").write_text("name: $EVALD_JOB_NAME\n")
        said = self.call_program("start", EVALD_JOB_NAME="evald-ab-kubernetes-1", EVALD_JOIN='{"token": "it\'s secret"}',
                                 EVALD_AGENT_ARGUMENTS="--devices 'cpu:0'")
        self.assertEqual(said, "evald-ab-kubernetes-1\n")
        self.assertNotIn("secret\"", (self.folder / "calls").read_text())
        created = (self.folder / "created").read_text()
        self.assertIn("""EVALD_JOIN: '{"token": "it''s secret"}'""", created)
        self.assertIn("EVALD_AGENT_ARGUMENTS: '--devices ''cpu:0'''", created)
        self.assertIn("name: evald-ab-kubernetes-1", created)

    def test_the_list_is_read(self):
        lines = [json.loads(line) for line in self.call_program("list", EVALD_JOB_PREFIX="evald-ab-").splitlines()]
        self.assertEqual([(job["name"][-1], job["state"], job["node"]) for job in lines],
                         [("1", "running", "node7"), ("2", "pending", ""), ("3", "over", "")])

    @unittest.skipUnless(importlib.util.find_spec("kubernetes_validate"), "kubernetes-validate is not installed")
    def test_manifests_have_the_published_form(self):
        import kubernetes_validate
        import yaml
        manifests = list(yaml.safe_load_all((self.FOLDER / "evald.yaml").read_text()))
        config = next(m for m in manifests if m["kind"] == "ConfigMap")
        manifests.append(yaml.safe_load(config["data"]["agent-job.yaml"].replace("$EVALD_JOB_NAME", "evald-1")))
        for manifest in manifests:
            with self.subTest(manifest["kind"]):
                kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)

    def test_the_services_configuration_is_read(self):
        text = (self.FOLDER / "evald.yaml").read_text()
        block = text[text.index("  serve.yaml: |\n") + len("  serve.yaml: |\n"):text.index("  agent-job.yaml: |")]
        path = self.folder / "serve.yaml"
        path.write_text("".join(line[4:] for line in block.splitlines(keepends=True)))
        done = self.evald("serve", path, "--dry-run", "--set", f"state_dir={self.folder}/state")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("launcher 'kubernetes' would submit this for each of at most 8 nodes", done.stdout)


if __name__ == "__main__":
    unittest.main()
