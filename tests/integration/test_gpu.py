"""GPUs from end to end, with the kernels on emulated ones (evald-worker-cuda-emulated): no GPU is needed.

A worker computes a real model, the example's. Its scores are compared with the processor's.
EVALD_EMULATED_FAULT=gpu:kind:calls orders faults, anew in every worker process.
"""
import fcntl
import json
import math
import os
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest

from evald_case import BINARIES, OVER, QUICKSTART, EvaldCase, scores
from service_case import ServiceCase

WORKER = BINARIES / "evald-worker-cuda-emulated"
CHECKPOINTS = QUICKSTART / "checkpoints"
FIRST, SECOND = "cuda:GPU-emulated-0", "cuda:GPU-emulated-1"
# Few calls to the runtime: only the first calls of a load are made before the fault.
AT_ONCE = 5


@unittest.skipUnless(WORKER.exists(), "evald-worker-cuda-emulated is not built")
class GpuCase(EvaldCase):
    def setUp(self):
        super().setUp()
        self.make_suite(sums=16, choice=12)
        self.environment = {**os.environ, "EVALD_WORKER_CUDA": str(WORKER), "EVALD_EMULATED_GPUS": f"2:{256 << 20}",
                            "EVALD_DEVICE_LOCKS": str(self.folder / "locks")}
        self.environment.pop("EVALD_EMULATED_FAULT", None)

    def config(self, name, devices, step="step-01200", engine=None, **changes):
        return self.write_config(
            f"{name}.yaml", checkpoint=str(CHECKPOINTS / step),
            engine={"name": "native", "kv_cache": "16MiB", "chunk": 256, "concurrency": 4, "copy_threads": 1, **(engine or {})},
            workers={"devices": devices, "threads": 1}, staging={"root": str(self.folder / "staging")},
            output={"dir": "runs", "name": name}, **changes)

    def run_gpu(self, name, devices="cuda:all", fault=None, **changes):
        environment = {**self.environment, **({"EVALD_EMULATED_FAULT": fault} if fault else {})}
        done = self.evald("run", self.config(name, devices, **changes), "--json", "--quiet", env=environment)
        return done, json.loads(done.stdout)

    def run_well(self, name, *arguments, **changes):
        done, document = self.run_gpu(name, *arguments, **changes)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.logs())
        return document

    def folder_of(self, name):
        return self.folder / "runs" / name

    def lines(self, name, task):
        return [json.loads(line) for line in (self.folder_of(name) / f"samples_{task}.jsonl").read_text().splitlines()]

    def spans(self, name, span):
        trace = json.loads((self.folder_of(name) / "timeline.json").read_text())["traceEvents"]
        rows = {event["tid"]: event["args"]["name"] for event in trace if event["name"] == "thread_name"}
        return [(rows[event["tid"]], event["args"]) for event in trace if event["ph"] == "X" and event["name"] == span]

    def assert_same(self, name, other):
        self.assertEqual(self.samples(self.folder_of(name)), self.samples(self.folder_of(other)))

    def hold(self, device):
        """Takes the device for another process of this test. Closing the returned lock gives the device back."""
        folder = self.folder / "locks"
        folder.mkdir(exist_ok=True)
        lock = (folder / device.replace(":", "_")).open("w")
        self.addCleanup(lock.close)
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        return lock


class Scores(GpuCase):
    def test_two_gpus_one_gpu_and_the_processor_agree(self):
        # A worker that begins late may find no work.
        pulled = lambda two: {row for row, _ in self.spans(two, "pull")}
        for attempt in range(3):
            name = f"two{attempt}"
            two = self.run_well(name)
            if len(pulled(name)) == 2:
                break
        facts = two["evald"]
        self.assertLessEqual(set(facts["devices"]), {FIRST, SECOND})
        self.assertTrue(facts["devices"], "results name GPUs by their UUIDs")
        self.assertTrue(facts["engine"]["deterministic"])
        self.assertNotIn("fast", facts["engine"])
        self.assertEqual(facts["set_aside"], {})
        pulls = self.spans(name, "pull")
        self.assertEqual(pulled(name), {f"worker w0 ({FIRST})", f"worker w1 ({SECOND})"})
        for _, pull in pulls:
            self.assertGreater(pull["gb_per_s"], 0)
            self.assertGreater(pull["bytes"], 4e6)

        one = self.run_well("one", FIRST)
        self.assertEqual(list(one["evald"]["devices"]), [FIRST])
        self.assertEqual(scores(one), scores(two))
        self.assert_same("one", name)  # byte by byte, although the batches differed

        cpu = self.run_well("cpu", "cpu:0")
        self.assertEqual(cpu["evald"]["devices"], {})
        near = []
        for gpu, other in zip(self.lines(name, "choice"), self.lines("cpu", "choice")):
            for mine, theirs in zip(gpu["resps"], other["resps"]):
                near.append(abs(float(mine[0][0]) - float(theirs[0][0])))
        # bf16 has 8 bits, so a log-probability of a few units changes by a few hundredths.
        self.assertGreater(max(near), 0, "it was computed by another device")
        self.assertLess(max(near), 0.3)
        self.assertLess(math.sqrt(sum(d * d for d in near) / len(near)), 0.1)
        for task, metric in (("choice", "acc,none"), ("sums", "exact_match,none")):
            self.assertAlmostEqual(two["results"][task][metric], cpu["results"][task][metric], delta=0.17)

    def test_fast_says_so(self):
        path = self.config("fast", FIRST, tasks=["choice"])
        done = self.evald("run", path, "--fast", env=self.environment)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.logs())
        engine = json.loads((self.folder_of("fast") / "results.json").read_text())["evald"]["engine"]
        self.assertEqual((engine["fast"], engine["deterministic"]), (True, False))
        self.assertIn("fast", engine["version"])
        self.assertIn("Computed with 'fast'", done.stdout)

    def test_auto_takes_gpus_where_there_are_any(self):
        found = set(self.run_well("gpus", "auto", tasks=["choice"])["evald"]["devices"])
        self.assertTrue(found and found <= {FIRST, SECOND}, found)
        self.environment["EVALD_EMULATED_GPUS"] = "0"
        none = self.run_well("none", "auto", tasks=["choice"])
        self.assertEqual(none["evald"]["devices"], {})
        self.assertNotIn("device_id", none["evald"]["engine"])

    def test_gpus_that_are_not_there_are_named(self):
        for name, devices, words in (("other", "cuda:GPU-absent", f"device cuda:GPU-absent is not there; visible: {FIRST}, {SECOND}"),):
            done, document = self.run_gpu(name, devices)
            self.assertEqual(done.returncode, 3)
            self.assertIn(words, document["error"])
        self.environment["EVALD_EMULATED_GPUS"] = "0"
        done, document = self.run_gpu("none")
        self.assertEqual(done.returncode, 3)
        self.assertIn("there is no GPU", document["error"])


class Faults(GpuCase):
    """`plain` is the result of a run without faults."""

    def setUp(self):
        super().setUp()
        self.run_well("plain", FIRST)

    def run_failing(self, kind, enough):
        """A run whose first GPU fails at once, repeated until the GPU failed often enough: its worker may begin late
        and then fail less often. Returns the run's name, its end and its results."""
        for attempt in range(3):
            name = f"{kind}{attempt}"
            done, document = self.run_gpu(name, fault=f"0:{kind}:{AT_ONCE}")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.logs())
            if enough(done, document):
                break
        return name, done, document

    def test_a_gpu_that_is_set_aside_leaves_its_work_to_the_other(self):
        self.make_suite(sums=150, choice=40)  # enough work for three failures
        self.run_well("long", SECOND)
        for kind, words in (("kernel", "kernel"), ("ecc", "ECC")):
            with self.subTest(kind):
                name, done, document = self.run_failing(kind, lambda _, document: document["evald"]["set_aside"])
                facts = document["evald"]
                self.assertEqual(list(facts["devices"]), [SECOND])
                self.assertEqual(list(facts["set_aside"]), [FIRST])
                self.assertIn("failed 3 times within 10 minutes", facts["set_aside"][FIRST])
                self.assertRegex(facts["set_aside"][FIRST], words)
                self.assertIn(f"device {FIRST} of host local is set aside", done.stderr)
                self.assert_same(name, "long")

    def test_a_checkpoint_that_has_no_room_sets_no_gpu_aside(self):
        """The checkpoint is at fault. The next one, of any user, may well fit."""
        self.make_suite(sums=150, choice=40)  # enough work for three failures
        self.run_well("long", SECOND)
        failures = lambda done: re.findall(r"worker w0: .*out of memory", done.stderr)
        name, done, document = self.run_failing("oom", lambda done, _: len(failures(done)) >= 3)
        self.assertGreaterEqual(len(failures(done)), 3, done.stderr)
        self.assertEqual(document["evald"]["set_aside"], {})
        self.assert_same(name, "long")

    def test_workers_that_end_over_a_checkpoint_set_no_gpu_aside(self):
        """The worker dies without a message. The fault may be the checkpoint's, which no worker has loaded before."""
        self.environment["EVALD_FAIL_POINT"] = "worker.loaded"
        done, document = self.run_gpu("deadly")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(document["error"], r"^no worker survives loading the checkpoint: worker w[01] \(cuda:GPU-emulated-[01]\): ")
        self.assertNotIn("set aside", done.stderr)

    def test_without_a_gpu_left_the_run_ends_with_the_cause(self):
        done, document = self.run_gpu("gone", fault=f"0:lost:{AT_ONCE},1:lost:{AT_ONCE}")
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertRegex(document["error"], r"no worker .*: w[01]: device cuda:GPU-emulated-[01] is set aside: .*lost")
        again = self.evald("run", self.config("gone", "cuda:all"), "--json", "--quiet", "--resume", env=self.environment)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assert_same("gone", "plain")

    def test_a_gpu_that_another_process_holds_is_passed_over(self):
        self.hold(FIRST)
        done, document = self.run_gpu("held")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr + self.logs())
        self.assertEqual(list(document["evald"]["devices"]), [SECOND])
        self.assertEqual(document["evald"]["set_aside"], {})
        self.assert_same("held", "plain")

    def test_a_gpu_that_another_process_holds_is_waited_for(self):
        """The worker says once that it waits, however long the wait takes, and no worker ends over it."""
        lock = self.hold(FIRST)
        log = self.folder / "waited.log"
        with log.open("w") as err:
            run = subprocess.Popen([BINARIES / "evald", "run", self.config("waited", FIRST), "--json", "--quiet"],
                                   env=self.environment, stdout=subprocess.PIPE, stderr=err, text=True)
        self.addCleanup(run.kill)
        held = f"{FIRST} is held by process {os.getpid()} "
        self.wait_for("a word", lambda: f"waits for a device: {held}" in log.read_text(), 30)
        lock.close()
        out, _ = run.communicate(timeout=200)
        said = log.read_text()
        self.assertEqual(run.returncode, 0, out + said + self.logs())
        self.assertEqual(said.count(f"worker w0 waits: {held}"), 1, said)
        self.assertNotIn("starting it again", said)
        self.assertEqual(json.loads(out)["evald"]["set_aside"], {})
        self.assert_same("waited", "plain")

    def test_a_gpu_that_is_lost_on_the_way_comes_back(self):
        """Each worker loses the GPU after so many calls: enough calls for a trial, too few for the run."""
        for calls in (1000, 1300, 700, 1800, 500, 2500):
            name = f"lost{calls}"
            done, document = self.run_gpu(name, FIRST, fault=f"0:lost:{calls}")
            if done.returncode == 0 and "the device was lost" in done.stderr:
                break
        else:
            self.fail(f"no number of calls lies between a trial and the run\n{done.stderr}")
        self.assertIn("starting it again", done.stderr)
        self.assertEqual(document["evald"]["set_aside"], {})
        self.assert_same(name, "plain")

    def test_too_little_memory_ends_the_trials_that_ran_into_it(self):
        """One allocation fails after so many calls: the first batch's. Earlier allocations are those of the load,
        over which the worker starts anew, and of the cache, which then becomes smaller. The right number of calls is
        found by trying, the likeliest first."""
        ended = r"worker w0: trial \d+ failed: .*out of memory"
        for calls in sorted(range(65, 200, 3), key=lambda calls: abs(calls - 110)):
            name = f"oom{calls}"
            done, document = self.run_gpu(name, FIRST, fault=f"0:oom:{calls}")
            if done.returncode == 0 and "starting it again" not in done.stderr and re.search(ended, done.stderr):
                break  # only the trial ended
        else:
            self.fail(f"no number of calls lies between the load and the last allocation\n{done.stderr}")
        self.assertEqual(document["evald"]["set_aside"], {})
        self.assert_same(name, "plain")


class Service(ServiceCase, GpuCase):
    LOG = ()  # nobody reads what is said

    def setUp(self):
        super().setUp()
        self.addCleanup(self.stop)

    def serve(self, devices, **environment):
        super().serve({**self.environment, **environment}, output_dir="runs", workers={"devices": devices, "threads": 1},
                      metrics={"processes": 1})

    def submit(self, name, step):
        config = json.loads(self.config(name, "auto", step).read_text())
        return self.call("POST", "/v1/runs", {"config": config, "base": str(self.folder)}, 201)

    def evaluate(self, name, step):
        return self.finished(self.submit(name, step))

    def finished(self, run):
        self.phases = {}

        def ended():
            now = self.call("GET", f"/v1/runs/{run['id']}")
            self.phases.update({phase["name"]: phase for phase in now["progress"]["phases"]})
            return now["state"] in OVER and now

        return self.wait_for("the run's end", ended, 200)

    def test_the_next_checkpoint_is_pulled_into_the_same_memory(self):
        for step in ("step-00600", "step-01200"):
            self.run_well(f"alone-{step}", FIRST, step=step)
        self.serve(FIRST)
        workers = []
        for number, step in enumerate(("step-00600", "step-01200", "step-00600")):
            run = self.evaluate(f"{number}-{step}", step)
            self.assertEqual(run["state"], "done", run["problems"])
            folder = self.folder / "runs" / run["directory"].rsplit("/", 1)[1]
            self.assertEqual(self.samples(folder), self.samples(self.folder_of(f"alone-{step}")), step)
            workers.append(self.call("GET", "/v1/workers")["workers"][0])
            pulled = self.phases["pull"]
            self.assertEqual((pulled["unit"], pulled["done"]), ("bytes", pulled["total"]))
            self.assertGreater(pulled["total"], 4e6)
            trace = json.loads((folder / "timeline.json").read_text())["traceEvents"]
            pulls = [event["args"] for event in trace if event["ph"] == "X" and event["name"] == "pull"]
            self.assertEqual([pull["swapped"] for pull in pulls], [len(workers) > 1], step)
        self.assertEqual(len({worker["pid"] for worker in workers}), 1, "one process for all")
        self.assertEqual(workers[0]["device"], FIRST)

    def make_slow(self, name):
        """A checkpoint that takes long to stage. Its last shard is one that no model uses."""
        folder = self.folder / name
        shutil.copytree(CHECKPOINTS / "step-00600", folder)
        (folder / "model.safetensors").rename(folder / "model-1.safetensors")
        with (folder / "model-1.safetensors").open("rb") as shard:
            tensors = [name for name in json.loads(shard.read(struct.unpack("<Q", shard.read(8))[0])) if name != "__metadata__"]
        unused, floats = "unused.rotary_emb.inv_freq", 100 << 20
        filler = {"dtype": "F32", "shape": [floats], "data_offsets": [0, 4 * floats]}
        header = json.dumps({"__metadata__": {"name": name}, unused: filler}).encode()
        with (folder / "model-2.safetensors").open("wb") as shard:
            shard.write(struct.pack("<Q", len(header)) + header)
            shard.truncate(8 + len(header) + 4 * floats)
        index = {"weight_map": {**dict.fromkeys(tensors, "model-1.safetensors"), unused: "model-2.safetensors"}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
        return folder

    def test_a_checkpoint_is_pulled_while_it_is_staged(self):
        self.run_well("alone", FIRST, step="step-00600")
        self.serve(FIRST)
        self.evaluate("before", "step-01200")  # from here on there is a worker
        for attempt in range(3):  # a worker that the machine stops meanwhile begins too late or takes too long
            self.wait_for("the run to let go", lambda: not self.call("GET", "/v1/workers")["workers"][0]["trials"])
            run = self.evaluate(f"slow{attempt}", self.make_slow(f"slow{attempt}"))
            self.assertEqual(run["state"], "done", run["problems"])
            name = run["directory"].rsplit("/", 1)[1]
            self.assertEqual(self.samples(self.folder / "runs" / name), self.samples(self.folder_of("alone")))
            trace = json.loads((self.folder / "runs" / name / "timeline.json").read_text())["traceEvents"]
            spans = {event["name"]: event for event in trace if event["ph"] == "X" and event["name"] in ("stage", "pull")}
            pull, stage = spans["pull"], spans["stage"]
            facts, load_share = pull["args"], pull["args"]["load_seconds"] / (pull["dur"] / 1e6)
            if facts.get("followed") == facts["bytes"] and pull["ts"] < stage["ts"] + stage["dur"] and load_share < 0.5:
                break
        self.assertEqual(facts.get("followed"), facts["bytes"])
        self.assertTrue(facts["swapped"])
        self.assertLess(pull["ts"], stage["ts"] + stage["dur"], "the pull began before the staging had ended")
        self.assertLess(load_share, 0.5)

    def test_a_gpu_that_is_set_aside_is_shown(self):
        self.serve("cuda:all", EVALD_EMULATED_FAULT=f"0:kernel:{AT_ONCE}")
        aside = lambda: {d["id"]: d["set_aside"] for d in self.call("GET", "/v1/hosts")["hosts"][0]["devices"]}[FIRST]
        for number in range(10):  # a GPU fails only while a worker uses it
            run = self.evaluate(f"aside{number}", "step-01200")
            self.assertEqual(run["state"], "done", run["problems"])
            if aside():
                break
        why = aside()
        self.assertIn("failed 3 times within 10 minutes", why)
        states = {worker["device"]: worker["state"] for worker in self.call("GET", "/v1/workers")["workers"]}
        self.assertEqual(states[FIRST], "set aside")
        self.assertNotEqual(states[SECOND], "set aside")
        status = self.evald("status", "--once", "--server", self.url)
        self.assertIn(f"Device {FIRST} of host local is set aside: it failed 3 times", status.stdout)
        doctor = self.evald("doctor", "--json", "--server", self.url, env=self.environment)
        found = {check["what"]: check for check in json.loads(doctor.stdout)["checks"]}
        self.assertFalse(found[f"device {FIRST}"]["available"])
        self.assertIn("set aside on local", found[f"device {FIRST}"]["detail"])

    def test_a_gpu_that_another_process_holds_is_shown_to_be_waited_for(self):
        lock = self.hold(FIRST)
        self.serve(FIRST)
        run = self.submit("held", "step-01200")
        worker = lambda: (self.call("GET", "/v1/workers")["workers"] or [{"state": "not shown yet"}])[0]
        waits = self.wait_for("the worker to wait", lambda: (now := worker())["state"] == "waiting" and now)
        self.assertRegex(waits["waits"], f"^{FIRST} is held by process {os.getpid()} ")
        lock.close()
        self.assertEqual(self.finished(run)["state"], "done")
        self.assertEqual((worker()["state"], worker()["waits"]), ("idle", None))

    def start_north(self):
        """The agent of a host with a GPU, once it has joined."""
        root = self.folder / "north"
        log = (self.folder / "north.log").open("ab")
        agent = subprocess.Popen([BINARIES / "evald", "agent", "--server", self.url, "--name", "north", "--root", root,
                                  "--staging-root", root / "staging", "--devices", FIRST, "--metric-processes", "1", "--threads", "1"],
                                 env=self.environment, stdout=log, stderr=log)
        self.addCleanup(log.close)
        self.addCleanup(agent.wait)
        self.addCleanup(agent.kill)
        self.wait_for("the agent", lambda: "connected" in [h["state"] for h in self.call("GET", "/v1/hosts")["hosts"] if h["id"] == "north"])
        return agent

    def test_a_run_whose_gpus_have_left_says_so_and_goes_on_when_one_is_back(self):
        self.make_suite(sums=150, choice=40)  # enough that much work is left
        self.run_well("alone", FIRST)
        self.serve("cpu:0")
        agent = self.start_north()
        run = self.submit("left", "step-01200")
        now = lambda: self.call("GET", f"/v1/runs/{run['id']}")
        self.wait_for("work", lambda: any(w["trials"] for w in self.call("GET", "/v1/workers")["workers"] if w["host"] == "north"))
        self.assertEqual(now()["problems"], [])
        agent.send_signal(signal.SIGTERM)
        self.assertEqual(agent.wait(60), 0)
        waits = self.wait_for("a word", lambda: (seen := now())["problems"] and seen, 15)
        said = (r"it waits for a device of the kind that it began on \(native, .+\): "
                rf"{FIRST} of host north, which has left")
        self.assertEqual(waits["state"], "running")
        self.assertRegex(waits["problems"][0], f"^{said}$")
        self.assertRegex(self.evald("status", run["id"], "--server", self.url).stdout, f"problem +{said}")
        self.start_north()
        run = self.finished(run)
        self.assertEqual((run["state"], run["problems"]), ("done", []))
        self.assertEqual(self.samples(self.folder / "runs" / run["directory"].rsplit("/", 1)[1]), self.samples(self.folder_of("alone")))
        self.daemon.send_signal(signal.SIGTERM)
        err = self.daemon.communicate(timeout=30)[1]
        self.daemon = None
        self.assertRegex(err, rf"run {run['id']} waits for a device .*{FIRST} of host north, which has left")

    def test_another_hosts_gpu_computes_alone(self):
        """The service's own host has no GPU. Numbers of its processor and of the GPU are not mixed in one run."""
        self.run_well("alone", FIRST)
        self.serve("cpu:0")
        self.start_north()
        run = self.evaluate("north", "step-01200")
        self.assertEqual(run["state"], "done", run["problems"])
        name = run["directory"].rsplit("/", 1)[1]
        facts = json.loads((self.folder / "runs" / name / "results.json").read_text())["evald"]
        self.assertEqual(list(facts["devices"]), [FIRST])
        self.assertEqual(self.samples(self.folder / "runs" / name), self.samples(self.folder_of("alone")))
        self.assertEqual({row for row, _ in self.spans(name, "generate")}, {f"worker north.w0 ({FIRST})"})


# Notes how it was started, and ends.
SERVER_THAT_NOTES = """
import json, os, sys
with open(os.environ["NOTES"] + "/" + str(os.getpid()), "w") as notes:
    json.dump({"arguments": sys.argv[1:], "gpus": os.environ.get("CUDA_VISIBLE_DEVICES")}, notes)
sys.exit("this server only notes how it was started")
"""


class SeveralGpus(GpuCase):
    """Workers with several GPUs each, for engines whose server splits a model over them."""

    def setUp(self):
        super().setUp()
        self.environment["EVALD_EMULATED_GPUS"] = f"5:{256 << 20}"
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        (self.folder / "server.py").write_text(SERVER_THAT_NOTES)

    def config(self, name, devices, per_worker=2, **changes):
        return self.write_config(
            f"{name}.yaml", checkpoint=str(CHECKPOINTS / "step-01200"),
            engine={"name": "vllm", "command": ["/usr/bin/python3", str(self.folder / "server.py")], "restarts": 0,
                    "environment": {"NOTES": str(self.notes)}},
            workers={"devices": devices, "devices_per_worker": per_worker, "threads": 1, "max_attempts": 1},
            staging={"root": str(self.folder / "staging")}, output={"dir": "runs", "name": name}, **changes)

    def started(self):
        texts = [note.read_text() for note in self.notes.iterdir()]
        notes = [json.loads(text) for text in texts if text.endswith("}")]  # others are being written
        return [note for note in notes if "serve" in note["arguments"]]

    def test_each_group_has_one_server(self):
        done, _ = self.run_gpu("groups", "cuda:all")
        self.assertIn("this server only notes how it was started", done.stderr + self.logs())
        self.assertIn("1 are left over and not used: cuda:GPU-emulated-4", done.stderr)
        started = self.started()
        self.assertEqual({note["gpus"] for note in started},
                         {"GPU-emulated-0,GPU-emulated-1", "GPU-emulated-2,GPU-emulated-3"})
        for note in started:
            self.assertIn("--tensor-parallel-size=2", note["arguments"])

    def test_a_group_waits_for_each_of_its_gpus(self):
        lock = self.hold(SECOND)
        run = subprocess.Popen([BINARIES / "evald", "run", self.config("held", "cuda:all"), "--quiet"], env=self.environment,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(run.kill)
        self.wait_for("the other group's server", self.started, 60)
        time.sleep(1)
        self.assertEqual({note["gpus"] for note in self.started()}, {"GPU-emulated-2,GPU-emulated-3"})
        lock.close()
        self.wait_for("both servers", lambda: len(self.started()) == 2, 60)

    def test_too_few_gpus_and_an_engine_for_one_are_refused(self):
        done, _ = self.run_gpu("six", "cuda:all", per_worker=6)
        self.assertEqual(done.returncode, 3)
        self.assertIn("6 GPUs for each worker: there are only 5", done.stderr)
        config = self.write_config("native.yaml", checkpoint=str(CHECKPOINTS / "step-01200"), engine={"name": "native"},
                                   workers={"devices": "cuda:all", "devices_per_worker": 2})
        done = self.evald("run", config, env=self.environment)
        self.assertEqual(done.returncode, 2)
        self.assertIn("several GPUs for a worker: engine 'native' computes on one", done.stderr)


class Looking(GpuCase):
    def gpus(self):
        done = self.evald("doctor", "--json", env=self.environment)
        return [check for check in json.loads(done.stdout)["checks"] if check["what"] == "GPU"]

    def test_doctor_names_each_gpu(self):
        details = [check["detail"] for check in self.gpus()]
        self.assertEqual(len(details), 2)
        self.assertTrue(details[0].startswith(FIRST) and details[1].startswith(SECOND), details)

    def test_doctor_says_what_is_missing(self):
        self.environment["EVALD_EMULATED_GPUS"] = "0"
        self.assertIn("the CPU is used", self.gpus()[0]["detail"])
        self.assertTrue(self.gpus()[0]["available"], "a machine without a GPU is fine")
        self.environment["EVALD_WORKER_CUDA"] = str(self.folder / "absent")
        self.assertRegex(self.gpus()[0]["detail"], r"none: (this build has no evald-worker-cuda: .+|.*absent is not there); the CPU is used")
        self.environment["EVALD_WORKER_CUDA"] = "/bin/false"
        self.assertFalse(self.gpus()[0]["available"], "there should be one that answers")

    def test_a_worker_lists_its_devices(self):
        out = subprocess.run([WORKER, "--list-devices"], env=self.environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertEqual([device["id"] for device in json.loads(out.stdout)["devices"]], [FIRST, SECOND])


if __name__ == "__main__":
    unittest.main(verbosity=2)
