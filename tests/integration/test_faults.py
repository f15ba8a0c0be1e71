"""Processes die: nothing is lost, nothing is scored twice, nothing hangs."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import time
import unittest

from evald_case import QUICKSTART, EvaldCase, scores

SEED = int(os.environ.get("EVALD_TEST_SEED", "1"))


class Faults(EvaldCase):
    ENGINE = {"name": "emulated", "delay_ms": 10, "concurrency": 4}

    def undisturbed(self):
        document = self.run_done(self.write_config(engine={"name": "emulated"}, output={"dir": "plain", "name": "p"}))
        return scores(document), self.samples(self.folder / "plain" / "p")

    def check_against(self, expected, document):
        self.assertEqual(scores(document), expected[0])
        self.assertEqual(self.samples(self.only_run()), expected[1])

    def finish(self, process):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, out + err + self.logs())
        return json.loads(out)

    def test_a_killed_worker_loses_its_lease_only(self):
        self.make_suite()
        expected = self.undisturbed()
        # Each worker commits one file, and dies with its second one whole in its buffer. A trial may be the second
        # trial of several workers.
        config = self.write_config(engine=self.ENGINE, workers={"count": 2, "threads": 1, "max_attempts": 20})
        log = self.folder / "points"
        env = dict(os.environ, EVALD_FAIL_POINT="evald-worker/worker.before_commit:2", EVALD_FAIL_POINT_LOG=str(log))
        self.check_against(expected, self.finish(self.start("run", config, "--json", "--quiet", env=env)))
        starts = log.read_text().split().count("evald-worker/worker.loaded")
        self.assertGreaterEqual(starts, 5, "workers died and were replaced")

    def test_a_killed_metric_process_is_replaced(self):
        self.make_suite()
        expected = self.undisturbed()
        # Each metric process dies during its third job. A job may be the third job of several processes.
        config = self.write_config(engine=self.ENGINE, metrics={"processes": 2, "max_attempts": 20})
        log = self.folder / "points"
        env = dict(os.environ, EVALD_FAIL_POINT="evald-metric/metric.before_job_done:3", EVALD_FAIL_POINT_LOG=str(log))
        self.check_against(expected, self.finish(self.start("run", config, "--json", "--quiet", env=env)))
        passed = log.read_text().split()
        died = passed.count("evald-metric/metric.before_job_done") - passed.count("evald-metric/metric.after_job_done")
        self.assertGreaterEqual(died, 2)

    def test_a_killed_orchestrator_is_resumed(self):
        self.make_suite()
        expected = self.undisturbed()
        random.seed(SEED)
        print(f"seed {SEED}", flush=True)
        config = self.write_config(engine=self.ENGINE)
        for life in range(3):
            self.killed_at("run.generations_committed", random.randrange(1, 3), config, *(["--resume"] if life else []))
        run = next((self.folder / "runs").glob("*/run.json")).parent
        for name in ("samples_sums.jsonl.so-far", "samples_sums.jsonl.so-far.part"):  # made for somebody who looked on
            (run / name).write_text("half")
        self.check_against(expected, self.run_done(config, "--resume"))
        self.assertEqual(list(run.glob("*so-far*")), [])

    def test_a_row_that_names_a_file_outside_of_the_run_is_dropped(self):
        """Damaged files are renamed, and the row must not decide which file that is."""
        self.make_suite()
        expected = self.undisturbed()
        config = self.write_config(engine=self.ENGINE)
        self.killed_at("run.generations_committed", 2, config)
        others = self.folder / "others.jsonl"
        others.write_text("of somebody else\n")
        with contextlib.closing(sqlite3.connect(self.folder / "state" / "state.db")) as database, database:
            changed = database.execute("UPDATE files SET path = '../../others.jsonl' WHERE file = (SELECT min(file) FROM files)")
            self.assertEqual(changed.rowcount, 1)
        self.check_against(expected, self.run_done(config, "--resume"))
        self.assertEqual([path.name for path in self.folder.glob("others*")], ["others.jsonl"])

    def test_a_worker_that_always_dies_makes_the_run_incomplete(self):
        self.make_suite(sums=20, choice=0 + 4)
        environment = dict(os.environ, EVALD_FAIL_POINT="worker.before_commit")
        done = self.evald("run", self.write_config(), "--quiet", env=environment)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("killed by signal 9", done.stdout + done.stderr)
        self.assertFalse((self.only_run() / "results.json").exists())

    def test_lost_and_damaged_files_are_done_again(self):
        self.make_suite()
        expected = self.undisturbed()
        config = self.write_config(engine=self.ENGINE)
        self.killed_at("run.scores_committed", 4, config)
        files = list(self.folder.glob("runs/*/scores/*/*.jsonl"))
        names = sorted(path.relative_to(self.only_run()).parts[1:] for path in files)
        run = self.only_run()

        def generations_of(task, scores):  # "3.1-64.jsonl" was made from "3.1-N.jsonl" with the largest N up to 64
            first = lambda path: int(path.stem.split("-")[1])
            of_trial = (run / "generations" / task).glob(f"{scores.split('-')[0]}-*.jsonl")
            return max((p for p in of_trial if first(p) <= first(pathlib.Path(scores))), key=first)

        victim = generations_of(*names[0])
        victim.write_bytes(victim.read_bytes()[:-20])
        generations_of(*names[1]).unlink()
        (run / "scores" / names[2][0] / names[2][1]).write_text("{}\n")
        self.check_against(expected, self.run_done(config, "--resume"))

    def test_files_without_a_database_are_adopted(self):
        self.make_suite()
        expected = self.undisturbed()
        # With one worker no other computes a late trial again, so no generations are made twice.
        config = self.write_config(engine=self.ENGINE, workers={"count": 1, "threads": 1})
        self.killed_at("run.scores_committed", 4, config)
        for path in (self.folder / "state").glob("state.db*"):
            path.unlink()
        committed = len(list(self.only_run().glob("generations/*/*.jsonl")))
        document = self.run_done(config, "--resume")
        self.check_against(expected, document)
        again = [p for p in self.only_run().glob("generations/*/*.jsonl")]
        self.assertGreater(committed, 0)
        lines = sum(len(p.read_text().splitlines()) for p in again)
        self.assertEqual(lines, 200 + 4 * 100, "adopted generations were not made again")

    def test_another_checkpoint_in_the_same_place_is_not_resumed(self):
        early, late = (QUICKSTART / "checkpoints" / f"step-{step}" for step in ("00100", "01200"))
        shutil.copytree(late, self.folder / "ck")
        config = self.write_config(
            checkpoint="ck", engine={"name": "native"}, tasks=["quickstart_math"], task_dirs=[str(QUICKSTART / "tasks")],
            workers={"count": 1, "threads": 1}, staging={"root": str(self.folder / "staging")})
        self.killed_at("run.generations_committed", 1, config)
        shutil.rmtree(self.folder / "ck")
        shutil.copytree(early, self.folder / "ck")
        done = self.evald("run", config, "--quiet", "--resume")
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn("begun with another checkpoint", done.stderr)
        self.assertFalse((self.only_run() / "results.json").exists())

    def test_an_interrupt_while_a_worker_starts_does_not_hang(self):
        self.make_suite(sums=400)
        # Long enough that some of the run is open when the interrupt comes.
        config = self.write_config(engine={**self.ENGINE, "delay_ms": 50}, workers={"count": 2, "threads": 1})
        process = self.start("run", config, "--quiet")
        stopped = self.wait_for("two workers", lambda: len(found := self.children(process.pid, "evald-worker")) == 2 and found)[-1]
        os.kill(stopped, signal.SIGSTOP)
        self.wait_for("the first commit", lambda: list(self.folder.glob("runs/*/generations/*/*.jsonl")))
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        with contextlib.suppress(ProcessLookupError):  # the process may have been killed meanwhile
            os.kill(stopped, signal.SIGCONT)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 3, out + err)

    def test_workers_that_die_after_progress_are_started_again(self):
        self.make_suite(sums=100, choice=20)
        expected = self.undisturbed()
        config = self.write_config(engine={"name": "emulated"}, workers={"count": 1, "threads": 1, "max_attempts": 3})
        env = dict(os.environ, EVALD_FAIL_POINT="worker.after_slice_done")
        done = self.evald("run", config, "--json", "--quiet", env=env)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.logs())
        self.check_against(expected, json.loads(done.stdout))

    def test_two_runs_are_not_resumed_at_once(self):
        self.make_suite()
        config = self.write_config(engine={**self.ENGINE, "delay_ms": 5000})  # the test does not wait for the run
        process = self.start("run", config, "--quiet")
        self.wait_for("the run's folder", lambda: list(self.folder.glob("runs/*/run.json")))
        second = self.evald("run", config, "--resume", "--quiet")
        self.assertEqual(second.returncode, 2)
        self.assertIn(f"another evald (pid {process.pid} on ", second.stderr)
        process.kill()
        process.communicate()


if __name__ == "__main__":
    unittest.main(verbosity=2)
