"""Nodes of a real Slurm on which something is wrong: each fault is told in one line, loses nothing and hangs nothing."""
import datetime
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import unittest

from evald_case import BINARIES, QUICKSTART, scores
from slurm_cluster import SlurmCluster
from test_nodes import NodesCase

CLOCK = BINARIES / "tests" / "jumping_clock.so"
HANGS = "#!/bin/sh\nexec sleep 300\n"


class NodesFaultsCase(NodesCase):
    ENGINE = {"name": "emulated", "delay_ms": 200, "concurrency": 2}
    SLURM = {"agent": ["--devices", "cpu:0,cpu:1", "--metric-processes", "1"], "poll": "1s",
             "sbatch": ["--gpus-per-node=2"]}

    def setUp(self):
        super().setUp()
        self.make_suite(120, 24)
        self.addCleanup(self.kill)  # before its jobs end: it would submit others

    def program(self, path, text):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def on_nodes(self, **cases):
        """The program that stands for evald on the nodes. `cases` holds a shell command for a node's name, or `all`;
        the command runs before the agent in mounts of the agent's own."""
        branches = "".join(f"{'*' if node == 'all' else node}) {command}\n;;\n" for node, command in cases.items())
        inner = self.program(self.folder / "within", f'#!/bin/sh\ncase "$SLURMD_NODENAME" in\n{branches}esac\nexec {BINARIES}/evald "$@"\n')
        return self.program(self.folder / "evald-on-a-node", f'#!/bin/sh\nexec unshare -m --propagation private {inner} "$@"\n')

    def tmpfs(self, name, size):
        folder = self.folder / name
        folder.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", folder])
        return folder

    @staticmethod
    def fill(folder):
        """Returns the files that leave no byte free."""
        files = []
        for size in (65536, 4096, 1):
            files.append(folder / f"filler{size}")
            file = os.open(files[-1], os.O_WRONLY | os.O_CREAT)
            try:
                while True:
                    os.write(file, b"x" * size)
            except OSError:
                pass
            os.close(file)
        return files

    def make_checkpoint(self):
        """Like no other: agents of other tests stage in the same shared memory."""
        checkpoint = self.folder / "checkpoints" / "step"
        shutil.copytree(QUICKSTART / "checkpoints" / "step-01200", checkpoint)
        (checkpoint / "generation_config.json").write_text(json.dumps({"of": str(self.folder)}))
        self.program(self.folder / "other" / "x", "")
        shutil.copytree(checkpoint, self.folder / "other" / "step")
        config = self.folder / "other" / "step" / "generation_config.json"
        config.write_text(json.dumps({"temperature": 0.5}))
        return checkpoint

    def undisturbed(self, **changes):
        document = self.run_done(self.write_config(**{"engine": {"name": "emulated"}, **changes}, output={"dir": "plain", "name": "p"}))
        return scores(document), self.samples(self.folder / "plain" / "p")

    def shown(self, *arguments):
        done = self.evald(*arguments, env={**os.environ, "EVALD_SERVER": self.url})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def problem(self, pattern, seconds=60):
        """Waits for a problem of the launcher. `evald status` and `evald nodes` show the same line."""
        found = lambda: next((p for p in self.launcher()["problems"] if re.search(pattern, p)), None)
        problem = self.wait_for(f"the problem '{pattern}'", found, seconds)
        self.assertNotIn("\n", problem)
        for command in (("status", "--once"), ("nodes",)):
            self.assertRegex(" ".join(self.shown(*command).split()), pattern)
        return problem

    def agent_logs(self):
        """By the name of the node."""
        found = {}
        for job in self.cluster.jobs().values():
            log = self.folder / "state" / "agents" / "logs" / f"{job['name']}.log"
            if job["node"] and log.exists():
                found[job["node"]] = found.get(job["node"], "") + log.read_text(errors="replace")
        return found

    def nodes_of_jobs(self):
        """The nodes of this service's jobs, by host. Slurm still knows jobs of other tests."""
        mine = {log.stem for log in (self.folder / "state" / "agents" / "logs").iterdir()}
        return {"slurm-" + job["name"].rsplit("-", 1)[1]: job["node"] for job in self.cluster.jobs().values() if job["name"] in mine}

    def generating(self, run):
        """The hosts that generated something for a run."""
        timeline = json.loads((pathlib.Path(run["directory"]) / "timeline.json").read_text())["traceEvents"]
        rows = {e["tid"]: e["args"]["name"] for e in timeline if e["ph"] == "M" and e["name"] == "thread_name"}
        spans = [rows[e["tid"]] for e in timeline if e["ph"] == "X" and e["name"] == "generate"]
        return {re.search(r"slurm-\d+", row)[0] for row in spans}

    def environment(self, **more):
        return {**os.environ, **self.cluster.environment, **more}

    # --- checkpoints


@unittest.skipIf(SlurmCluster.missing(), SlurmCluster.missing())
class SlurmctldAway(NodesFaultsCase):
    """On a cluster of its own: a slurmctld that was killed may give a job's number a second time."""

    def test_slurmctld_is_away_for_long(self):
        expected = self.undisturbed()
        blocker = [self.cluster.sbatch("sleep 600", "--exclusive", "--nodelist=n3", name="blocker")]
        self.cluster.wait_for_job(blocker[0], "RUNNING")
        self.serve({"retry": "1s", "agent_within": "8s"})
        run = self.submit(engine={**self.ENGINE, "delay_ms": 400})
        self.wait_for("two nodes, and a job that waits", lambda: sorted(
            job["state"] for job in self.launcher()["jobs"]) == ["waiting", "working", "working"], 60)
        self.cluster.kill_slurmctld()
        began = time.time()
        problem = self.problem(r"no answer since [-0-9]+ [:0-9]+ UTC: squeue fails: .*[Uu]nable to contact slurm controller")
        since = datetime.datetime.strptime(re.search(r"since (\S+ \S+) UTC", problem)[1] + " +0000", "%Y-%m-%d %H:%M:%S %z")
        self.assertLess(abs(since.timestamp() - began), 10)
        self.check(expected, self.finished(run))
        self.wait_for("nodes that are to go back", lambda: [job["state"] for job in self.launcher()["jobs"]].count("ending") >= 2)
        second = self.submit(key="second", engine=self.ENGINE)
        time.sleep(4)  # several questions
        self.assertEqual([p for p in self.launcher()["problems"] if "no answer" not in p], [], "one line")
        self.assertIn(problem, self.launcher()["problems"], "the same time, though it was asked again and again")
        self.cluster.start_slurmctld()
        self.wait_for("an answer", lambda: not self.launcher()["problems"], 30)
        self.check(expected, self.finished(second))
        self.wait_for("the nodes to go back", lambda: not self.launcher()["jobs"], 60)
        names = [job["name"] for job in self.cluster.jobs().values()]
        self.assertEqual(len(names), len(set(names)), names)


@unittest.skipIf(SlurmCluster.missing(), SlurmCluster.missing())
class NodesFaults(NodesFaultsCase):
    def test_a_checkpoint_that_only_some_nodes_see(self):
        checkpoint = self.make_checkpoint()
        expected = self.undisturbed(checkpoint=str(checkpoint))
        program = self.on_nodes(n1=f"mount -t tmpfs none {checkpoint.parent}",
                                n2=f"mount --bind {self.folder}/other {checkpoint.parent}")
        said = {"n1": "checkpoint .* fetched: ", "n2": "holds another checkpoint here; it is fetched", "n3": "connected"}
        for node, words in said.items():
            with self.subTest(node):
                self.serve({"nodes": {"max": 1}, "evald": program, "sbatch": ["--gpus-per-node=2", f"--nodelist={node}"],
                            "agent": [*self.SLURM["agent"], "--log-level", "info"]})
                run = self.submit(key=node, checkpoint=str(checkpoint), engine={**self.ENGINE, "delay_ms": 20})
                self.check(expected, self.finished(run))
                self.assertRegex(self.agent_logs()[node], words)
                self.wait_for("the node to go back", lambda: not self.launcher()["jobs"], 30)
                self.kill()
        self.assertNotIn("fetched", self.agent_logs()["n3"], "it sees the checkpoint itself")
        self.serve()
        refused = self.submit(status=422, checkpoint=str(self.folder / "checkpoints" / "of-n3"))
        self.assertRegex(refused["detail"], "checkpoints/of-n3 is not a folder; expected a checkpoint")

    def test_a_node_without_room_for_the_checkpoint(self):
        checkpoint = self.make_checkpoint()
        expected = self.undisturbed(checkpoint=str(checkpoint))
        program = self.on_nodes(n1="mount -t tmpfs -o size=1M none /dev/shm")
        self.serve({"nodes": {"max": 2}, "retry": "1s", "evald": program})
        run = self.submit(checkpoint=str(checkpoint), engine=self.ENGINE)
        why = r"job \d+ \('\S+'\) on n1: it cannot load the checkpoint: /dev/shm/evald-0: staging needs 4.2 MiB .*, but .* has .* free"
        self.assertIn("make it larger", self.problem(why))
        self.check(expected, self.finished(run))
        jobs = self.nodes_of_jobs()
        self.assertLessEqual(list(jobs.values()).count("n1"), 2, "twice, and then the node is excluded")
        self.assertEqual({jobs[host] for host in self.generating(run)} - {"n2", "n3"}, set())

    def test_no_node_has_room_for_the_checkpoint(self):
        checkpoint = self.make_checkpoint()
        program = self.on_nodes(all="mount -t tmpfs -o size=1M none /dev/shm")
        config = self.write_config(launcher={"slurm": {**self.SLURM, "nodes": 2, "evald": program, "retry": "1s"}}, workers=None,
                                   checkpoint=str(checkpoint), engine=self.ENGINE)
        done = self.evald("run", config, "--quiet", env=self.environment(), timeout=90)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertRegex(done.stderr, r"error: .*worker slurm-\d\S*: /dev/shm/evald-0: staging needs 4.2 MiB .*; make it larger")
        self.cluster.wait_for("the nodes to go back", lambda: not self.mine(), 20)

    # --- full file systems

    def test_a_full_disk_of_the_service(self):
        expected = self.undisturbed()
        runs = self.tmpfs("the-runs", "20M")
        self.serve(output_dir=str(runs))
        run = self.submit(engine={**self.ENGINE, "delay_ms": 50}, workers={"max_attempts": 20})
        self.wait_for("a node at work", lambda: [job["state"] for job in self.launcher()["jobs"]].count("working"))
        files = self.fill(runs)
        said = r"trial \d+ failed: https://[0-9.:]+: .*/the-runs/.*No space left on device; free some space"
        self.wait_for("the reason", lambda: any(re.search(said, p) for p in self.run_of(run)["problems"]), 60)
        self.assertIn("No space left on device", self.shown("status", run["id"]))
        for file in files:
            file.unlink()
        over = self.finished(run)
        if over["state"] == "incomplete":  # all attempts of a document fell into this time
            self.call("POST", f"/v1/runs/{run['id']}/resume")
            self.wait_for("it goes on", lambda: self.run_of(run)["state"] != "incomplete")
            over = self.finished(run)
        self.check(expected, over)

    def test_full_disks_of_logs(self):
        """The agents' logs, which all nodes share, and the agents' own folders on one node."""
        expected = self.undisturbed()
        logs = self.tmpfs("the-logs", "64k")
        self.fill(logs)
        folder = f"/tmp/evald-{os.getuid()}-agents"
        program = self.on_nodes(n1=f"mkdir -p {folder}; mount -t tmpfs -o size=2M,mode=700 none {folder}; "
                                   f"(sleep 4; head -c 2M /dev/zero >{folder}/filler) 2>/dev/null &")
        self.serve({"logs": str(logs), "retry": "1s", "evald": program})
        run = self.submit(engine={**self.ENGINE, "delay_ms": 1500})
        self.problem(r"on n1: .*No space left on device; free some space")
        self.check(expected, self.finished(run))

    # --- Slurm

    def test_why_a_job_does_not_start(self):
        blocker = self.cluster.sbatch("sleep 600", "--exclusive", "--nodes=3", name="blocker")
        self.cluster.wait_for_job(blocker, "RUNNING")
        self.serve()
        run = self.submit(engine=self.ENGINE)
        self.wait_for("a job", self.mine)
        reason = lambda: [job["reason"] for job in self.launcher()["jobs"]]
        self.wait_for("Slurm's reason", lambda: reason() == ["Resources"], 30)
        self.cluster.run("scontrol", "hold", self.mine()[0]["id"])
        self.wait_for("Slurm's reason", lambda: "Held" in str(reason()), 30)
        self.assertRegex(self.shown("status", "--once"), r"1 job waits \(JobHeld\w+\)")
        self.assertRegex(self.shown("nodes"), r"waiting +– .*JobHeld")
        self.wait_for("the run's words", lambda: re.search(
            r"it waits for a device: 1 node of launcher 'slurm', in its queue \(JobHeld\w+\)", str(self.run_of(run)["problems"])), 30)

    def hanging(self, program):
        """An environment in which a program of Slurm's never answers."""
        folder = self.folder / f"hanging-{program}"
        self.program(folder / program, HANGS)
        return self.environment(PATH=f"{folder}:{self.cluster.environment['PATH']}")

    def test_ctrl_c_does_not_wait_for_slurm(self):
        for program, times in (("sbatch", 1), ("squeue", 1), ("scancel", 2), ("scancel", 3)):
            with self.subTest(program, times=times):
                config = self.write_config(launcher={"slurm": {**self.SLURM, "nodes": 2}}, workers=None,
                                           output={"dir": f"runs-{program}-{times}"}, engine={**self.ENGINE, "delay_ms": 2000})
                process = self.start("run", config, "--quiet", env=self.hanging(program))
                called = lambda: self.children(process.pid, "sleep")
                if program == "scancel":
                    self.wait_for("two nodes", lambda: len(self.agents()) == 2, 60)
                    time.sleep(2)
                else:
                    self.wait_for("the call", called, 60)
                begin = time.monotonic()
                for _ in range(times):
                    process.send_signal(signal.SIGINT)
                    time.sleep(0.3)
                out, err = process.communicate(timeout=60)
                self.assertLess(time.monotonic() - begin, 15 if program == "scancel" and times < 3 else 6)
                self.assertEqual(process.returncode, 3, err)
                names = re.search(r"launcher 'slurm' has not answered: jobs? '.*`scancel --name=(\S+)` ends", err)
                self.assertTrue(names, err)
                self.cluster.scancel(f"--name={names[1]}")
                self.cluster.wait_for("the jobs to end", lambda: not self.mine(), 30)

    # --- hosts

    def test_a_node_with_another_version(self):
        version = self.evald("--version").stdout.split()[-1]
        other = version[:-1] + ("9" if version[-1] != "9" else "8")
        folder = self.folder / "of-another-version"
        self.program(folder / "evald", "")
        (folder / "evald").write_bytes((BINARIES / "evald").read_bytes().replace(version.encode(), other.encode()))
        for name in ("evald-worker", "evald-metric", "evald-prepare"):
            (folder / name).symlink_to(BINARIES / name)
        self.serve({"retry": "1s", "evald": str(folder / "evald"), "sbatch": ["--gpus-per-node=2", "--nodelist=n1"]})
        self.submit(engine=self.ENGINE)
        words = rf"job \d+ \('\S+'\) on n1: its agent is refused: it is evald {other}, and this is {version}; both must be the same"
        self.problem(words)
        self.problem("node n1 is not asked for: " + words)
        time.sleep(3)
        self.assertEqual(list(self.nodes_of_jobs().values()), ["n1", "n1"], "no third job")

    @unittest.skipUnless(CLOCK.exists(), "the layer jumping_clock is not built")
    def test_clocks_of_nodes_are_apart(self):
        expected = self.undisturbed()
        shift = lambda hours: ("SLURM_JOB_START_TIME=$(date +%s); SLURM_JOB_END_TIME=$((SLURM_JOB_START_TIME + 3600)); export "
                               f"SLURM_JOB_START_TIME SLURM_JOB_END_TIME LD_PRELOAD={CLOCK} EVALD_CLOCK_AHEAD={hours * 3600}")
        self.serve({"time": "1h", "evald": self.on_nodes(n1=shift(5), n2=shift(-5), n3=shift(-24 * 3)), "agent_within": "6s"})
        run = self.submit(engine={**self.ENGINE, "delay_ms": 500})
        hosts = lambda: {job["node"]: job for job in self.launcher()["jobs"] if job["state"] in ("working", "idle")}
        self.wait_for("two nodes at work", lambda: {"n1", "n2"} <= set(hosts()), 60)
        ends = {host["id"]: host["ends_at"] for host in self.call("GET", "/v1/hosts")["hosts"]}
        for node in ("n1", "n2"):
            left = datetime.datetime.fromisoformat(ends[hosts()[node]["host"]]).timestamp() - time.time()
            self.assertTrue(3400 < left < 3700, f"{node}: {left}")
        self.problem("on n3: .*certificate is not yet valid; this host's clock says .*: compare it with the service's", 60)
        self.check(expected, self.finished(run))


if __name__ == "__main__":
    unittest.main()
