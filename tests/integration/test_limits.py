"""Users of one service do not delay each other: judgements in turns, quotas, watches that are removed."""
import concurrent.futures
import http.client
import json
import pathlib
import shutil
import signal
import unittest
import urllib.parse

from evald_case import QUICKSTART
from service_case import ServiceCase

# An evald-prepare that notes each judgement. If its input contains `word`, it waits until the file `go` exists.
HELD = """input=$(cat)
case $input in *'"work":"check"'*)
  echo started >> {starts}
  case $input in *{word}*) echo $$ >> {began}; while [ ! -e {go} ]; do sleep 0.05; done;; esac;;
esac
exec {real} "$@" <<< "$input"
"""


class Limits(ServiceCase):
    def setUp(self):
        super().setUp()
        self.starts, self.began, self.go = (self.folder / name for name in ("starts", "began", "go"))
        self.addCleanup(self.go.touch)

    def hold(self, word):
        """From now on evald-prepare does not answer if its input contains this word."""
        script = HELD.replace("{starts}", str(self.starts)).replace("{began}", str(self.began))
        self.use_preparing(script.replace("{go}", str(self.go)).replace("{word}", word))

    def lines(self, file):
        return len(file.read_text().splitlines()) if file.exists() else 0

    def held(self, count=1):
        self.wait_for("a judgement", lambda: self.lines(self.began) >= count, 60)

    def ask(self, method, path, body=None, timeout=60, **headers):
        """Returns status, header fields and answer."""
        where = urllib.parse.urlparse(self.url)
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=timeout)
        try:
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json", **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), json.loads(answer.read())
        finally:
            connection.close()

    def config(self, name):
        """Submits a slow run. evald-prepare sees the name."""
        (self.folder / name).mkdir(exist_ok=True)
        return {"tasks": ["sums", "choice"], "task_dirs": ["tasks", name],
                "engine": {"name": "emulated", "delay_ms": 500, "concurrency": 1}}

    def post(self, user, name="plain", **headers):
        return self.ask("POST", "/v1/runs", {"config": self.config(name), "base": str(self.folder), "user": user}, **headers)

    def watch(self, user, **changes):
        folder = self.folder / "train"
        folder.mkdir(exist_ok=True)
        return {"checkpoints": str(folder), "config": self.config("plain"), "base": str(self.folder), "user": user, **changes}

    def test_a_user_who_submits_much_holds_up_nobody(self):
        self.make_suite(4, 4)
        self.hold("slowly")
        self.serve()
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            asked = [pool.submit(self.post, "ada", "slowly") for _ in range(40)]
            self.held()
            refused = self.wait_for("refusals", lambda: len(done := [one for one in asked if one.done()]) == 7 and done)
            self.assertEqual(self.post("bob")[0], 201, "another user's submission waits")
            for one in refused:  # one is being judged and 32 wait
                status, fields, problem = one.result()
                self.assertEqual((status, problem["type"]), (429, "urn:evald:problem:judging"), problem)
                self.assertIn("Retry-After", fields)
                self.assertIn("32 submissions of the user 'ada'", problem["detail"])
            self.assertEqual(self.lines(self.began), 1, "two of one user are judged at once")
            self.daemon.send_signal(signal.SIGTERM)
            others = [one for one in asked if one not in refused]
            self.assertEqual({one.result()[0] for one in others}, {503}, "a drain answers those who wait")

    def test_what_is_over_its_quota_is_neither_judged_nor_written(self):
        self.make_suite(400, 4)
        self.hold("slowly")
        self.serve(quotas={"runs_per_user": 1}, active_runs=1)
        first = self.post("ada", **{"Idempotency-Key": "first"})
        self.assertEqual(first[0], 201)
        starts = self.lines(self.starts)
        again = self.post("ada", **{"Idempotency-Key": "first"})
        self.assertEqual((again[0], again[2]["id"]), (200, first[2]["id"]))
        status, _, problem = self.post("ada")
        self.assertEqual((status, problem["type"]), (429, "urn:evald:problem:runs"))
        # A watch whose run is over the quota reports that at each look.
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", self.folder / "train" / "step-1")
        self.call("POST", "/v1/watches", self.watch("ada", settle_s=0, poll_s=0.1), 201)
        recent = self.wait_for("a note", lambda: self.call("GET", "/v1/watches")["watches"][0]["recent"])
        self.assertEqual(recent[0]["decision"], "postponed")
        self.assertIn("'ada' has 1 runs", recent[0]["detail"])
        self.assertEqual(self.lines(self.starts), starts + 1, "only the watch itself was judged")
        self.assertEqual(len(list((self.folder / "state" / "runs").iterdir())), 1)

    def test_a_quota_that_is_used_up_meanwhile_holds(self):
        self.make_suite(400, 4)
        self.hold("slowly")
        self.serve(quotas={"runs_per_user": 1}, active_runs=1)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            both = [pool.submit(self.post, "ada", "slowly") for _ in range(2)]
            self.held()
            self.go.touch()
            self.assertEqual(sorted(one.result()[0] for one in both), [201, 429])
        self.assertEqual(len(list((self.folder / "state" / "runs").iterdir())), 1)

    def cancelled(self, user, name):
        run = self.post(user, name)[2]
        self.call("POST", f"/v1/runs/{run['id']}/cancel")
        self.finished(run)
        return run

    def test_runs_without_anything_computed_do_not_pile_up(self):
        self.make_suite(400, 4)
        self.serve(quotas={"unused_runs_per_user": 2}, active_runs=1)
        other = self.cancelled("bob", "plain")
        first = self.post("ada")[2]  # keeps the place of a run at work
        ended = []
        for _ in range(5):
            run = self.post("ada")[2]
            self.call("POST", f"/v1/runs/{run['id']}/cancel")
            self.finished(run)
            ended.append(run)
        kept = {run["id"] for run in (other, first, *ended[-2:])}
        listed = lambda: {run["id"] for run in self.call("GET", "/v1/runs")["runs"]}
        self.wait_for("the removal of the other runs", lambda: listed() == kept)
        folders = {folder.name for folder in (self.folder / "state" / "runs").iterdir()}
        self.assertEqual(folders, {pathlib.Path(self.run_of({"id": run})["directory"]).name for run in kept})
        self.call("GET", f"/v1/runs/{ended[0]['id']}", status=404)
        self.restart(quotas={"unused_runs_per_user": 2}, active_runs=1)
        self.assertEqual(listed(), kept, "a removed run is taken up again")

    def test_a_cache_of_submitted_tasks_stays_within_its_limit(self):
        self.serve(cache_limit="8 MiB")
        prepared = self.folder / "cache" / "prepared"
        size = lambda: sum(file.stat().st_size for file in prepared.rglob("*"))

        def run_of_task(number, times):
            (self.tasks / f"big{number}.yaml").write_text(json.dumps({
                "task": f"big{number}", "dataset_path": "json", "test_split": "test",
                "dataset_kwargs": {"data_files": {"test": "big.jsonl"}}, "output_type": "generate_until",
                "doc_to_text": "{{q*%d}}" % times, "doc_to_target": "a",
                "metric_list": [{"metric": "exact_match"}]}))
            config = {"tasks": [f"big{number}"], "task_dirs": ["tasks"], "engine": {"name": "emulated"}}
            status, _, run = self.ask("POST", "/v1/runs", {"config": config, "base": str(self.folder), "user": "ada"})
            self.assertEqual(status, 201, run)
            return self.finished(run)

        self.tasks.mkdir(exist_ok=True)
        (self.tasks / "big.jsonl").write_text(json.dumps({"q": "x" * 1000, "a": "1"}) + "\n")
        for number in range(4):
            run = run_of_task(number, 3000 + number)  # 3 MB each
            self.assertEqual(run["state"], "done", run)
            self.assertLessEqual(size(), 8 << 20)
        keys = {folder.name for folder in prepared.iterdir()}
        self.assertEqual(run_of_task(3, 3003)["state"], "done")
        self.assertEqual({folder.name for folder in prepared.iterdir()}, keys, "a kept task is found again")
        refused = run_of_task(9, 9000)
        self.assertEqual(refused["state"], "failed", refused)
        self.assertIn("'cache_limit'", refused["problems"][0])
        self.assertEqual(run_of_task(4, 3004)["state"], "done")
        self.assertLessEqual(size(), 8 << 20)

    def test_resumes_count(self):
        self.make_suite(400, 4)
        self.serve(quotas={"runs_per_user": 1}, active_runs=1)
        run = self.cancelled("ada", "slowly")
        other = self.post("ada")[2]
        status, fields, problem = self.ask("POST", f"/v1/runs/{run['id']}/resume")
        self.assertEqual((status, problem["type"]), (429, "urn:evald:problem:runs"), problem)
        self.assertIn("Retry-After", fields)
        self.call("POST", f"/v1/runs/{other['id']}/cancel")
        self.finished(other)
        self.hold("slowly")
        self.restart(quotas={"runs_per_user": 1}, active_runs=1)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            resumed = pool.submit(self.ask, "POST", f"/v1/runs/{run['id']}/resume")
            self.held()
            self.assertEqual(self.post("ada")[0], 429, "one that is just being resumed does not count")
            self.assertEqual(self.ask("POST", f"/v1/runs/{other['id']}/resume")[0], 429)
            # The last action counts, at once.
            self.assertEqual(self.call("POST", f"/v1/runs/{run['id']}/cancel")["state"], "cancelled")
            self.assertEqual(resumed.result(30)[0], 409)
            resumed = pool.submit(self.ask, "POST", f"/v1/runs/{run['id']}/resume")
            self.held(2)
            self.go.touch()
            self.assertEqual(resumed.result()[0], 200)

    def test_a_drain_answers_who_resumes(self):
        self.make_suite(4, 4)
        self.serve()
        run = self.cancelled("ada", "slowly")
        self.hold("slowly")
        self.restart()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            resumed = pool.submit(self.ask, "POST", f"/v1/runs/{run['id']}/resume")
            self.held()
            self.daemon.send_signal(signal.SIGTERM)
            status, _, problem = resumed.result()
            self.assertEqual(status, 503)
            self.assertIn("stopping", problem["detail"])
        self.assertEqual(self.daemon.wait(60), 0)
        record = json.loads((pathlib.Path(run["directory"]) / "run.json").read_text())
        self.assertEqual(record["state"], "cancelled")

    def test_a_watch_is_removed_while_its_checkpoint_is_judged(self):
        self.make_suite(4, 4)
        self.hold("step-1")
        self.serve()
        watch = self.call("POST", "/v1/watches", self.watch("ada", settle_s=0), 201)
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", self.folder / "making")
        (self.folder / "making").rename(self.folder / "train" / "step-1")
        self.held()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            removed = [pool.submit(self.ask, "DELETE", f"/v1/watches/{watch['id']}", timeout=30) for _ in range(2)]
            self.assertEqual(sorted(one.result()[0] for one in removed)[0], 200)
        self.assertEqual(self.call("GET", "/v1/watches")["watches"], [])
        self.wait_for("the end of the judgement", lambda: self.ended(int(self.began.read_text().split()[0])), 30)
        self.assertFalse(list((self.folder / "state" / "watch").glob("*.json")), "it remembers something")
        self.go.touch()
        self.call("POST", "/v1/watches", self.watch("ada", settle_s=0), 201)
        self.wait_for("the run", lambda: self.call("GET", "/v1/runs")["runs"], 60)

    def test_an_announcement_under_another_name_of_the_folder_waits_for_its_users_turn_alone(self):
        """The service asks the file system which folder a name means. The answer may be slow, so the thread that
        reads results does not wait for it."""
        self.make_suite(4, 4)
        self.hold("slowly")
        self.serve()
        self.call("POST", "/v1/watches", self.watch("ada"), 201)
        (self.folder / "link").symlink_to(self.folder / "train")
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            judged = pool.submit(self.post, "", "slowly")
            self.held()
            named = [pool.submit(self.ask, "POST", "/v1/checkpoints", {"path": str(self.folder / "link" / "step-1")}) for _ in range(4)]
            status, _, answer = self.ask("POST", "/v1/checkpoints", {"path": str(self.folder / "train" / "step-1")}, timeout=30)
            self.assertEqual((status, answer["known"]), (200, False))
            self.assertEqual(self.post("bob")[0], 201)
            self.assertFalse([one for one in named if one.done()])
            self.go.touch()
            self.assertEqual(judged.result()[0], 201)
            self.assertEqual({one.result()[0] for one in named}, {200})
        self.assertEqual(self.ask("POST", "/v1/checkpoints", {"path": str(self.folder / "elsewhere" / "step-1")})[0], 422)

    def test_a_user_has_so_many_watches(self):
        self.make_suite(4, 4)
        self.serve(quotas={"watches_per_user": 2})

        def add(user, poll):
            return self.ask("POST", "/v1/watches", self.watch(user, poll_s=poll))
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = [one.result() for one in [pool.submit(add, "ada", poll) for poll in (5, 6, 7, 8)]]
        self.assertEqual(sorted(answer[0] for answer in answers), [201, 201, 429, 429])
        problem = next(answer[2] for answer in answers if answer[0] == 429)
        self.assertEqual(problem["type"], "urn:evald:problem:watches")
        self.assertIn("'ada' has 2 watches", problem["detail"])
        made = [answer[2] for answer in answers if answer[0] == 201]
        self.assertEqual(add("ada", made[0]["poll_s"])[0], 200, "the same watch is the first one")
        self.assertEqual(add("bob", 5)[0], 201)
        self.call("DELETE", f"/v1/watches/{made[0]['id']}")
        self.wait_for("room for another watch", lambda: add("ada", 9)[0] == 201, 30)


if __name__ == "__main__":
    unittest.main()
