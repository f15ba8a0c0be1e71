"""scripts/gpu-check: parts that resume, limits of time that leave nothing behind, and archives. Its parts also run on
the emulated device if that is built."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("EVALD_BINARIES", SOURCE / "build" / "dev")).resolve()

# Parts that replace the real ones, with the same script, results and processes.
PARTS = r'''
import os, subprocess, sys, time
from outcome import Failure, Outcome, Skip
import parts as real

def start(check):
    check.program("/bin/sh", "-c", "[ ! -e \"$STEPS.down\" ]")
    return Outcome("passed", "", {})

def good(check):
    check.program("/bin/sh", "-c", "echo good was here")
    return Outcome("passed", "well", {"figure": 7})

def bad(check):
    check.program("/bin/sh", "-c", "echo broken >&2; exit 5")

def lacking(check):
    raise Skip("no such thing here")

def hanging(check):
    # Children of children, one in a session of its own.
    check.program("/bin/sh", "-c", f"echo $$ >{os.environ['PIDS']}; setsid sleep 1000 & sleep 1000 & sleep 1000")

def stepping(check):
    def work(name, seconds):
        with open(os.environ["STEPS"], "a") as log:
            log.write(name + "\n")
        check.try_program("/bin/sh", "-c", f"[ {name} = a ] || [ -e \"$STEPS.go\" ] || exec sleep 1000", seconds=seconds)
        return name.upper()
    return Outcome("passed", "", {"steps": check.steps(["a", "b", "c"], work, 30)})

PARTS = [real.Part("start", "is needed", start, 20, 1, needed=True), real.Part("good", "ends well", good, 20, 1), real.Part("bad", "fails", bad, 20, 1),
         real.Part("lacking", "is skipped", lacking, 20, 1), real.Part("hanging", "never ends", hanging, 4, 0.1),
         real.Part("stepping", "goes on", stepping, 20, 0.1, resumes=True)]
Check = real.Check
'''
STAND_IN = r'''
import runpy, sys, types
sys.path.insert(0, sys.argv[1] + "/gpu_check")
import parts as real
stand_in = types.ModuleType("parts")
exec(open(sys.argv[2]).read(), stand_in.__dict__)
sys.modules["parts"] = stand_in
script = sys.argv[1] + "/gpu-check"
sys.argv = [script] + sys.argv[3:]
runpy.run_path(script, run_name="__main__")
'''


class GpuCheck(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="evald-gpu-check-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "parts.py").write_text(PARTS)
        (self.folder / "stand_in.py").write_text(STAND_IN)
        self.results = self.folder / "results"
        self.scratch = self.folder / "scratch"
        self.go = self.folder / "steps.go"  # without this file only the first step of `stepping` ends
        self.go.touch()

    def check(self, *arguments, results=None, timeout=120):
        environment = dict(os.environ, PIDS=str(self.folder / "pids"), STEPS=str(self.folder / "steps"),
                           EVALD_BINARIES=str(BINARIES), PYTHONDONTWRITEBYTECODE="1")
        return subprocess.run(
            [sys.executable, self.folder / "stand_in.py", SOURCE / "scripts", self.folder / "parts.py", *arguments,
             "--results", results or self.results, "--scratch", self.scratch],
            capture_output=True, text=True, env=environment, timeout=timeout, check=False)

    def result(self, part):
        return json.loads((self.results / f"{part}.json").read_text())

    def test_each_part_has_a_result_and_a_second_run_does_none_again(self):
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual(self.result("good")["status"], "passed")
        self.assertEqual(self.result("good")["figures"], {"figure": 7})
        self.assertIn("good was here", (self.results / "good.log").read_text())
        self.assertEqual(self.result("bad")["status"], "failed")
        self.assertIn("broken", self.result("bad")["message"])
        self.assertEqual(self.result("lacking")["status"], "skipped")
        self.assertEqual(self.result("stepping")["figures"]["steps"], {"a": "A", "b": "B", "c": "C"})
        before = {path.name: path.stat().st_mtime_ns for path in self.results.glob("*.json")}
        again = self.check()
        self.assertEqual(again.returncode, 1)
        self.assertEqual(before, {path.name: path.stat().st_mtime_ns for path in self.results.glob("*.json")})
        self.assertEqual(self.check("--only", "good").returncode, 1)
        self.assertNotEqual(before["good.json"], (self.results / "good.json").stat().st_mtime_ns)
        self.assertEqual(before["bad.json"], (self.results / "bad.json").stat().st_mtime_ns)

    def test_tests_without_a_call_of_the_driver_leave_a_sanitizer_nothing_to_check(self):
        sys.path.insert(0, str(SOURCE / "scripts" / "gpu_check"))
        from checks import outcome_of
        from processes import Completed
        passed = "[==========] 2 tests from 1 test suite ran. (129 ms total)\n[  PASSED  ] 2 tests.\n"
        idle = "========= Error: Target application terminated before first instrumented API call\n"
        self.assertEqual(outcome_of(Completed(255, passed + idle, 0.3), True)["status"], 0)
        self.assertEqual(outcome_of(Completed(255, passed + idle, 0.3), False)["status"], 255)
        self.assertEqual(outcome_of(Completed(255, idle, 0.3), True)["status"], 255, "the tests did not end")
        self.assertEqual(outcome_of(Completed(77, passed + "========= ERROR SUMMARY: 1 error\n", 1), True)["status"], 77)
        failed = outcome_of(Completed(1, "[  FAILED  ] ConvertTest.Rounds (2 ms)\n" + idle, 0.3), True)
        self.assertEqual((failed["status"], failed["failed"]), (1, ["ConvertTest.Rounds"]))

    def test_a_part_that_hangs_is_ended_with_all_its_processes(self):
        begin = time.monotonic()
        done = self.check("--only", "hanging")
        self.assertLess(time.monotonic() - begin, 100)  # a process that hangs would take 1000 s
        self.assertEqual(self.result("hanging")["status"], "failed")
        self.assertIn("stopped after 4 s", self.result("hanging")["message"])
        shell = int((self.folder / "pids").read_text())
        self.assertFalse(pathlib.Path(f"/proc/{shell}").exists())
        mine = f"PIDS={self.folder}/pids".encode()
        for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                self.assertNotIn(mine, entry.read_bytes(), entry)
            except OSError:
                pass
        self.assertFalse(any(self.scratch.glob("*")), done.stdout)

    def test_steps_that_are_done_are_not_done_again(self):
        self.go.unlink()
        self.assertEqual(self.check("--only", "good,stepping", "--seconds", "6").returncode, 3)
        self.assertEqual(self.result("stepping")["status"], "stopped")
        self.assertEqual(self.result("stepping")["steps"], {"a": "A"})
        self.go.touch()
        for part in ("bad", "hanging"):
            (self.results / f"{part}.json").write_text(json.dumps({"status": "skipped"}))
        (self.results / "lacking.json").write_text(json.dumps({"status": "skipped"}))
        self.assertEqual(self.check().returncode, 0)
        self.assertEqual(self.result("stepping")["status"], "passed")
        steps = (self.folder / "steps").read_text().split()
        self.assertEqual(steps, ["a", "b", "b", "c"], "the step that was cut off is the only one that was done twice")

    def test_nothing_is_begun_where_the_start_fails(self):
        down = self.folder / "steps.down"
        down.touch()
        done = self.check()
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertEqual([path.name for path in self.results.glob("*.json")], ["start.json"])
        down.unlink()
        self.check("--seconds", "30")
        self.assertEqual((self.result("start")["status"], self.result("good")["status"]), ("passed", "passed"))

    def test_a_bundle_without_data_is_asked_for(self):
        done = subprocess.run([sys.executable, SOURCE / "scripts/gpu-bundle", self.folder / "bundle", "--data-dir", self.folder],
                              capture_output=True, text=True, timeout=100, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.folder} has no humaneval/*, mbpp/*", done.stderr)
        self.assertIn("--without-data does without", done.stderr)
        self.assertFalse((self.folder / "bundle").exists())

    def test_an_archive_is_taken_over_elsewhere(self):
        archive = self.folder / "results.tar.gz"
        self.check("--only", "good,bad", "--archive", archive)
        with tarfile.open(archive) as tar:
            names = tar.getnames()
        self.assertIn("results/good.json", names)
        self.assertIn("results/summary.txt", names)
        elsewhere = self.folder / "elsewhere"
        listed = self.check("--from", archive, "--list", results=elsewhere)
        self.assertRegex(listed.stdout, r"good +passed")
        self.assertRegex(listed.stdout, r"stepping +goes on")
        self.assertEqual((elsewhere / "good.json").read_text(), (self.results / "good.json").read_text())

    def test_an_unknown_part_is_refused(self):
        done = self.check("--only", "goood")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no part is called goood", done.stderr)


@unittest.skipUnless((BINARIES / "evald-gpu-bench-emulated").exists(), "evald-gpu-bench-emulated is not built")
class Emulated(unittest.TestCase):
    def test_a_real_part_on_the_emulated_device(self):
        with tempfile.TemporaryDirectory(prefix="evald-gpu-check-") as folder:
            done = subprocess.run(
                [sys.executable, SOURCE / "scripts/gpu-check", "--emulated", "--only", "start", "--results",
                 f"{folder}/results", "--scratch", folder],
                capture_output=True, text=True, timeout=200, check=False,
                env=dict(os.environ, EVALD_BINARIES=str(BINARIES), PYTHONDONTWRITEBYTECODE="1"))
            start = json.loads((pathlib.Path(folder) / "results/start.json").read_text())
            self.assertEqual(start["status"], "passed", done.stdout + done.stderr)
            self.assertEqual(start["figures"]["devices"][0]["id"], "cuda:GPU-emulated-0")

    def test_the_benchmarks_run_on_the_emulated_device(self):
        checkpoint = SOURCE / "tests/golden/native/llama3"
        for workload in ("pull", "swap", "gpu-generate", "products"):
            with self.subTest(workload):
                done = subprocess.run([BINARIES / "evald-gpu-bench-emulated", workload, "--quick", "--json",
                                       "--checkpoint", checkpoint], capture_output=True, text=True, timeout=200,
                                      check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
                report = json.loads(done.stdout)
                self.assertEqual(report["workload"], workload)
                self.assertGreater(report["value"], 0)
                self.assertGreater(report["baseline_value"], 0)


if __name__ == "__main__":
    unittest.main()
