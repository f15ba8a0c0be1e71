"""A service with many hosts, one of which is killed every second: results are those of an undisturbed run.
EVALD_FULL=1 takes 64 hosts and seven runs of 30,000 documents (10,000 trials in ten minutes); the test without it is
small."""
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

from evald_case import BINARIES
from service_case import ServiceCase

FULL = os.environ.get("EVALD_FULL", "0") == "1"
HOSTS, RUNS, DOCUMENTS, TRIALS = (64, 7, 24000, 10000) if FULL else (12, 1, 1500, 300)
DELAY_MS = 120
SEED = int(os.environ.get("EVALD_TEST_SEED", "0")) or random.randrange(1, 10**6)


class ManyHosts(ServiceCase):
    LOG = ()

    def start_host(self, number):
        root = self.folder / "hosts" / str(number)
        root.mkdir(parents=True, exist_ok=True)
        with open(root / "log", "ab") as log:
            self.agents[number] = subprocess.Popen(
                [BINARIES / "evald", "agent", "--server", self.url, "--name", f"h{number}", "--root", root / "root",
                 "--staging-root", root / "staging", "--devices", "cpu:0", "--threads", "1", "--metric-processes", "1",
                 "--peer-listen", "off"], stdout=log, stderr=log, start_new_session=True)

    def end_hosts(self):
        self.killing = False
        for agent in self.agents.values():
            agent.kill()
        for agent in self.agents.values():
            agent.wait()

    def kill_hosts(self):
        """One each second; the host comes back a little later."""
        while self.killing:
            time.sleep(1)
            number = self.random.randrange(HOSTS)
            self.agents[number].send_signal(signal.SIGKILL)
            self.agents[number].wait()
            self.killed += 1
            if self.killing:
                self.start_host(number)

    def test_an_agent_is_killed_every_second(self):
        print(f"seed {SEED}", flush=True)
        self.random, self.agents, self.killing, self.killed = random.Random(SEED), {}, True, 0
        self.make_suite(DOCUMENTS, DOCUMENTS // 4)
        expected = self.undisturbed()
        self.serve(workers={"devices": "none"}, metrics={"processes": 1})
        self.addCleanup(self.end_hosts)
        for number in range(HOSTS):
            self.start_host(number)
        connected = lambda: sum(h["state"] == "connected" for h in self.call("GET", "/v1/hosts")["hosts"]) == HOSTS + 1
        self.wait_for("all hosts", connected, 120)
        runs = [self.submit(key=f"run-{i}", engine={"name": "emulated", "delay_ms": DELAY_MS, "concurrency": 1})
                for i in range(RUNS)]
        self.wait_for("the first answers", lambda: self.run_of(runs[0])["progress"].get("generated"))
        killer = threading.Thread(target=self.kill_hosts)
        killer.start()
        begin = time.monotonic()
        try:
            ended = [self.finished(run, 1200) for run in runs]
        finally:
            self.killing = False
            killer.join()
        for run in ended:
            self.check(expected, run)
        with sqlite3.connect(f"file:{self.folder}/state/state.db?mode=ro", uri=True) as database:
            trials, = database.execute("SELECT count(*) FROM (SELECT DISTINCT run, trial FROM leases)").fetchone()
            leases, = database.execute("SELECT count(*) FROM leases").fetchone()
        print(f"{HOSTS} hosts, {self.killed} killed in {time.monotonic() - begin:.0f} s, {trials} trials, {leases} leases", flush=True)
        self.assertGreaterEqual(trials, TRIALS)
        self.assertGreater(self.killed, 3)


if __name__ == "__main__":
    unittest.main()
