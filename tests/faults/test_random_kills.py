"""kill -9 of the daemon, its agent, a worker or a metric process at random moments, while runs follow one another.

EVALD_KILLS sets the number of kills; 200 in a full run."""
import collections
import os
import signal
import sqlite3
import time
import unittest

from fault_case import FULL, FaultCase

KILLS = int(os.environ.get("EVALD_KILLS", "200" if FULL else "8"))


class RandomKills(FaultCase):
    SUMS, CHOICE = 60, 30
    SLOW = {"name": "emulated", "concurrency": 4, "delay_ms": 10, "jitter": 0.5}
    # A trial is not given up, however often its workers are killed.
    PATIENT = {"workers": {"max_attempts": 100}, "metrics": {"max_attempts": 100}}
    AT_ONCE = 3

    def start_service(self):
        self.assertTrue(self.serve(), self.daemon_log())

    def kill_one(self):
        """Kills one process and returns which. A daemon's agent outlives it, and the agent's processes go on. An
        agent's processes do not outlive the agent."""
        victim = self.rng.choice(["daemon", "agent", "evald-worker", "evald-worker", "evald-metric"])
        if victim == "daemon":
            self.assertEqual(self.end_daemon(outlived=True), -9)
            self.start_service()
            return victim
        agent = self.agent()
        if victim == "agent":
            found = [agent] if agent else []
        else:
            found = self.children(agent, victim) if agent else []
        if not found:  # the process is just being started again
            return None
        try:
            os.kill(self.rng.choice(found), signal.SIGKILL)
        except ProcessLookupError:  # the process has just ended
            return None
        return victim

    def test_the_scores_are_those_of_an_undisturbed_run(self):
        expected = self.undisturbed(self.config(engine=self.SLOW))
        self.start_service()
        killed, runs, done = collections.Counter(), [], 0
        begin = time.monotonic()
        while sum(killed.values()) < KILLS:
            while len(runs) - done < self.AT_ONCE:
                runs.append(self.submit(f"run-{len(runs)}", engine=self.SLOW, **self.PATIENT)["id"])
            time.sleep(self.rng.uniform(0, 0.5))
            victim = self.kill_one()
            if victim:
                killed[victim] += 1
            while done < len(runs) and (run := self.call("GET", f"/v1/runs/{runs[done]}"))["state"] == "done":
                self.check_done(run, expected, f"run {done}")
                done += 1
        for number in range(done, len(runs)):
            self.check_done(self.run_over(runs[number]), expected, f"run {number}")
        listed = self.call("GET", "/v1/runs?limit=200")["runs"]
        self.assertEqual(sorted(r["id"] for r in listed), sorted(runs), "each submission is one run")
        self.assertEqual(self.end_daemon(signal.SIGTERM), 0, self.daemon_log())
        self.check_rows(len(runs))
        print(f"{KILLS} kills ({', '.join(f'{n} of {v}' for v, n in sorted(killed.items()))}), {len(runs)} runs of "
              f"{self.SUMS + self.CHOICE} documents, {time.monotonic() - begin:.0f} s: all identical", flush=True)

    def check_rows(self, runs):
        """For each document one row makes its generations count, and one row its scores."""
        with sqlite3.connect(self.disk / "state" / "state.db") as database:
            rows = database.execute("SELECT run, kind, count(*) FROM documents GROUP BY run, kind").fetchall()
        self.assertEqual(len(rows), 2 * runs)
        self.assertEqual({count for _, _, count in rows}, {self.SUMS + self.CHOICE})


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
