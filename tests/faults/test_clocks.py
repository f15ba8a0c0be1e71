"""The wall clock jumps, days forwards and backwards, four times a second. No result depends on it."""
import subprocess
import unittest

from fault_case import FaultCase, preload


class Clocks(FaultCase):
    SLOW = {"name": "emulated", "concurrency": 4, "delay_ms": 10, "jitter": 0.5}

    def test_the_layer_works(self):
        dates = set()
        self.wait_for("the clock to jump", lambda: dates.add(subprocess.run(
            ["date", "+%Y-%m-%d"], env=preload("jumping_clock"), stdout=subprocess.PIPE, check=True).stdout) or len(dates) > 2)

    def test_a_run_that_is_killed_and_resumed(self):
        config = self.config(engine=self.SLOW)
        expected = self.undisturbed(config)
        env = preload("jumping_clock")
        for _ in range(3):
            process = self.start("run", config, "--quiet", *(["--resume"] if self.runs() else []), env=env, start_new_session=True)
            seen = len(list(self.disk.glob("runs/*/scores/*/*.jsonl")))
            self.wait_for("progress", lambda: process.poll() is not None
                          or len(list(self.disk.glob("runs/*/scores/*/*.jsonl"))) > seen)
            process.kill()
            process.communicate()
            self.wait_until_gone(process.pid)
        status, said = self.resume(config, env=env)
        self.assertEqual(status, 0, said)
        self.compare(self.runs()[0], expected, "jumping clocks")

    def test_the_service(self):
        expected = self.undisturbed(self.config(engine=self.SLOW))
        self.assertTrue(self.serve(env=preload("jumping_clock")))
        for key in "abc":
            run = self.submit(key, engine=self.SLOW)
            self.assertEqual(self.submit(key, engine=self.SLOW)["id"], run["id"])
            self.check_done(self.run_over(run["id"]), expected, key)
        self.assertEqual(self.end_daemon(15), 0, self.daemon_log())


if __name__ == "__main__":
    unittest.main(verbosity=2, warnings="ignore")
