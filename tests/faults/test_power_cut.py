"""A power cut: every process dies. The disk keeps everything that was fsynced and, in some tests, some of the rest.
Everything that was committed or acknowledged is there afterwards, whole. The rest is done again."""
import subprocess
import unittest

from fault_case import LAYERS, FaultCase, preload, sample


class PowerCut(FaultCase):
    SUMS, CHOICE = 16, 8
    SLOW = {"name": "emulated", "concurrency": 4, "delay_ms": 3, "jitter": 1}
    POINTS = ["file.renamed", "file.committed", "worker.after_sort", "worker.after_slice_done", "metric.before_job_done",
              "metric.after_job_done", "run.folder_made", "run.registered", "run.prepared", "run.planned", "run.lease_given",
              "run.generations_reported", "run.generations_committed", "run.scores_reported", "run.scores_committed",
              "run.task_finished", "run.after_results", "run.ended", "database.before_commit", "database.after_commit",
              "prepared.written", "prepared.renamed", "tokens.renamed"]
    SERVICE_POINTS = ["service.folder_made", "service.run_registered", "service.run_started", "run.scores_committed",
                      "run.after_results", "service.run_ended", "service.judged", "service.run_closed"]

    def watched(self, **variables):
        """The environment of a disk whose power may be cut."""
        self.shadow = self.folder / "shadow"
        subprocess.run(["rm", "-rf", str(self.shadow)], check=True)
        for kind in ("data", "names"):
            (self.shadow / kind).mkdir(parents=True)
        return preload("syncing_disk", EVALD_CUT_ROOT=self.disk, EVALD_CUT_SHADOW=self.shadow, **variables)

    def dying_at(self, point, passing):
        self.token = self.folder / "token"
        self.token.touch()
        return self.watched(EVALD_FAIL_POINT=f"{point}:{passing}", EVALD_FAIL_POINT_ONCE=self.token)

    def cut(self, seed):
        """Leaves on the disk what survives a power cut. With seed 0 only fsynced data survives."""
        left = self.folder / "disk-left"
        subprocess.run([LAYERS / "power_cut", self.shadow, self.disk, left, str(seed)], check=True)
        subprocess.run(["rm", "-rf", str(self.disk)], check=True)
        left.rename(self.disk)

    def cuts(self, points, count):
        """(point, number of the passing, seed of the surviving data)."""
        chosen = sample(points, count, self.rng)
        return [(point, self.rng.choice([1, 1, 2, 3]), self.rng.choice([0, 0, self.rng.randrange(1, 1000)])) for point in chosen]

    def check_run(self, config, points, count):
        expected = self.undisturbed(config)
        for point, passing, seed in self.cuts(points, count):
            with self.subTest(point=point, passing=passing, seed=seed):
                self.clear()
                what = f"power cut at {point}, passing {passing}, seed {seed}"
                status, said = self.life(config, env=self.dying_at(point, passing))
                if point.split(".")[0] not in ("worker", "metric") and not self.token.exists():
                    self.assertIn(status, (0, -9), f"{what}: {said}")  # 0: a worker passed the point
                self.cut(seed)
                said = self.finish(config, expected, what)
                self.assertNotIn("lost or damaged", said, f"{what}: a row stood for a file that was not on the disk")

    def test_a_run(self):
        self.check_run(self.config(engine=self.SLOW), [p for p in self.POINTS if not p.startswith("tokens")], 5)

    def test_a_run_with_a_checkpoint(self):
        points = ["prepared.written", "prepared.renamed", "tokens.written", "tokens.renamed", "staging.memo_written",
                  "run.staged", "run.planned", "run.scores_committed"]
        self.check_run(self.native(), points, 2)

    def test_a_finished_run_is_there(self):
        config = self.config()
        expected = self.undisturbed(config)
        self.assertEqual(self.life(config, env=self.watched())[0], 0)
        self.cut(0)
        self.compare(self.runs()[0], expected, "power cut after the end")

    def test_an_acknowledged_submission_is_not_forgotten(self):
        expected = self.undisturbed(self.config(engine=self.SLOW))
        for point, passing, seed in self.cuts(self.SERVICE_POINTS, 3):
            with self.subTest(point=point, seed=seed):
                self.clear_service()
                what = f"power cut at {point}, seed {seed}"
                self.assertTrue(self.serve(env=self.dying_at(point, 1)), self.daemon_log())
                run = self.submit("the-run", engine=self.SLOW)
                if run is not None:
                    self.run_over(run["id"])
                self.end_daemon()
                self.cut(seed)
                self.assertTrue(self.serve(), f"{what}: {self.daemon_log()}")
                if run is not None:  # the run was acknowledged, so the service knows it without a new submission
                    self.assertEqual([r["id"] for r in self.call("GET", "/v1/runs")["runs"]], [run["id"]], what)
                again = self.submit("the-run", engine=self.SLOW)
                self.check_done(self.run_over(again["id"]), expected, what)
                self.assertNotIn("lost or damaged", self.daemon_log(), what)
                self.assertEqual(self.end_daemon(15), 0, self.daemon_log())


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
