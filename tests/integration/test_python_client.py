"""The Python client against a real service."""
import json
import os
import pathlib
import signal
import sys
import threading
import unittest

from evald_case import BINARIES
from service_case import ServiceCase

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "clients" / "python" / "src"))
import evald  # noqa: E402


class PythonClient(ServiceCase):
    LOG = ()

    def setUp(self):
        super().setUp()
        self.make_suite(60, 20)
        self.serve()
        self.client = evald.Client(self.url, token="", patience=20)

    def config(self, **changes):
        return json.loads(self.write_config(**changes).read_text())

    def test_a_run_from_submission_to_samples(self):
        run = self.client.submit(self.config(), base=self.folder, key="first", priority=3)
        self.assertEqual((run["state"] in ("queued", "preparing", "running"), run["priority"]), (True, 3))
        again = self.client.submit(self.config(), base=self.folder, key="first", priority=3)
        self.assertEqual(again["id"], run["id"], "the key gives the first run")
        done = self.client.wait(run, 60)
        self.assertEqual(done["state"], "done")
        results = self.client.results(done)
        self.assertEqual(results, json.loads((pathlib.Path(done["directory"]) / "results.json").read_text()))
        samples = list(self.client.samples(done, "sums"))
        self.assertEqual(sorted(sample["doc_id"] for sample in samples), list(range(60)))
        right = list(self.client.samples(done["id"], "sums", correct=True))
        self.assertEqual(right, [sample for sample in samples if sample["correct"]])
        marks = next(self.client.marks(done, "sums"))
        self.assertEqual(marks["marks"].count("r"), len(right))
        self.assertIn("<html", self.client.report(done))
        self.assertEqual([one["id"] for one in self.client.runs(state="done")], [run["id"]])
        self.assertEqual(self.client.change(done, title="the first", tags=["a"])["tags"], ["a"])

    def test_a_file_is_submitted_with_its_folder(self):
        file = self.write_config()
        self.assertEqual(self.client.wait(self.client.submit(file), 60)["state"], "done")

    def test_pages(self):
        ids = [self.client.submit(self.config(), base=self.folder)["id"] for _ in range(5)]
        self.client._http.json, real = None, self.client._http.json
        asked = []

        def two_each(method, path, query=None, **options):
            asked.append(path)
            return real(method, path, query={**(query or {}), "limit": 2}, **options)
        self.client._http.json = two_each
        self.assertEqual([run["id"] for run in self.client.runs()], ids[::-1])
        self.assertEqual(len(asked), 3)

    def test_refusals_carry_the_services_words(self):
        with self.assertRaises(evald.Refused) as caught:
            self.client.submit(self.config(tasks=["sums", "chioce"]), base=self.folder)
        self.assertIn("did you mean 'choice'", str(caught.exception))
        with self.assertRaises(evald.InvalidRequest) as caught:
            self.client._http.json("POST", "/v1/runs", body={"priorty": 1})
        self.assertIn("priorty", str(caught.exception))
        self.assertEqual(caught.exception.errors[0]["pointer"], "/priorty")
        for call in (self.client.run, self.client.cancel, self.client.results):
            with self.assertRaises(evald.NotFound):
                call("none")
        with self.assertRaises(evald.NotFound):
            self.client.run("../healthz")
        done = self.client.wait(self.client.submit(self.config(), base=self.folder), 60)
        with self.assertRaises(evald.Conflict):
            self.client.pause(done)
        with self.assertRaises(evald.ConnectionFailed):
            evald.Client("http://127.0.0.1:1", token="", patience=0.1).run("any")
        with self.assertRaises(evald.EvaldError):
            evald.Client("127.0.0.1:8642")

    def test_a_run_that_is_cancelled_or_takes_long(self):
        slow = {"name": "emulated", "delay_ms": 500, "concurrency": 1}
        run = self.client.submit(self.config(engine=slow), base=self.folder)
        with self.assertRaises(TimeoutError):
            self.client.wait(run, 0.5)
        self.assertEqual(self.client.pause(run)["state"], "paused")
        self.client.resume(run)
        self.client.cancel(run)
        with self.assertRaises(evald.RunIncomplete) as caught:
            self.client.wait(run, 60)
        self.assertEqual(caught.exception.run["state"], "cancelled")
        self.assertEqual(self.client.wait(run, 60, check=False)["state"], "cancelled")

    def test_events_go_on_after_the_service_was_killed(self):
        port = int(self.url.rsplit(":", 1)[1])
        run = self.client.submit(self.config(engine={"name": "emulated", "delay_ms": 150, "concurrency": 2}), base=self.folder)
        seen, killed = [], threading.Event()

        def follow():
            for event in self.client.follow(run):
                seen.append(event)
                if event["type"] == "run.progress":
                    killed.set()
        thread = threading.Thread(target=follow)
        thread.start()
        self.assertTrue(killed.wait(60))
        self.daemon.send_signal(signal.SIGKILL)
        self.daemon.communicate()
        self.serve(listen=f"127.0.0.1:{port}")
        self.assertEqual(self.client.wait(run, 120)["state"], "done")
        thread.join(60)
        self.assertFalse(thread.is_alive(), "the stream ends with the run")
        numbers = [event["sequence"] for event in seen]
        self.assertEqual(numbers, sorted(set(numbers)), "no event came twice")
        states = [event["data"]["state"] for event in seen if event["type"] == "run.state"]
        self.assertEqual((states[0], states[-1]), ("queued", "done"), states)

    def test_watches(self):
        folder = self.folder / "steps"
        folder.mkdir()
        config = self.config()
        config.pop("checkpoint", None)
        watch = self.client.add_watch(str(folder), {**config, "task_dirs": [str(self.tasks)]}, which="newest")
        self.assertEqual([one["id"] for one in self.client.watches()], [watch["id"]])
        self.assertEqual(self.client.watch(watch["id"])["checkpoints"], str(folder))
        self.client.remove_watch(watch["id"])
        self.assertEqual(self.client.watches(), [])
        self.wait_for("the service's own host", lambda: [host["id"] for host in self.client.hosts()] == ["local"])
        self.wait_for("its workers", self.client.workers)
        self.assertEqual((self.client.queue(), self.client.launchers()), ([], []))

    def test_types_are_those_of_the_document(self):
        schemas = json.loads((SOURCE / "docs" / "openapi.json").read_text())["components"]["schemas"]
        for name in ("Run", "Progress", "Sample", "Marks", "Event", "Watch"):
            members = {key for kind in getattr(evald, name).__mro__ for key in getattr(kind, "__annotations__", {})}
            self.assertEqual(members, set(schemas[name]["properties"]), name)


if __name__ == "__main__":
    unittest.main()
