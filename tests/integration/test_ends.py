"""Hosts that end at a known time, in the middle of a run: no trial is killed by the end of its host."""
import datetime
import os
import random
import re
import signal
import subprocess
import time
import unittest
import unittest.mock

from evald_case import OVER
from test_agents import Agents

SEED = int(os.environ.get("EVALD_TEST_SEED", "1"))
ROUNDS = 20 if os.environ.get("EVALD_FULL", "0") == "1" else 6


class EndsOfHosts(Agents):
    WORKERS = 1
    ENGINE = {"name": "emulated", "delay_ms": 45, "concurrency": 4}
    # Any failure that is counted leaves documents out of the results.
    ONE_ATTEMPT = {"workers": {"count": 1, "max_attempts": 1}, "metrics": {"max_attempts": 1}}

    def end(self, name):
        """Kills the agent, and so all processes of its host."""
        self.agents[name].kill()
        self.agents[name].wait()

    def lost(self, log, name):
        """What the service says of processes of the host that ended with work."""
        return re.findall(rf"^.*{name}\.[wm]\d.*(?:ended|killed|failed|silent|its host has been away).*$", log, re.M)

    def test_no_trial_is_killed_and_the_scores_are_the_same(self):
        self.make_suite(1000, 20)
        expected = self.undisturbed()
        journal = self.keep_journal()
        dice = random.Random(SEED)
        self.serve()
        at_work = answered = 0
        for turn in range(ROUNDS):
            name = f"job{turn}"
            run = self.submit(engine=self.ENGINE, **self.ONE_ATTEMPT)
            self.wait_for("its begin", lambda: any(w["trials"] for w in self.workers("local")))
            seconds = dice.uniform(4, 6)
            ends = time.monotonic() + seconds
            self.start_agent(name, "--ends-in", seconds)
            self.wait_host(name)
            self.assertRegex(self.host(name)["ends_at"], r"^\d{4}-\d\d-\d\dT[\d:.]+Z$")
            worked = False
            while time.monotonic() < ends - 0.1:
                worked = worked or any(w["trials"] for w in self.workers(name))
                time.sleep(0.01)
            held = [w["trials"] for w in self.workers(name)]
            self.end(name)
            self.assertEqual(held, [0], f"it is killed at work\n{self.log_text()}")
            at_work += worked
            self.assertNotIn(self.run_of(run)["state"], OVER, "it ends in the middle of the run")
            self.check(expected, self.finished(run))
            self.assertEqual(name in self.hosts_of(self.run_of(run)), worked)
            lines = [line for line in journal.read_text().splitlines() if line.startswith("sums ")]
            self.assertEqual(len(lines) - answered, 1000, "each document is computed once")
            answered = len(lines)
        self.assertGreater(at_work, ROUNDS * 0.8)
        self.daemon.terminate()
        _, log = self.daemon.communicate(timeout=60)
        self.assertEqual(self.lost(log, r"job\d+"), [], log)

    def test_what_takes_longer_than_expected_is_handed_back(self):
        """By the first run a document takes no time, so the host is given some. Each takes six seconds."""
        self.make_suite(10, 2)
        expected = self.undisturbed()
        self.serve()
        self.finished(self.submit(engine={**self.ENGINE, "delay_ms": 0}, **self.ONE_ATTEMPT))
        ends = time.monotonic() + 8
        self.start_agent("job", "--ends-in", 8)
        self.wait_host("job")
        run = self.submit(engine={**self.ENGINE, "delay_ms": 6000}, **self.ONE_ATTEMPT)
        self.wait_for("work there", lambda: any(w["trials"] for w in self.workers("job")))
        time.sleep(max(0, ends - time.monotonic() - 0.1))
        held = [w["trials"] for w in self.workers("job")]
        self.end("job")
        self.assertEqual(held, [0], f"it is killed at work\n{self.log_text()}")
        self.check(expected, self.finished(run))
        self.daemon.terminate()
        _, log = self.daemon.communicate(timeout=60)
        self.assertEqual(self.lost(log, "job"), [], log)
        self.assertRegex(log, r"trial \d+ of job.w0 is handed back: the worker's host ends")

    def test_a_slurm_job_tells_its_end(self):
        self.serve()
        with unittest.mock.patch.dict(os.environ, SLURM_JOB_END_TIME=str(int(time.time()) + 3600)):
            self.start_agent("job")
            self.start_agent("other", "--ends-in", 60)
        left = lambda name: datetime.datetime.fromisoformat(self.wait_host(name)["ends_at"]).timestamp() - time.time()
        self.assertTrue(3500 < left("job") < 3600)
        self.assertTrue(50 < left("other") < 60)
        self.assertIsNone(self.wait_host("local")["ends_at"], "the service ends with it")
        environment = {**os.environ, "SLURM_JOB_END_TIME": "noon"}
        done = subprocess.run(self.agent_command("third"), env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 2)
        self.assertIn("SLURM_JOB_END_TIME 'noon': expected seconds since 1970", done.stderr)

    def test_a_run_without_another_host_waits_and_says_why(self):
        self.make_suite(400, 10)
        expected = self.undisturbed()
        self.serve()
        local = self.agent()
        os.kill(local, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{local}") and os.kill(local, signal.SIGCONT))
        self.wait_host("local", "away")
        ends = time.monotonic() + 5
        self.start_agent("job", "--ends-in", 5)
        self.wait_host("job")
        run = self.submit(engine=self.ENGINE, **self.ONE_ATTEMPT)
        self.wait_for("work there", lambda: any(w["trials"] for w in self.workers("job")))
        time.sleep(max(0, ends - time.monotonic() - 0.1))
        self.assertEqual([w["trials"] for w in self.workers("job")], [0])
        self.end("job")
        why = "it waits for a device.*: cpu:0 of host job, whose time limit is over"
        waits = lambda: re.search(why, " ".join(self.run_of(run)["problems"])) and self.run_of(run)
        self.assertEqual(self.wait_for("the reason", waits, 30)["state"], "running")
        os.kill(local, signal.SIGCONT)
        self.check(expected, self.finished(run))


if __name__ == "__main__":
    unittest.main()
