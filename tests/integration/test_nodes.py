"""Launchers of a service, with a real Slurm: nodes come when work is open, and go back."""
import contextlib
import json
import os
import pathlib
import shutil
import signal
import tempfile
import time
import unittest

from evald_case import scores
from service_case import ServiceCase
from slurm_cluster import SlurmCluster

# Nodes for short work, soon asked about: the defaults suit work of minutes.
QUICK = {"startup": "1s", "worth": "1s", "idle": "2s", "poll": "1s", "agent_within": "20s",
         "agent": ["--devices", "cpu:0,cpu:1", "--metric-processes", "1"]}


class NodesCase(ServiceCase):
    """A service with a launcher for a real Slurm of three nodes."""
    SLURM_SETTINGS = ""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = pathlib.Path(tempfile.mkdtemp(prefix="evald-test-"))
        cls.addClassCleanup(shutil.rmtree, folder, ignore_errors=True)
        cls.cluster = SlurmCluster(folder / "slurm", settings=cls.SLURM_SETTINGS)
        cls.addClassCleanup(cls.cluster.close)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.end_jobs)
        self.make_suite(300, 60)

    def end_jobs(self):
        self.cluster.scancel("--user=root")
        self.cluster.wait_for("the end of all jobs", lambda: not self.cluster.run("squeue", "--noheader").strip())

    def serve(self, slurm=None, environment=None, **changes):
        launcher = {**QUICK, "nodes": {"min": 0, "max": 3}, "sbatch": ["--gpus-per-node=2"], **(slurm or {})}
        super().serve(environment={**os.environ, **self.cluster.environment, **(environment or {})},
                      agent={"host": "127.0.0.1", "listen": "127.0.0.1:0"}, workers=None,
                      launchers=[{"slurm": {key: v for key, v in launcher.items() if v is not None}}], **changes)

    def agents(self):
        """Process ids of the agents that jobs of this cluster run."""
        found, mine = [], f"SLURM_CONF={self.cluster.environment['SLURM_CONF']}".encode()
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().split(b"\0")
                variables = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            launched = words[1:2] == [b"agent"] and b"--socket" not in words  # not that of the service's own host
            if words[0].endswith(b"/evald") and launched and mine in variables:
                found.append(int(folder.name))
        return found

    def launcher(self):
        return self.call("GET", "/v1/launchers")["launchers"][0]

    def mine(self):
        """Slurm's jobs of this service that are not over."""
        return [job for job in self.cluster.jobs().values()
                if job["name"].startswith("evald-") and job["state"] in ("PENDING", "RUNNING", "COMPLETING")]


@unittest.skipIf(SlurmCluster.missing(), SlurmCluster.missing())
class Nodes(NodesCase):
    def test_nodes_come_with_work_and_go_back(self):
        expected = self.undisturbed()
        self.serve()
        self.assertEqual(self.launcher()["jobs"], [])
        run = self.submit(engine={"name": "emulated", "delay_ms": 300, "concurrency": 2})
        self.wait_for("three nodes", lambda: len(self.mine()) == 3, 60)
        hosts = self.wait_for("their agents", lambda: len(
            found := [h for h in self.call("GET", "/v1/hosts")["hosts"]
                      if h["id"].startswith("slurm-") and h["state"] == "connected"]) == 3 and found)
        self.assertEqual({len(h["devices"]) for h in hosts}, {2})
        self.wait_for("their nodes", lambda: {job["node"] for job in self.launcher()["jobs"]} == {"n1", "n2", "n3"})
        self.check(expected, self.finished(run))
        self.wait_for("the nodes to go back", lambda: not self.mine(), 60)
        self.wait_for("the launcher to know", lambda: not self.launcher()["jobs"])
        self.assertEqual(self.launcher()["problems"], [])
        self.assertGreater(self.launcher()["node_hours"], 0)

    def test_runs_that_wait_their_turn_ask_for_nodes(self):
        """One run is work for one node, several are work for three, although one at a time is at work."""
        expected = self.undisturbed()
        self.serve(slurm={"worth": "25s"}, active_runs=1)
        engine = {"name": "emulated", "delay_ms": 300, "concurrency": 2}
        first = self.submit(engine=engine)
        self.wait_for("its plan", lambda: self.run_of(first)["progress"].get("generated"), 60)
        self.assertEqual(len(self.mine()), 1)
        more = [self.submit(engine=engine, key=f"more-{i}") for i in range(4)]
        self.wait_for("three nodes", lambda: len(self.mine()) == 3, 30)
        self.assertEqual(self.run_of(more[0])["state"], "queued")
        for run in more[1:]:
            self.call("POST", f"/v1/runs/{run['id']}/cancel")
        for run in (first, more[0]):
            self.check(expected, self.finished(run))

    def test_no_trial_is_killed_by_a_time_limit(self):
        """Slurm's shortest limit is a minute. One lost attempt would leave documents out of a run's results."""
        expected = self.undisturbed()
        runs = 20 if os.environ.get("EVALD_FULL", "0") == "1" else 2
        self.serve(slurm={"time": "60s", "warning": "10s", "nodes": {"max": 2}}, active_runs=2)
        submitted = [self.submit(engine={"name": "emulated", "delay_ms": 700, "concurrency": 2}, metrics={"max_attempts": 1},
                                 workers={"max_attempts": 1}) for _ in range(runs)]
        for run in submitted:
            self.check(expected, self.finished(run, 120 * runs))
        self.assertGreater(len(self.cluster.jobs()), 2, "limits in the middle of the work")

    def test_killed_at_each_step_of_a_job(self):
        expected = self.undisturbed()
        for point in ("launch.recorded", "launch.submitted", "launch.stopped"):
            with self.subTest(point):
                self.serve(environment={"EVALD_FAIL_POINT": f"evald/{point}:1"})
                run = self.submit(key=point, engine={"name": "emulated", "delay_ms": 20, "concurrency": 4})
                self.assertEqual(self.daemon.wait(timeout=120), -signal.SIGKILL)
                self.daemon.communicate()
                self.serve()
                self.check(expected, self.finished(run))
                self.wait_for("the nodes to go back", lambda: not self.launcher()["jobs"], 200)
                self.wait_for("Slurm to have no job", lambda: not self.mine())
                self.kill()
        names = [job["name"] for job in self.cluster.jobs().values()]
        self.assertEqual(len(names), len(set(names)), names)

    # --- runs in the foreground

    SLURM = {"agent": ["--devices", "cpu:0,cpu:1", "--metric-processes", "1"], "poll": "1s",
             "sbatch": ["--gpus-per-node=2"]}

    def folders_of_agents(self):
        """The agents' own folders, by the locks that they hold there."""
        folders = set()
        for pid in self.agents():
            for link in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
                with contextlib.suppress(OSError):
                    file = pathlib.Path(os.readlink(link))
                    if file.name == "agent.lock":
                        folders.add(file.parent)
        return folders

    def test_a_run_of_its_own(self):
        expected = self.undisturbed()
        config = self.write_config(launcher={"slurm": {**self.SLURM, "nodes": 3}},
                                   engine={"name": "emulated", "delay_ms": 200, "concurrency": 2}, workers=None)
        process = self.start("run", config, "--json", env={**os.environ, **self.cluster.environment})
        self.wait_for("three nodes at once", lambda: len(
            [job for job in self.mine() if job["state"] == "RUNNING"]) == 3)
        folders = self.wait_for("their agents", lambda: len(found := self.folders_of_agents()) == 3 and found)
        out, err = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(scores(json.loads(out)), expected[0])
        self.assertEqual(self.samples(self.folder / "runs" / "last"), expected[1])
        self.cluster.wait_for("the nodes to go back", lambda: not self.mine(), 20)
        self.assertEqual([folder for folder in folders if folder.exists()], [], "agents end in order")

    def test_inside_a_job(self):
        expected = self.undisturbed()
        config = self.write_config(engine={"name": "emulated", "delay_ms": 200, "concurrency": 2},
                                   workers={"count": 2, "threads": 1})
        job = self.cluster.sbatch(f"exec {self.binaries}/evald run {config} --json --quiet >{self.folder}/out 2>{self.folder}/err",
                                  "--nodes=3", "--ntasks-per-node=1", "--gpus-per-node=2", "--export=ALL")
        done = self.cluster.wait_for_job(job, "COMPLETED", "FAILED", "CANCELLED", seconds=120)
        errors = (self.folder / "err").read_text()
        self.assertEqual(done["state"], "COMPLETED", errors)
        self.assertEqual(scores(json.loads((self.folder / "out").read_text())), expected[0])

    def generated(self, folder="runs/*"):
        return sum(len(path.read_bytes().splitlines()) for path in self.folder.glob(f"{folder}/generations/**/*.jsonl*"))

    def resumed(self, config, expected):
        done = self.evald("run", config, "--json", "--quiet", "--resume", env={**os.environ, **self.cluster.environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(scores(json.loads(done.stdout)), expected[0])
        self.cluster.wait_for("the nodes to go back", lambda: not self.mine(), 20)

    def test_a_run_that_is_stopped_or_killed_is_resumed(self):
        expected = self.undisturbed()
        for number, status in ((signal.SIGINT, 3), (signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(number):
                config = self.write_config(launcher={"slurm": {**self.SLURM, "nodes": 2}}, output={"dir": f"runs{number}"},
                                           engine={"name": "emulated", "delay_ms": 400, "concurrency": 2}, workers=None)
                process = self.start("run", config, "--quiet", env={**os.environ, **self.cluster.environment})
                self.wait_for("some answers", lambda: self.generated(f"runs{number}/*") > 20)
                process.send_signal(number)
                out, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, status, err)
                if number == signal.SIGINT:
                    self.assertFalse([job for job in self.mine() if job["state"] != "COMPLETING"])
                self.resumed(config, expected)

    def test_a_job_that_is_cancelled_is_resumed(self):
        expected = self.undisturbed()
        config = self.write_config(engine={"name": "emulated", "delay_ms": 400, "concurrency": 2},
                                   workers={"count": 2, "threads": 1})
        script = f"exec {self.binaries}/evald run {config} --json --quiet --resume >{self.folder}/out 2>{self.folder}/err"
        arguments = ("--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=2", "--export=ALL")
        job = self.cluster.sbatch(script.replace(" --resume", ""), *arguments)
        self.wait_for("some answers", lambda: self.generated() > 20)
        self.cluster.scancel(job)
        self.cluster.wait_for_job(job, "CANCELLED")
        self.wait_for("its agents to end", lambda: not self.agents())
        job = self.cluster.sbatch(script, *arguments)
        done = self.cluster.wait_for_job(job, "COMPLETED", "FAILED", "CANCELLED", seconds=120)
        self.assertEqual(done["state"], "COMPLETED", (self.folder / "err").read_text())
        self.assertEqual(scores(json.loads((self.folder / "out").read_text())), expected[0])

    def test_a_run_that_gets_no_node(self):
        wrong = {"a partition": ({"partition": "gpus"}, "invalid partition"),
                 "arguments of the agent": ({"agent": ["--threads", "none"]}, "--threads"),
                 "its GPUs": ({"gpus_per_node": 2, "sbatch": []}, "it has 0 of 2 gpus"),
                 "an account": ({"sbatch": ["--reservation=nobodys"]}, "reservation")}
        for name, (settings, words) in wrong.items():
            with self.subTest(name):
                config = self.write_config(launcher={"slurm": {**self.SLURM, "nodes": 2, **settings}}, workers=None)
                done = self.evald("run", config, "--quiet", env={**os.environ, **self.cluster.environment})
                self.assertEqual(done.returncode, 3, done.stderr)
                self.assertIn(words, done.stderr.lower())
                self.assertFalse(self.mine())

    # --- a node that fails

    def shown(self, *arguments):
        """Standard output of a command that asks the service."""
        done = self.evald(*arguments, env={**os.environ, "EVALD_SERVER": self.url})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_a_node_that_fails_is_excluded_until_it_is_released(self):
        broken = self.folder / "n1-is-broken"
        broken.touch()
        program = self.folder / "evald-on-a-node"
        program.write_text(f"""#!/bin/sh
if [ "$SLURMD_NODENAME" = n1 ] && [ -e {broken} ]; then echo 'no driver here' >&2; exit 3; fi
exec {self.binaries}/evald "$@"
""")
        program.chmod(0o755)
        self.serve({"retry": "1s", "evald": str(program)})
        self.addCleanup(self.kill)  # before its jobs end: it would submit others
        self.submit(engine={"name": "emulated", "delay_ms": 1500, "concurrency": 2})
        excluded = self.wait_for("n1 to be excluded", lambda: self.launcher()["excluded"], 60)
        self.assertEqual([one["node"] for one in excluded], ["n1"])
        self.assertIn("its agent has not come", excluded[0]["why"])
        why = lambda: self.launcher()["excluded"][0]["why"]
        self.wait_for("the end of its log", lambda: "no driver here" in why(), 20)
        # Two nodes work. The third job waits, since no other node is left.
        self.wait_for("two nodes", lambda: sorted(job["node"] or "" for job in self.launcher()["jobs"]) == ["", "n2", "n3"], 60)
        waiting = lambda: next(job for job in self.launcher()["jobs"] if job["node"] is None)
        self.wait_for("a reason", lambda: waiting()["reason"])
        text = " ".join(self.shown("status", "--once").split())
        self.assertIn("Launcher slurm: 2 of at most 3 nodes", text)
        self.assertIn(f"1 job waits ({waiting()['reason']})", text)
        self.assertIn("Launcher slurm: node n1 is not asked for: job ", text)
        table = self.shown("nodes")
        self.assertRegex(table, r"working +n[23] +since \d\d:\d\d +.*slurm-\d")
        self.assertRegex(table, r"waiting +– +.*slurm-\d")
        self.assertIn("node n1 is not asked for", table)
        self.assertEqual(json.loads(self.shown("nodes", "--json"))["launchers"][0]["excluded"][0]["node"], "n1")
        refused = self.evald("nodes", "release", "n2", "--server", self.url)
        self.assertEqual((refused.returncode, "no launcher excludes node 'n2'" in refused.stderr), (2, True), refused.stderr)
        # A service that is killed has it on record.
        said = self.launcher()["excluded"]
        self.kill()
        self.serve({"retry": "1s", "evald": str(program)})
        self.assertEqual(self.launcher()["excluded"], said)
        # Released, and mended, the node is used by the job that waits.
        job = waiting()["job"]
        broken.unlink()
        self.assertIn("slurm asks for node n1 again", self.shown("nodes", "release", "n1"))
        self.assertEqual(self.launcher()["excluded"], [])
        self.wait_for("an agent on n1", lambda: any((one["job"], one["node"], one["state"]) == (job, "n1", "working")
                                                    for one in self.launcher()["jobs"]), 60)
        self.assertEqual(self.launcher()["problems"], [])


if __name__ == "__main__":
    unittest.main()
