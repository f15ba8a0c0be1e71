"""kill -9 at every fail point (docs/faults.md), in `evald run` and its next life, and in `evald serve` and its next
life."""
import collections
import os
import re
import unittest

from fault_case import FULL, SOURCE, FaultCase, sample

ROOMS = ("base", "checkpoint", "datasets", "metrics", "orchestrator", "prepared", "protocol", "worker")


def names_in_source():
    names = set()
    for room in ROOMS:
        for file in (SOURCE / room).rglob("*.cc"):
            names.update(re.findall(r'FailPoint\("([^"]+)"\)', file.read_text()))
    return names


class KillPoints(FaultCase):
    # Answers come out of order, so that files are sorted before they are published.
    JITTER = {"name": "emulated", "concurrency": 4, "delay_ms": 2, "jitter": 1}
    GATES = {"rules": [{"task": "choice", "metric": "acc", "min": 0.01}]}

    def passed_in(self, live):
        """The number of times that each "program/point" is passed in a life without faults."""
        log = self.folder / "points.log"
        log.unlink(missing_ok=True)
        live(dict(os.environ, EVALD_FAIL_POINT_LOG=str(log)))
        self.clear()
        return collections.Counter(log.read_text().split())

    def killing(self, point, passing):
        """The environment in which the first process that passes the point dies there."""
        self.token = self.folder / "token"
        self.token.touch()
        return dict(os.environ, EVALD_FAIL_POINT=f"{point}:{passing}", EVALD_FAIL_POINT_ONCE=str(self.token))

    def kills(self, passed, count):
        """(point, number of the passing): the first passing of each point, and a later one."""
        chosen = []
        for point in sample(sorted(passed), count, self.rng):
            chosen.append((point, 1))
            if FULL and passed[point] > 2:
                chosen.append((point, self.rng.randrange(2, passed[point])))
        return chosen

    def run_killed_at(self, config, expected, point, passing):
        self.clear()
        what = f"killed at {point}, passing {passing}"
        status, said = self.life(config, env=self.killing(point, passing))
        if passing == 1:
            self.assertFalse(self.token.exists(), f"{what}: it was never passed\n{said}")
        if point.startswith("evald/") and not self.token.exists():
            self.assertEqual(status, -9, f"{what}: {said}")
            self.finish(config, expected, what)
        else:  # evald has replaced the process, or it never died
            self.assertEqual(status, 0, f"{what}:\n{said}\n{self.logs()}")
            self.compare(self.runs()[0], expected, what)

    def check_run(self, config, count):
        expected = self.undisturbed(config)
        passed = self.passed_in(lambda env: self.assertEqual(self.life(config, env=env)[0], 0))
        kills = self.kills(passed, count)
        print(f"{len(kills)} kills at {len({p for p, _ in kills})} of {len(passed)} points", flush=True)
        for point, passing in kills:
            with self.subTest(point=point, passing=passing):
                self.run_killed_at(config, expected, point, passing)
        return passed

    def test_a_run_with_a_checkpoint(self):
        self.check_run(self.native(), 6)

    def test_a_run_whose_answers_come_out_of_order(self):
        self.check_run(self.config(engine=self.JITTER), 4)

    def test_a_run_that_is_killed_again_while_it_recovers(self):
        config = self.config(engine=self.JITTER)
        expected = self.undisturbed(config)
        points = ["database.before_commit", "run.planned", "run.lease_given", "run.job_given", "run.scores_reported",
                  "run.task_finished", "file.renamed", "run.after_results"]
        for point in sample(points, 2, self.rng):
            with self.subTest(point=point):
                self.clear()
                # After a late kill everything may be generated or scored already. These points are then not passed
                # again.
                early = point in ("run.lease_given", "run.job_given", "run.scores_reported")
                first, passing = ("run.lease_given", 1) if early else (self.rng.choice(
                    ["run.generations_committed", "run.scores_reported", "run.lease_given"]), 3)
                self.assertEqual(self.life(config, env=self.killing(f"evald/{first}", passing))[0], -9)
                status, said = self.resume(config, env=self.killing(f"evald/{point}", 1))
                self.assertEqual(status, -9, said)
                self.finish(config, expected, f"killed at {first}, then at {point}")

    # ---- the service

    def life_of_service(self, env):
        """Serves until the run is over or the service is killed. Returns the run, if there is any."""
        run = None
        if self.serve(env=env):
            run = self.submit("the-run", engine=self.JITTER, gates=self.GATES)
            run = run and self.run_over(run["id"])
        return run

    def whole_life_of_service(self, env):
        self.assertEqual(self.life_of_service(env)["state"], "done")
        self.assertEqual(self.end_daemon(15), 0, self.daemon_log())

    def serve_killed_at(self, expected, point, passing):
        self.clear_service()
        what = f"killed at {point}, passing {passing}"
        run = self.life_of_service(self.killing(point, passing))
        died = self.end_daemon()
        if passing == 1:
            self.assertFalse(self.token.exists(), f"{what}: it was never passed\n{self.daemon_log()}")
        if run is None:
            self.assertEqual(died, -9, what)
        run = self.life_of_service(None)
        self.check_done(run, expected, what)
        self.assertEqual((run["exit_status"], run["verdict"]), (0, "pass"), f"{what}: {run}")
        self.assertEqual(len(self.call("GET", "/v1/runs")["runs"]), 1, f"{what}: a repeated submission is the first one")
        self.assertEqual(self.end_daemon(15), 0, f"{what}: {self.daemon_log()}")

    def test_the_service(self):
        expected = self.undisturbed(self.config(engine=self.JITTER))
        passed = self.passed_in(self.whole_life_of_service)
        kills = self.kills(passed, 5)
        print(f"{len(kills)} kills at {len({p for p, _ in kills})} of {len(passed)} points", flush=True)
        for point, passing in kills:
            with self.subTest(point=point, passing=passing):
                self.serve_killed_at(expected, point, passing)

    # ---- the points themselves

    def life_with_a_damaged_database(self, env):
        self.assertEqual(self.life(self.config())[0], 0)
        (self.disk / "state" / "state.db").write_bytes(b"x" * 8192)
        self.assertEqual(self.life(self.config(), env=env)[0], 0)

    def life_that_drops_what_it_staged(self, env):
        """A run on the native engine that drops its staged checkpoint at the end."""
        self.assertEqual(self.life(self.native(), env=env)[0], 0)

    def test_every_point_is_passed_and_documented(self):
        passed = set()
        for live in (self.life_that_drops_what_it_staged, self.life_with_a_damaged_database, self.whole_life_of_service):
            passed |= {entry.split("/")[1] for entry in self.passed_in(live)}
        names = names_in_source()
        self.assertGreater(len(names), 40)
        # Killed there by tests/integration/test_judge.py, which has a judge, by test_fetch.py, which has a hub, and by
        # test_nodes.py, which has a Slurm
        elsewhere = {"judge.answer_kept", "fetch.before_placing", "fetch.after_placed", "launch.recorded",
                     "launch.submitted", "launch.stopped"}
        self.assertEqual(names - passed - elsewhere, set(), "points that no test comes by")
        page = (SOURCE / "docs" / "faults.md").read_text()
        documented = set(re.findall(r"`([a-z]+\.[a-z_]+)`", page))
        self.assertEqual(names - documented, set(), "points that docs/faults.md does not list")


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
