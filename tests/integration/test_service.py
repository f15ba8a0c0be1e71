"""evald serve: several runs on warm workers, kills, drains, priorities, watched folders."""
import concurrent.futures
import fcntl
import http.client
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time
import unittest
import unittest.mock
import urllib.error
import urllib.request

from evald_case import QUICKSTART
from service_case import ServiceCase, answer_to

SEED = int(os.environ.get("EVALD_TEST_SEED", "1"))
KILLS = int(os.environ.get("EVALD_TEST_KILLS", "6"))


class Service(ServiceCase):
    def test_runs_on_warm_workers(self):
        self.make_suite(40, 20)
        expected = self.undisturbed()
        self.serve()
        runs = [self.submit(engine=self.ENGINE) for _ in range(3)]
        pids = set()
        for run in runs:
            self.check(expected, self.finished(run))
            pids.add(self.worker_pids())  # a run may be over before the second worker has begun
        self.assertEqual(len(pids), 1, "a worker outlives a run")

    def test_a_warm_worker_goes_from_one_checkpoint_to_the_next(self):
        self.serve()
        base = {"tasks": ["quickstart_choice"], "task_dirs": [str(QUICKSTART / "tasks")], "engine": {"name": "native"}}
        runs = [self.submit(checkpoint=str(QUICKSTART / "checkpoints" / step), **base) for step in ("step-00100", "step-01200")]
        found = [self.finished(run)["scores"]["quickstart_choice"]["value"] for run in runs]
        self.assertEqual(found, [0.3125, 1.0])
        workers = self.call("GET", "/v1/workers")["workers"]
        self.assertEqual([w["restarts"] for w in workers], [0, 0])
        self.assertLessEqual(len(self.call("GET", "/v1/staged")["staged"]), 2)

    def small_staging_root(self, size):
        """Mounts a tmpfs of this size as the staging root of self.serve()."""
        if os.geteuid() != 0:
            self.skipTest("mounting a small tmpfs needs root")
        root = self.folder / "staging"
        root.mkdir(mode=0o700)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(root)]).returncode != 0:
            self.skipTest("mounting is not allowed here")
        self.addCleanup(subprocess.run, ["umount", "-l", str(root)])
        self.addCleanup(self.kill)
        return root

    def act(self, run, action):
        return self.call("POST", f"/v1/runs/{run['id']}/{action}", {})

    def slow(self, step, delay_ms, concurrency=1):
        """A run with a staged checkpoint that computes so many documents at a time on each device."""
        return self.submit(tasks=["sums"], checkpoint=str(QUICKSTART / "checkpoints" / step),
                           engine={"name": "emulated", "concurrency": concurrency, "delay_ms": delay_ms})

    def quick(self, step):
        return self.submit(tasks=["quickstart_choice"], task_dirs=[str(QUICKSTART / "tasks")], engine={"name": "native"},
                           checkpoint=str(QUICKSTART / "checkpoints" / step))

    def paused(self, run):
        self.wait_for("the run to be at work", lambda: self.run_of(run)["state"] == "running")
        self.assertEqual(self.act(run, "pause")["state"], "paused")
        return run

    def test_a_paused_run_gives_its_space_up_and_goes_on_later(self):
        self.make_suite(2000, 8)
        self.small_staging_root("7m")  # holds one checkpoint of 4.3 MiB
        self.serve()
        paused = self.paused(self.slow("step-00100", 50, concurrency=4))
        other = self.finished(self.quick("step-01200"))
        self.assertEqual((other["state"], other["problems"]), ("done", []))
        found = self.run_of(paused)
        self.assertEqual((found["state"], found["problems"], found["exit_status"]), ("paused", [], None))
        self.daemon.send_signal(signal.SIGTERM)
        self.assertEqual(self.daemon.wait(60), 0)
        self.serve()
        self.assertEqual(self.run_of(paused)["state"], "paused", "a run stays paused in the service's next life")
        self.act(paused, "resume")
        found = self.finished(paused)
        self.assertEqual((found["state"], found["problems"], found["progress"]["scored"]), ("done", [], 2000))

    def test_a_run_waits_for_a_paused_run_that_gives_its_space_up_late(self):
        self.make_suite(8, 8)
        self.small_staging_root("7m")
        self.serve()
        paused = self.slow("step-00100", 3_600_000)
        busy = lambda: any(worker["state"] == "working" for worker in self.call("GET", "/v1/workers")["workers"])
        self.wait_for("a document to be under way", busy)
        self.paused(paused)
        other = self.quick("step-01200")
        name = f"run {paused['id']} (paused; gives its space up"
        self.wait_for("the run to say for what it waits", lambda: name in "".join(self.run_of(other)["problems"]))
        self.assertEqual(self.run_of(other)["state"], "queued")
        self.assertEqual(self.act(paused, "resume")["state"], "queued", "its space is promised to the other run")
        self.assertEqual(self.act(paused, "pause")["state"], "paused")
        self.act(paused, "cancel")
        found = self.finished(other)
        self.assertEqual((found["state"], found["problems"]), ("done", []))
        self.assertEqual(self.finished(paused)["state"], "cancelled")

    def test_actions_on_a_run_that_gives_its_space_up_are_not_refused(self):
        self.make_suite(6000, 8)
        self.small_staging_root("7m")
        self.serve()
        run = self.paused(self.slow("step-00100", 50, concurrency=4))
        other = self.quick("step-01200")
        self.wait_for("the run to give its space up", lambda: f"run {run['id']} (paused; gives" in "".join(self.run_of(other)["problems"]))
        until = time.monotonic() + 6
        while time.monotonic() < until:
            self.assertIn(self.act(run, "resume")["state"], ("queued", "preparing", "running"))
            self.assertEqual(self.act(run, "pause")["state"], "paused")
        self.assertEqual(self.finished(other)["state"], "done")
        self.assertEqual(self.act(run, "cancel")["id"], run["id"])
        self.assertEqual(self.finished(run)["state"], "cancelled")

    def test_a_service_that_is_killed_while_a_run_gives_its_space_up(self):
        self.make_suite(2000, 8)
        self.small_staging_root("7m")
        for point in ("run.ended", "service.run_closed"):
            self.serve(environment={**os.environ, "EVALD_FAIL_POINT": "evald/" + point})
            run = self.paused(self.slow("step-00100", 50, concurrency=4))
            other = self.quick("step-01200")
            self.daemon.wait(120)
            self.serve()
            self.assertEqual(self.run_of(run)["state"], "paused")
            self.assertEqual(self.finished(other)["state"], "done")
            self.act(run, "resume")
            self.assertEqual(self.finished(run)["progress"]["scored"], 2000)
            self.stop()

    def test_a_checkpoint_that_finds_no_room_in_the_staging_root_waits(self):
        # One checkpoint of 4.3 MiB fits. The file system above the root has room for both.
        self.small_staging_root("7m")
        self.serve()
        self.agent()
        shown = self.wait_for("the root's room", lambda: self.call("GET", "/v1/hosts")["hosts"][0]["shared_memory"]["total"])
        self.assertEqual(shown, 7 << 20)
        base = {"tasks": ["quickstart_choice"], "task_dirs": [str(QUICKSTART / "tasks")], "engine": {"name": "native"}}
        runs = [self.submit(checkpoint=str(QUICKSTART / "checkpoints" / step), **base) for step in ("step-00100", "step-01200")]
        found = [self.finished(run) for run in runs]
        self.assertEqual([(run["state"], run["problems"]) for run in found], [("done", [])] * 2)

    def test_a_run_whose_space_another_run_takes_first_waits_for_it(self):
        root = self.small_staging_root("7m")  # holds one checkpoint of 4.3 MiB
        self.serve()
        turn = os.open(root, os.O_RDONLY)
        self.addCleanup(os.close, turn)
        fcntl.flock(turn, fcntl.LOCK_EX)  # both runs find the space free, and neither takes it yet
        runs = [self.quick(step) for step in ("step-00100", "step-01200")]
        self.wait_for("both runs to start", lambda: all(self.run_of(run)["state"] == "preparing" for run in runs), 60)
        fcntl.flock(turn, fcntl.LOCK_UN)
        found = [self.finished(run) for run in runs]
        self.assertEqual([(run["state"], run["problems"]) for run in found], [("done", [])] * 2)

    def test_a_killed_daemon_loses_nothing(self):
        self.make_suite(300, 100)
        expected = self.undisturbed()
        rng = random.Random(SEED)
        print(f"seed {SEED}, {KILLS} kills", flush=True)
        self.serve()
        # More attempts than kills (up to 100), so a trial is not given up, however often it is hit.
        often = min(100, KILLS + 1)
        config = {"engine": self.ENGINE, "workers": {"count": 2, "threads": 1, "max_attempts": often},
                  "metrics": {"processes": 2, "max_attempts": often}}
        runs = [self.submit(key=f"run-number-{i}", **config) for i in range(2)]
        for _ in range(KILLS):
            victim = rng.choice(["daemon", "evald", "evald-worker", "evald-metric"])  # evald: the agent
            wait = rng.uniform(0, 0.6)
            try:
                self.daemon.wait(wait)
            except Exception:
                pass
            if victim == "daemon":
                self.restart()
                self.assertEqual(self.submit(200, key="run-number-0", **config)["id"], runs[0]["id"])
            else:
                found = self.children(self.agent(), victim)
                found = [self.agent()] if victim == "evald" else found
                if found:
                    try:
                        os.kill(rng.choice(found), signal.SIGKILL)
                    except ProcessLookupError:
                        pass  # the process was killed just now, or with its agent, and the service does not know yet
        for run in runs:
            self.check(expected, self.finished(run))
        self.assertEqual(len(self.call("GET", "/v1/runs")["runs"]), 2)

    def test_workers_outlive_the_daemon(self):
        self.make_suite(1500, 50)
        expected = self.undisturbed()
        journal = self.keep_journal()
        self.serve()
        engine = {**self.ENGINE, "delay_ms": 100, "concurrency": 8}
        run = self.submit(engine=engine)
        pids = lambda: {w["id"]: w["pid"] for w in self.call("GET", "/v1/workers")["workers"]}
        lines = lambda: len(journal.read_text().splitlines()) if journal.exists() else 0
        self.wait_for("some answers", lambda: lines() > 30)
        agent = self.agent()
        # The service shows a change up to a second later.
        before = self.wait_for("both workers to be shown", lambda: (shown := pids()) and all(shown.values()) and shown)
        restarts = 2
        for _ in range(restarts):
            told = lines()
            self.wait_for("new work", lambda: lines() > told + 20)
            self.daemon.kill()
            self.daemon.communicate()
            alone = lines()
            self.wait_for("answers while no daemon is there", lambda: lines() > alone + 4)
            self.serve()
            self.assertEqual(self.agent(), agent)
            self.wait_for("the same workers, once their agent has found the daemon", lambda: pids() == before)
        self.check(expected, self.finished(run))
        self.assertEqual(pids(), before)
        answered = journal.read_text().splitlines()
        again = len(answered) - len(set(answered))
        print(f"{len(answered)} answers, {again} of them given before", flush=True)
        in_engines = 2 * engine["concurrency"]
        self.assertLessEqual(again, restarts * in_engines, "only what was in an engine when it was revoked is done again")
        self.assertEqual(len(set(answered)), 1500 + 4 * 50)

    def test_an_agent_whose_daemon_does_not_come_back_ends(self):
        self.serve(agent={"linger_s": 1})
        agent = self.agent()
        self.daemon.kill()
        self.daemon.communicate()
        self.wait_for("its end", lambda: self.ended(agent))

    def test_a_daemon_of_another_configuration_starts_another_agent(self):
        self.make_suite(20, 20)
        self.serve()
        agent = self.agent()
        self.restart(workers={"count": 3, "threads": 1})
        self.wait_for("three workers", lambda: len(self.call("GET", "/v1/workers")["workers"]) == 3)
        self.assertNotEqual(self.agent(), agent)
        self.assertEqual(self.finished(self.submit(engine=self.ENGINE))["state"], "done")

    def test_sigterm_drains_and_the_next_life_goes_on(self):
        self.make_suite(300, 100)
        expected = self.undisturbed()
        self.serve()
        run = self.submit(engine=self.ENGINE)
        self.wait_for("some documents", lambda: self.run_of(run)["progress"]["scored"] > 0)
        agent = self.agent()
        self.daemon.send_signal(signal.SIGTERM)
        out, err = self.daemon.communicate(timeout=120)
        self.assertEqual(self.daemon.returncode, 0, out + err)
        self.wait_for("the end of the agent of a daemon that ends in order", lambda: self.ended(agent))
        self.serve()
        self.check(expected, self.finished(run))

    def test_a_service_that_stops_does_not_wait_for_a_submission_that_is_read(self):
        self.make_suite(4, 4)
        began = self.folder / "began"
        self.use_preparing(f"echo $$ > {began}.part; mv {began}.part {began}; sleep 1000 & wait")
        self.serve()
        body = json.dumps({"config": json.loads(self.write_config().read_text()), "base": str(self.folder)}).encode()
        request = urllib.request.Request(self.url + "/v1/runs", body, {"Content-Type": "application/json"})

        def refusal():
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:
                    return answer.status
            except OSError as error:  # the connection was refused, or the service ended first
                return getattr(error, "code", 0)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            answer = pool.submit(refusal)
            self.wait_for("the submission to be read", began.exists)
            self.daemon.send_signal(signal.SIGTERM)
            begin = time.monotonic()
            out, err = self.daemon.communicate(timeout=120)
            self.assertLess(time.monotonic() - begin, 30, "the service waited for a check, which may take 60 s")
            self.assertEqual(self.daemon.returncode, 0, out + err)
            self.assertIn(answer.result(), (0, 503))
        self.wait_for("the end of the process that read it", lambda: self.ended(int(began.read_text())))

    def test_a_run_of_higher_priority_takes_the_devices(self):
        self.make_suite(600, 20)
        self.serve()
        low = self.submit(engine={**self.ENGINE, "delay_ms": 60})  # takes some seconds: the other run ends before
        self.wait_for("the first to work", lambda: self.run_of(low)["progress"]["generated"] > 0)
        high = self.submit(engine=self.ENGINE, tasks=["choice"], priority=10)
        self.finished(high)
        self.assertEqual(self.run_of(low)["state"], "running", "it had the devices first and more to do")
        self.assertEqual(self.finished(low)["state"], "done")

    def test_a_checkpoint_that_no_worker_survives_ends_its_run_alone(self):
        """The deadly run has the higher priority. Again and again it takes down the worker of the other run, but not
        forever."""
        self.make_suite(40, 20)
        expected = self.undisturbed()
        self.serve(workers={"count": 1, "threads": 1})
        deadly = self.submit(engine={"name": "emulated", "load_seconds": 3600}, priority=10)
        killed = []
        def ends():
            for worker in self.call("GET", "/v1/workers")["workers"]:
                if len(killed) < 3 and worker["state"] == "loading" and worker["pid"] and worker["pid"] not in killed:
                    killed.append(worker["pid"])
                    os.kill(worker["pid"], signal.SIGKILL)
            return (now := self.run_of(deadly))["ended"] and now
        self.wait_for("the first kill", lambda: ends() or killed)
        other = self.submit(engine=self.ENGINE)
        run = self.wait_for("the run's end", ends)
        self.assertEqual((run["state"], len(killed)), ("incomplete", 3), run)
        self.assertRegex(run["problems"][0], "^no worker survives loading the engine: worker w0: killed by signal 9")
        self.check(expected, self.finished(other))

    def test_pause_resume_cancel_and_priority(self):
        self.make_suite(400, 20)
        self.serve()
        run = self.submit(engine={**self.ENGINE, "delay_ms": 200})  # enough work that the run never ends by itself
        self.wait_for("some documents", lambda: self.run_of(run)["progress"]["generated"] > 0)
        self.assertEqual(self.call("POST", f"/v1/runs/{run['id']}/pause")["state"], "paused")
        waiting = self.submit(engine=self.ENGINE, tasks=["choice"])
        self.finished(waiting)  # the paused run holds nothing
        self.assertEqual(self.run_of(run)["state"], "paused")
        self.assertEqual(self.call("PATCH", f"/v1/runs/{run['id']}", {"priority": 7})["priority"], 7)
        self.call("POST", f"/v1/runs/{run['id']}/resume")
        self.call("POST", f"/v1/runs/{run['id']}/cancel")
        self.assertEqual(self.finished(run)["state"], "cancelled")
        self.assertEqual(self.call("GET", "/v1/queue")["queue"], [])
        self.call("POST", f"/v1/runs/{run['id']}/pause", status=409)

    def working(self, **changes):
        """A run that has scored something and is far from its end."""
        run = self.submit(engine={**self.ENGINE, "delay_ms": 200}, **changes)
        self.wait_for("some documents", lambda: self.run_of(run)["progress"]["scored"] > 0)
        return run

    def test_a_resume_right_after_a_cancel_takes_the_run_up_again(self):
        self.make_suite(300, 20)
        expected = self.undisturbed()
        self.serve()
        run = self.submit(engine={**self.ENGINE, "delay_ms": 60})
        self.wait_for("some documents", lambda: self.run_of(run)["progress"]["scored"] > 0)
        for _ in range(3):
            self.assertEqual(self.call("POST", f"/v1/runs/{run['id']}/cancel")["state"], "cancelling")
            resumed = self.call("POST", f"/v1/runs/{run['id']}/resume")
            self.assertIn(resumed["state"], ("queued", "preparing"), "it is answered when that is so")
        self.check(expected, self.finished(run))

    def test_the_last_of_cancel_and_resume_counts(self):
        self.make_suite(400, 20)
        self.serve()
        run = self.working()
        path = f"/v1/runs/{run['id']}"
        waits = lambda: "it is resumed once it has ended" in self.run_of(run)["problems"]
        for _ in range(20):  # until a resume is seen to wait for a cancel; both may take any time
            self.call("POST", path + "/cancel")
            with concurrent.futures.ThreadPoolExecutor() as pool:
                asked = pool.submit(self.ask, path + "/resume")
                self.wait_for("the resume", lambda: asked.done() or waits())
                if not asked.done():
                    self.call("POST", path + "/cancel")
                status, said = asked.result()
            if status == 409:
                break
        self.assertEqual((status, "cancelled again" in said.get("detail", "")), (409, True), said)
        self.assertEqual(self.finished(run)["state"], "cancelled")
        self.assertIn("is over (cancelled)", self.call("POST", path + "/pause", status=409)["detail"])
        self.assertEqual(self.call("POST", path + "/cancel")["state"], "cancelled", "a cancel may be repeated")

    def ask(self, path):
        """The answer to a POST, whatever its status."""
        status, text = answer_to(self.url, "POST", path, {})
        return status, json.loads(text)

    def test_cancel_and_pause_of_a_run_that_is_being_cancelled(self):
        self.make_suite(400, 20)
        self.serve()
        run = self.working()
        path = f"/v1/runs/{run['id']}"
        self.assertEqual(self.call("POST", path + "/cancel")["state"], "cancelling")
        self.assertEqual(self.call("POST", path + "/cancel")["state"], "cancelling", "twice is as once")
        self.assertIn("is being cancelled", self.call("POST", path + "/pause", status=409)["detail"])
        self.assertEqual(self.run_of(run)["state"], "cancelling", "not paused")
        self.assertEqual(self.finished(run)["state"], "cancelled")

    def test_a_run_that_waits_is_cancelled_and_resumed(self):
        self.make_suite(400, 20)
        expected = self.undisturbed()
        self.serve(active_runs=1)
        first = self.working()
        path = f"/v1/runs/{self.submit(engine=self.ENGINE)['id']}"
        for _ in range(2):
            self.assertEqual(self.call("POST", path + "/cancel")["state"], "cancelled")
            record = json.loads((pathlib.Path(self.call("GET", path)["directory"]) / "run.json").read_text())
            self.assertEqual(record["state"], "cancelled", "an action is on disk when it is answered")
            self.assertEqual(self.call("POST", path + "/resume")["state"], "queued")
        self.assertEqual(self.call("POST", path + "/pause")["state"], "paused")
        self.assertEqual(self.call("POST", path + "/resume")["state"], "queued")
        self.call("POST", f"/v1/runs/{first['id']}/cancel")
        self.check(expected, self.finished({"id": path.rsplit("/", 1)[1]}))

    def test_a_resume_that_waits_when_the_daemon_is_killed_was_not_promised(self):
        self.make_suite(400, 20)
        self.serve()
        run = self.working()
        path = f"/v1/runs/{run['id']}"
        self.call("POST", path + "/cancel")
        said = []
        def resume():
            try:
                said.append(self.call("POST", path + "/resume"))
            except (OSError, http.client.HTTPException):
                pass  # killed before it answered
        asking = threading.Thread(target=resume)
        asking.start()
        time.sleep(0.02)  # before or after the end of the run: both must hold
        self.restart()
        asking.join()
        if said:
            self.wait_for("what was promised", lambda: self.run_of(run)["state"] in ("queued", "preparing", "running"))
        else:
            self.wait_for("the cancel, or the resume that was on disk", lambda: self.run_of(run)["state"] != "cancelling")

    def test_a_run_whose_folder_cannot_be_written_ends_alone(self):
        """The doomed run gets the warm worker of another run, which then goes from one run to the next."""
        self.make_suite(300, 20)
        expected = self.undisturbed()
        self.serve(active_runs=1)
        first = self.working()
        doomed, other = self.submit(engine=self.ENGINE), self.submit(engine=self.ENGINE)
        folder = pathlib.Path(doomed["directory"])
        shutil.rmtree(folder)
        folder.write_text("a file is in the way")
        self.call("POST", f"/v1/runs/{first['id']}/cancel")
        ended = self.finished(doomed)
        self.assertEqual((ended["state"], ended["exit_status"]), ("incomplete", 3), ended)
        self.assertIn(str(folder), json.dumps(ended["problems"]))
        self.check(expected, self.finished(other))
        self.assertEqual(self.finished(first)["state"], "cancelled")

    def test_a_waiting_run_whose_folder_goes_is_cancelled_and_the_service_lives(self):
        self.make_suite(400, 20)
        self.serve(active_runs=1)
        self.working()
        waiting = self.submit(engine=self.ENGINE)
        shutil.rmtree(waiting["directory"])
        self.assertEqual(self.call("POST", f"/v1/runs/{waiting['id']}/cancel")["state"], "cancelled")
        self.assertEqual(self.run_of(waiting)["state"], "cancelled")

    def test_metrics_show_how_long_the_loop_takes(self):
        self.make_suite(20, 20)
        self.serve()
        self.assertEqual(self.finished(self.submit(engine=self.ENGINE))["state"], "done")
        with urllib.request.urlopen(self.url + "/metrics", timeout=30) as answer:
            lines = dict(line.rsplit(" ", 1) for line in answer.read().decode().splitlines() if not line.startswith("#"))
        self.assertGreater(float(lines["evald_loop_turn_seconds_count"]), 10)
        self.assertEqual(lines['evald_loop_turn_seconds_bucket{le="+Inf"}'], lines["evald_loop_turn_seconds_count"])
        self.assertGreater(float(lines["evald_loop_turn_seconds_max"]), 0)
        self.assertGreater(float(lines["evald_loop_turn_processor_seconds_max"]), 0)

    def with_one_attempt(self, **changes):
        """Members of a submission whose trials are given up once their worker is killed."""
        return {"engine": {**self.ENGINE, "delay_ms": 40, **changes}, "workers": {"count": 2, "max_attempts": 1}}

    def incomplete(self, key=None, **changes):
        """A run with a trial that was given up, because the worker of its only attempt was killed."""
        run = self.submit(key=key, **self.with_one_attempt(**changes))
        self.wait_for("some documents", lambda: self.run_of(run)["progress"]["scored"] > 20)
        held = lambda: next((w["pid"] for w in self.call("GET", "/v1/workers")["workers"] if w["trials"] and w["pid"]), None)
        os.kill(self.wait_for("a worker that holds a trial", held), signal.SIGKILL)
        run = self.finished(run)
        self.assertEqual((run["state"], run["exit_status"]), ("incomplete", 3), run)
        self.assertTrue(run["problems"])
        return run

    def test_a_run_that_ended_incomplete_is_resumed(self):
        self.make_suite(1500, 60)
        expected = self.undisturbed()
        journal = self.keep_journal()
        self.serve()
        run = self.incomplete(key="once")
        before = journal.read_text().splitlines()
        path = f"/v1/runs/{run['id']}"
        again = self.submit(200, key="once", **self.with_one_attempt())
        self.assertEqual(again["state"], "incomplete", "a repeated submission resumes nothing")
        resumed = self.call("POST", path + "/resume")
        self.assertIn(resumed["state"], ("queued", "preparing"))
        self.assertEqual([resumed[key] for key in ("id", "directory", "created")], [run[key] for key in ("id", "directory", "created")])
        self.assertEqual((resumed["ended"], resumed["exit_status"], resumed["problems"]), (None, None, []))
        done = self.finished(run)
        self.check(expected, done)
        work = json.loads((pathlib.Path(run["directory"]) / "results.json").read_text())["evald"]["work"]
        self.assertGreater(work["earlier"]["requests"], 0)
        self.assertEqual(len(set(journal.read_text().splitlines())), 1500 + 4 * 60)
        again = len(journal.read_text().splitlines()) - (1500 + 4 * 60)
        self.assertLessEqual(again, 3 * self.ENGINE["concurrency"], "what was answered is not asked again")
        self.assertGreater(len(before), 0)
        self.assertIn("nothing to resume", self.call("POST", path + "/resume", status=409)["detail"])

    def test_a_cancelled_run_is_resumed_from_the_command_line_after_a_restart(self):
        self.make_suite(300, 60)
        expected = self.undisturbed()
        self.serve()
        # the run is far from its end when the first documents are scored
        run = self.submit(engine={**self.ENGINE, "delay_ms": 80})
        self.wait_for("some documents", lambda: self.run_of(run)["progress"]["scored"] > 0)
        self.call("POST", f"/v1/runs/{run['id']}/cancel")
        self.assertEqual(self.finished(run)["state"], "cancelled")
        self.restart()
        done = self.evald("submit", "--resume", run["id"], "--wait", "--server", self.url)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(f"resumed {run['id']}", done.stderr)
        self.check(expected, self.run_of(run))
        for arguments, status, said in ((["--resume", run["id"]], 2, "nothing to resume"), (["--resume", "none"], 2, "no run has the id 'none'"),
                                        ([], 2, "eval.yaml is missing"), (["--resume", run["id"], self.folder / "serve.yaml"], 2, "its own")):
            done = self.evald("submit", *arguments, "--server", self.url)
            self.assertEqual(done.returncode, status, done)
            self.assertIn(said, done.stderr)

    def test_a_service_whose_agent_does_not_start_ends_with_what_it_said(self):
        (self.folder / "state").mkdir()
        (self.folder / "state" / "agent.lock").mkdir()  # the agent needs a file here
        self.serve()
        out, err = self.daemon.communicate(timeout=120)
        self.assertEqual(self.daemon.returncode, 3, out + err)
        last = err.strip().splitlines()[-1]
        self.assertRegex(last, "evald: error: the agent of this host.* ended 5 times before it said hello; its last words: .*agent.lock.*see .*agent.log")

    def test_what_is_refused(self):
        self.make_suite(5, 5)
        self.serve(roots=[str(self.tasks)])
        self.assertIn("did you mean 'workers'", self.submit(422, engine=self.ENGINE, wrokers={})["detail"])
        nameless = self.call("POST", "/v1/runs", {"config": {"tasks": ["sums"], "wrokers": {}}}, 422)
        self.assertIn("(2) the submitted config:1: unknown key 'wrokers'", nameless["detail"])
        command = self.submit(422, engine={"name": "openai", "command": ["sh"]})
        self.assertIn("does not start commands", json.dumps(command))
        hours = self.submit(422, engine=self.ENGINE, bootstrap_iters=100001)
        self.assertIn("expected at most 100000 in a submitted run", json.dumps(hours))
        outside = self.submit(422, engine=self.ENGINE, data_dir="/etc")
        self.assertIn("outside the folders", json.dumps(outside))
        again = self.start("serve", self.folder / "serve.yaml", "--json")
        _, err = again.communicate(timeout=120)
        self.assertEqual(again.returncode, 2)
        self.assertIn("another evald serves", err)

    def test_gates_of_a_run_are_judged(self):
        self.make_suite(20, 20)
        self.serve()
        run = self.submit(engine=self.ENGINE, gates={"rules": [{"task": "sums", "metric": "exact_match", "min": 0.5}]})
        run = self.finished(run)
        self.assertEqual((run["state"], run["exit_status"], run["verdict"]), ("done", 1, "fail"))
        self.assertEqual(self.call("GET", f"/v1/runs/{run['id']}/verdict")["status"], "fail")

    GATES = {"rules": [{"task": "sums", "metric": "exact_match", "min": 0.5}]}
    REAL = 'exec {real} "$@"'
    SLOW_JUDGE = 'input=$(cat); case "$input" in *\'"work":"judge"\'*) sleep 45;; esac; ' + REAL + ' <<< "$input"'

    def killed_judging(self, serve):
        """The daemon is killed when it begins to judge a run's gates."""
        with unittest.mock.patch.dict(os.environ, EVALD_FAIL_POINT="evald/service.judging"):
            self.serve()
            run = serve()
            self.daemon.communicate(timeout=120)
        self.assertEqual(self.daemon.returncode, -signal.SIGKILL)
        return run

    def test_gates_that_a_killed_daemon_left_are_judged_while_the_next_serves(self):
        self.make_suite(20, 20)
        self.use_preparing(self.REAL)
        run = self.killed_judging(lambda: self.submit(engine=self.ENGINE, gates=self.GATES))
        self.use_preparing(self.SLOW_JUDGE)
        self.serve()
        self.wait_for("judging", lambda: json.loads((pathlib.Path(self.run_of(run)["directory"]) / "run.json")
                                                    .read_text())["judgings"] == 2)
        self.assertEqual(self.run_of(run)["state"], "running")
        self.assertIn("ending by itself", self.call("POST", f"/v1/runs/{run['id']}/pause", status=409)["detail"])
        begin = time.monotonic()
        self.daemon.send_signal(signal.SIGTERM)  # a drain waits for the judgement
        self.wait_for("the drain", lambda: not self.ready())
        self.daemon.send_signal(signal.SIGTERM)
        out, err = self.daemon.communicate(timeout=60)
        self.assertEqual(self.daemon.returncode, 0, out + err)
        self.assertLess(time.monotonic() - begin, 30)
        self.use_preparing(self.REAL)
        self.serve()
        run = self.finished(run)
        self.assertEqual((run["state"], run["exit_status"], run["verdict"]), ("done", 1, "fail"), run)
        self.assertEqual(self.call("GET", f"/v1/runs/{run['id']}/verdict")["status"], "fail")

    def ready(self):
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=30) as answer:
                return answer.status == 200
        except urllib.error.HTTPError:
            return False

    def test_gates_at_which_two_lives_ended_are_not_judged_again(self):
        self.make_suite(20, 20)
        run = self.killed_judging(lambda: self.submit(engine=self.ENGINE, gates=self.GATES))
        self.killed_judging(lambda: None)
        self.serve()
        run = self.finished(run)
        self.assertEqual((run["state"], run["exit_status"], run["verdict"]), ("done", 3, "incomplete"), run)
        self.assertIn("evald ended 2 times", run["problems"][0])
        self.assertEqual(self.call("GET", f"/v1/runs/{run['id']}/results")["n-samples"]["sums"]["effective"], 20)

    def test_a_restart_waits_for_no_preparation(self):
        self.make_suite(20, 20)
        self.use_preparing(self.REAL)
        self.serve()
        runs = [self.submit(engine={**self.ENGINE, "delay_ms": 60_000}) for _ in range(20)]
        paused = runs[-1]
        self.call("POST", f"/v1/runs/{paused['id']}/pause")
        self.use_preparing("sleep 8; " + self.REAL)
        self.daemon.kill()
        self.daemon.communicate()
        begin = time.monotonic()
        self.serve()
        found = [self.run_of(run)["state"] for run in runs]
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(found[-1], "paused")
        self.assertLessEqual(set(found), {"queued", "preparing", "paused"})

    def test_a_restart_without_a_preparing_program_fails_no_run_for_good(self):
        self.make_suite(20, 20)
        self.use_preparing(self.REAL)
        self.serve()
        runs = [self.submit(engine={**self.ENGINE, "delay_ms": 60_000}) for _ in range(3)]
        self.daemon.kill()
        self.daemon.communicate()
        (self.binaries / "evald-prepare").unlink()
        self.serve()
        ended = [self.finished(run) for run in runs]
        self.assertEqual([(run["state"], run["exit_status"]) for run in ended], [("incomplete", 3)] * 3, ended)
        self.assertIn("evald-prepare", ended[0]["problems"][0])
        self.use_preparing(self.REAL)
        self.call("POST", f"/v1/runs/{runs[0]['id']}/resume")
        self.call("POST", f"/v1/runs/{runs[0]['id']}/cancel")

    def test_a_folder_that_cannot_be_read_at_a_restart_is_waited_for(self):
        self.make_suite(20, 20)
        self.serve()
        runs = [self.submit(engine={**self.ENGINE, "delay_ms": 60_000}) for _ in range(2)]
        self.daemon.kill()
        self.daemon.communicate()
        record = pathlib.Path(runs[0]["directory"]) / "run.json"
        kept = record.read_bytes()
        record.unlink()
        record.symlink_to(record)  # ELOOP, in place of a failing disk's EIO
        self.serve()
        waits = self.wait_for("the folder to be found unreadable", lambda: (run := self.run_of(runs[0]))["problems"] and run)
        self.assertEqual(waits["state"], "queued", waits)
        self.assertIn("tried again", waits["problems"][0])
        self.assertIn(self.run_of(runs[1])["state"], ("queued", "preparing", "running"))
        record.unlink()
        record.write_bytes(kept)
        self.daemon.kill()
        self.daemon.communicate()
        self.serve()
        self.assertEqual(self.run_of(runs[0])["problems"], [])

    def test_a_watched_folder(self):
        checkpoints = self.folder / "checkpoints"
        checkpoints.mkdir()
        shutil.copytree(QUICKSTART / "checkpoints" / "step-00100", checkpoints / "step-00100")
        config = {"tasks": ["quickstart_choice"], "task_dirs": [str(QUICKSTART / "tasks")], "engine": {"name": "native"}}
        (self.folder / "watched.yaml").write_text(json.dumps(config))
        watch = [{"checkpoints": "checkpoints", "eval": "watched.yaml", "settle_s": 0.2, "poll_s": 0.2}]
        self.serve(watch=watch)
        runs = lambda: self.call("GET", "/v1/runs")["runs"]
        done = lambda count: len(found := runs()) == count and all(r["state"] == "done" for r in found)
        self.wait_for("the first", lambda: done(1))
        self.daemon.kill()
        self.daemon.communicate()
        self.serve(watch=watch)
        half = checkpoints / "step-01200"
        half.mkdir()
        source = QUICKSTART / "checkpoints" / "step-01200"
        weights = (source / "model.safetensors").read_bytes()
        for file in source.iterdir():
            (half / file.name).write_bytes(weights[:1000000] if file.suffix == ".safetensors" else file.read_bytes())
        self.call("POST", "/v1/checkpoints", {"path": str(half)})
        time.sleep(1)
        self.assertEqual(len(runs()), 1, "half a checkpoint is no checkpoint")
        (half / "model.safetensors").write_bytes(weights)
        self.wait_for("the second", lambda: done(2))
        self.assertEqual(sorted(r["name"] for r in runs()), ["step-00100", "step-01200"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
