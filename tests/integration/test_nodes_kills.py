"""A service whose nodes come from a real Slurm, while anything is killed at random: no score changes, no job is left
behind, none is submitted twice. EVALD_FULL=1 kills for five minutes."""
import collections
import os
import random
import signal
import time
import unittest

from evald_case import OVER
from slurm_cluster import SlurmCluster
from test_nodes import NodesCase

SECONDS = 300 if os.environ.get("EVALD_FULL", "0") == "1" else 45
SEED = int(os.environ.get("EVALD_TEST_SEED", "0")) or random.randrange(1, 10**6)
SETTINGS = "MinJobAge=7200\n"  # each job stays visible to the end of the test


@unittest.skipIf(SlurmCluster.missing(), SlurmCluster.missing())
class Kills(NodesCase):
    SLURM_SETTINGS = SETTINGS

    def serve(self, **changes):
        super().serve(slurm={"retry": "2s"}, **changes)

    def kill_job(self):
        jobs = self.mine()
        if jobs:
            self.cluster.scancel(self.random.choice(jobs)["id"])

    def kill_agent(self, number=signal.SIGKILL):
        for pid in self.agents()[:1]:
            os.kill(pid, number)

    def warn_agent(self):
        self.kill_agent(signal.SIGTERM)

    def kill_slurmd(self):
        node = self.random.choice(self.cluster.nodes)
        self.cluster.kill_slurmd(node)
        time.sleep(self.random.random())
        self.cluster.start_slurmd(node)

    def kill_slurmctld(self):
        self.cluster.kill_slurmctld()
        time.sleep(3 * self.random.random())
        self.cluster.start_slurmctld()

    def kill_service(self):
        self.daemon.kill()
        self.daemon.communicate()
        time.sleep(self.random.random())
        self.serve()

    def test_anything_is_killed(self):
        print(f"seed {SEED}", flush=True)
        self.random = random.Random(SEED)
        expected = self.undisturbed()
        self.serve()
        actions = [self.kill_job, self.kill_agent, self.warn_agent, self.kill_slurmd, self.kill_slurmctld, self.kill_service]
        killed, runs, end = collections.Counter(), [], time.monotonic() + SECONDS
        while time.monotonic() < end:
            if not runs or self.run_of(runs[-1])["state"] in OVER:
                runs.append(self.submit(engine={"name": "emulated", "delay_ms": 400, "concurrency": 2}))
            time.sleep(self.random.uniform(0.5, 3))
            action = self.random.choice(actions)
            killed[action.__name__] += 1
            action()
        print(f"killed {dict(killed)} during {len(runs)} runs", flush=True)
        for run in runs:
            self.check(expected, self.finished(run, 180))
        self.wait_for("all nodes to go back", lambda: not self.launcher()["jobs"], 120)
        self.cluster.wait_for("Slurm to have no job", lambda: not self.mine(), 60)
        self.wait_for("all agents to end", lambda: not self.agents(), 60)
        names = collections.Counter(job["name"] for job in self.cluster.jobs().values())
        self.assertEqual({name: n for name, n in names.items() if n > 1}, {}, "jobs that were submitted twice")


if __name__ == "__main__":
    unittest.main()
