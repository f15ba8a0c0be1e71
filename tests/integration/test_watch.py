"""evald watch --checkpoints: a folder that a service watches, across restarts, with checkpoints that arrive
slowly."""
import json
import pathlib
import shutil
import signal
import unittest

from evald_case import OVER, QUICKSTART
from service_case import ServiceCase

CHECKPOINTS = QUICKSTART / "checkpoints"


class Watch(ServiceCase):
    WORKERS = 1
    LOG = ()  # nobody reads what is said

    def setUp(self):
        super().setUp()
        self.folder_watched = self.folder / "train" / "checkpoints"
        self.folder_watched.mkdir(parents=True)
        self.make_suite(12, 8)
        self.eval = self.write_config(engine={"name": "emulated"}, cache_dir=None, state_dir=None, output=None, workers=None,
                                      metrics=None)

    def restart(self, how=signal.SIGKILL):
        self.daemon.send_signal(how)
        self.daemon.communicate(timeout=60)
        self.serve()

    def get(self, path):
        return self.call("GET", path)

    def runs(self):
        """Names of the checkpoints that have runs, in the order of submission."""
        return [pathlib.Path(run["checkpoint"]).name for run in reversed(self.get("/v1/runs?limit=200")["runs"])]

    def all_done(self, names):
        def there():
            runs = self.get("/v1/runs?limit=200")["runs"]
            return len(runs) >= len(names) and all(run["state"] in OVER for run in runs)
        self.wait_for(f"runs of {names}", there, 60)
        self.assertEqual(self.runs(), names)
        self.assertEqual({run["state"] for run in self.get("/v1/runs")["runs"]}, {"done"})

    def watch(self, *arguments):
        done = self.evald("watch", "--server", self.url, *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def follow(self, *arguments):
        process = self.start(*arguments)

        def end():
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.addCleanup(end)
        return process

    def register(self, *arguments):
        out = self.watch("--checkpoints", self.folder_watched, self.eval, "--settle", "0.5", "--detach", *arguments)
        return out.strip()

    def add(self, name, source="step-00100"):
        """A whole checkpoint, at once."""
        shutil.copytree(CHECKPOINTS / source, self.folder / "making")
        (self.folder / "making").rename(self.folder_watched / name)

    def test_each_checkpoint_once_over_restarts_and_slow_copies(self):
        self.serve()
        self.add("step-1")  # exists before the watch
        watch = self.register()
        self.assertEqual(self.register(), watch, "the same registration is the same watch")
        self.all_done(["step-1"])
        # One checkpoint arrives file by file, its weights last and in pieces. The service is killed meanwhile.
        source, slow = CHECKPOINTS / "step-00350", self.folder_watched / "step-2"
        slow.mkdir()
        for file in sorted(source.iterdir(), key=lambda file: file.suffix == ".safetensors"):
            if file.suffix != ".safetensors":
                shutil.copy(file, slow / file.name)
        weights = (source / "model.safetensors").read_bytes()
        (slow / "model.safetensors").write_bytes(weights[: len(weights) // 2])
        half = self.folder / "half"  # another stays half-written and never becomes whole
        shutil.copytree(CHECKPOINTS / "step-00600", half)
        with open(half / "model.safetensors", "r+b") as file:
            file.truncate(1_000_000)
        half.rename(self.folder_watched / "step-3")
        self.restart()
        self.assertEqual([one["id"] for one in self.get("/v1/watches")["watches"]], [watch])
        self.add("step-4")  # seen by the service's new life, later than both
        self.all_done(["step-1", "step-4"])
        with open(slow / "model.safetensors", "ab") as file:
            file.write(weights[len(weights) // 2:])
        self.all_done(["step-1", "step-4", "step-2"])
        self.restart(signal.SIGTERM)
        self.add("step-5")
        self.all_done(["step-1", "step-4", "step-2", "step-5"])
        shown = self.watch("--list")
        self.assertIn(str(self.folder_watched), shown)
        self.assertIn("step-5  submitted", shown)
        # The watch is removed and registered again. Checkpoints that were evaluated are not evaluated again.
        self.assertIn("removed", self.watch("--remove", watch))
        self.assertEqual(self.get("/v1/watches")["watches"], [])
        self.register("--policy", "every-1")
        self.add("step-6")
        self.all_done(["step-1", "step-4", "step-2", "step-5", "step-6"])

    def test_a_marker_and_the_newest(self):
        self.serve()
        for name in ("step-1", "step-2", "step-3"):
            self.add(name)
        for name in ("step-1", "step-2"):
            (self.folder_watched / name / "DONE").touch()
        self.register("--marker", "DONE", "--policy", "newest")
        self.all_done(["step-2"])
        (self.folder_watched / "step-3" / "DONE").touch()
        watch = self.get("/v1/watches")["watches"][0]
        self.assertEqual((watch["marker"], watch["which"]), ("DONE", "newest"))
        # The kernel reports no file in a folder below. An announcement makes the watch look.
        self.call("POST", "/v1/checkpoints", {"path": str(self.folder_watched / "step-3")})
        self.all_done(["step-2", "step-3"])
        notes = [(note["checkpoint"], note["decision"]) for note in self.get("/v1/watches")["watches"][0]["recent"]]
        self.assertEqual(notes, [("step-1", "passed-over"), ("step-2", "submitted"), ("step-3", "submitted")])

    def test_what_comes_of_it_is_shown(self):
        self.serve()
        self.add("step-1")
        shown = self.follow("watch", "--server", self.url, "--checkpoints", self.folder_watched, self.eval, "--settle", "0.2")
        self.assertRegex(shown.stdout.readline(), r"^step-1  submitted as [0-9a-f]{16}$")
        self.assertRegex(shown.stdout.readline(), r"^step-1  done: .*sums \d\.\d{4}")
        self.add("step-2")
        self.assertRegex(shown.stdout.readline(), r"^step-2  submitted")
        shown.send_signal(signal.SIGINT)
        out, err = shown.communicate(timeout=60)
        self.assertEqual(shown.returncode, 0, err)
        self.assertIn("watch --remove watch-", err)
        self.assertEqual(len(self.get("/v1/watches")["watches"]), 1, "the watch goes on")
        events = self.follow("watch", "--server", self.url, "--checkpoints", self.folder_watched, self.eval, "--settle", "0.2", "--json")
        watch = json.loads(events.stdout.readline())
        self.watch("--remove", watch["id"])
        out, err = events.communicate(timeout=60)
        self.assertEqual(events.returncode, 0, err)
        self.assertEqual(json.loads(out.splitlines()[-1])["data"]["state"], "removed")

    def test_mistakes_are_said_at_once(self):
        self.serve()
        broken = self.write_config("broken.yaml", tasks=["summs"], engine={"name": "emulated"})
        for arguments, words in (
                (["--checkpoints", self.folder / "nowhere" / "checkpoints", self.eval], "is not a folder"),
                (["--checkpoints", self.folder_watched, broken], "summs"),
                (["--checkpoints", self.folder_watched, self.eval, "--policy", "some"], "every-N"),
                (["--checkpoints", self.folder_watched], "expected one of"),
                (["--marker", "DONE", "run"], "--checkpoints"),
                ([self.eval], "--checkpoints DIR"),
                (["--remove", "watch-none"], "no watch has this id")):
            with self.subTest(words):
                done = self.evald("watch", "--server", self.url, "--detach" if "--checkpoints" in map(str, arguments) else "-q", *arguments)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)
        self.assertEqual(self.get("/v1/watches")["watches"], [])

    def test_a_watch_of_the_configuration_is_shown_and_stays(self):
        watched = [{"checkpoints": str(self.folder_watched), "eval": str(self.eval), "settle_s": 0.2}]
        self.serve(watch=watched)
        self.add("step-1")
        self.all_done(["step-1"])
        watch = self.get("/v1/watches")["watches"][0]
        self.assertTrue(watch["configured"])
        done = self.evald("watch", "--server", self.url, "--remove", watch["id"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("configuration", done.stderr)


if __name__ == "__main__":
    unittest.main()
