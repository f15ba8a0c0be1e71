"""A disk that is full or fails at its n-th write. evald reports a clear error or none, never gives wrong numbers and
never hangs. Afterwards the run is finished as if nothing had happened."""
import collections
import http.client
import json
import pathlib
import re
import signal
import unittest

from fault_case import OVER, PATIENCE_S, FaultCase, preload, sample
from service_case import answer_to

ONE_EACH = {"workers": {"count": 1, "threads": 1}, "metrics": {"processes": 1}}


class FailingDisk(FaultCase):
    SUMS, CHOICE = 8, 4

    def failing(self, root, fail="", error="ENOSPC"):
        """The environment of a disk that fails. `fail` is the value of EVALD_DISK_FAIL."""
        self.counter, self.log = self.folder / "count", self.folder / "disk.log"
        self.counter.write_bytes(bytes(16))
        self.log.unlink(missing_ok=True)
        return preload("failing_disk", EVALD_DISK_ROOT=root, EVALD_DISK_COUNT=self.counter, EVALD_DISK_LOG=self.log,
                       EVALD_DISK_FAIL=fail, EVALD_DISK_ERROR=error)

    def operations(self):
        """[number, program, what, path, "FAILS"?] of each operation."""
        return [line.split(" ", 4) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def failed(self):
        return [entry for entry in self.operations() if entry[-1] == "FAILS"]

    def faults(self, root, live, count):
        """(value of EVALD_DISK_FAIL, the error) for operations of a life without faults. Some operations of each kind
        of file are chosen, so that a sample meets all kinds."""
        live(self.failing(root))
        places = collections.defaultdict(list)
        for number, program, what, path, *_ in self.operations():
            place = re.sub(r"\d+", "0", pathlib.Path(path).name) if "/prepared/" not in path else "prepared"
            places[program, what, place].append(int(number))
        self.clear()
        chosen = [self.rng.choice(places[place]) for place in sample(sorted(places), count, self.rng)]
        faults = []
        for number in chosen:
            error = self.rng.choice(["ENOSPC", "EIO", "SHORT"])
            faults.append((f"{number}{self.rng.choice(['', '+'])}" if error != "SHORT" else f"{number}", error))
        print(f"{len(faults)} faults, at {len(places)} kinds of places", flush=True)
        return faults

    def check_run(self, config, count):
        expected = self.undisturbed(config)
        for fail, error in self.faults(self.disk, lambda env: self.assertEqual(self.life(config, env=env)[0], 0), count):
            with self.subTest(fail=fail, error=error):
                self.clear()
                what = f"{error} at {fail}"
                status, said = self.life(config, env=self.failing(self.disk, fail, error))
                what += f" ({' '.join((self.failed() or [['nothing']])[0])})"
                self.assertIn(status, (0, 2, 3), f"{what}: {said}")
                for run in self.runs():
                    if (run / "results.json").exists():
                        self.compare(run, expected, what)
                if status == 0:
                    self.assertTrue((self.runs()[0] / "results.json").exists(), what)
                else:
                    self.assertTrue(self.failed(), f"{what}: {said}")
                    self.assertIn(str(self.disk), said, f"{what}: the error names no file")
                self.finish(config, expected, what)

    def test_a_run(self):
        self.check_run(self.config(**ONE_EACH), 5)

    def test_a_run_with_a_checkpoint(self):
        self.check_run(self.native(**ONE_EACH), 4)

    # ---- the service

    def ask(self, method, path, body=None, **headers):
        """Returns (status, answer). The status is None if the service is gone."""
        try:
            status, text = answer_to(self.url, method, path, body, PATIENCE_S, **headers)
            return status, json.loads(text) if status < 400 else text.decode()
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            return None, str(error)

    def life_of_service(self, env, key="the-run"):
        """Returns the run when it is over. None if the service ended or refused the run before; `refusal` is then its
        answer."""
        self.refusal = ""
        if not self.serve(env=env):
            return None
        body = {"config": json.loads(self.config().read_text()), "base": str(self.folder)}
        status, run = self.ask("POST", "/v1/runs", body, **{"Idempotency-Key": key})
        if status not in (200, 201):
            self.refusal = run
            return None
        return self.run_over(run["id"])

    def whole_life_of_service(self, env):
        self.assertEqual(self.life_of_service(env)["state"], "done")
        self.end_daemon(signal.SIGTERM)

    def check_service(self, root, count):
        expected = self.undisturbed(self.config())
        for fail, error in self.faults(root, self.whole_life_of_service, count):
            with self.subTest(fail=fail, error=error):
                self.clear_service()
                run = self.life_of_service(self.failing(root, fail, error))
                what = f"{error} at {fail} ({' '.join((self.failed() or [['nothing']])[0])})"
                if run is not None and run["state"] == "done":
                    self.check_done(run, expected, what)
                elif run is not None:
                    self.assertIn(str(self.disk), str(run["problems"]), f"{what}: the run's problems name no file")
                else:
                    self.assertIn(str(self.disk), self.daemon_log() + self.refusal, f"{what}: the error names no file")
                self.end_daemon(signal.SIGTERM)
                over = run is not None and run["state"] in OVER
                again = self.life_of_service(None, "again" if over and run["state"] != "done" else "the-run")
                self.check_done(again, expected, f"{what}, afterwards")
                self.assertEqual(self.end_daemon(signal.SIGTERM), 0, self.daemon_log())

    def test_the_service(self):
        self.check_service(self.disk, 3)

    def test_the_database_of_the_service(self):
        self.check_service(self.disk / "state", 2)

    def test_a_database_that_stays_broken_ends_the_service_and_loses_nothing(self):
        expected = self.undisturbed(self.config())
        self.whole_life_of_service(self.failing(self.disk / "state"))
        commits = [int(entry[0]) for entry in self.operations() if entry[2] == "fsync"]
        self.clear()
        env = self.failing(self.disk / "state", f"{commits[len(commits) // 4]}+", "EIO")
        self.assertIsNone(self.life_of_service(env), self.daemon_log())
        self.assertEqual(self.daemon.wait(PATIENCE_S), 3, self.daemon_log())
        self.assertIn("state.db", self.daemon_log())
        self.end_daemon()
        self.check_done(self.life_of_service(None), expected, "afterwards")


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
