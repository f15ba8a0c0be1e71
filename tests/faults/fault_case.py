"""Common parts of the fault tests: a small suite, its undisturbed results, and lives of evald that end badly.

EVALD_TEST_SEED sets the seed, which every test prints. EVALD_FULL=1 runs every case instead of a sample."""
import http.client
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from evald_case import BINARIES, OVER, QUICKSTART, SOURCE, EvaldCase, processes_of, scores  # noqa: E402
from service_case import answer_to  # noqa: E402

SEED = int(os.environ.get("EVALD_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
FULL = os.environ.get("EVALD_FULL", "0") not in ("", "0")
LAYERS = BINARIES / "tests"
PATIENCE_S = 600  # only a hang takes this long


def preload(layer, **variables):
    """The environment of a process that loads a layer before its C library."""
    options = os.environ.get("ASAN_OPTIONS", "")
    return dict(os.environ, LD_PRELOAD=str(LAYERS / f"{layer}.so"),
                ASAN_OPTIONS=f"{options}:verify_asan_link_order=0", **{k: str(v) for k, v in variables.items()})


def sample(items, count, rng):
    """All items in a full run, otherwise `count` of them, in order."""
    items = list(items)
    if FULL or len(items) <= count:
        return items
    return [items[i] for i in sorted(rng.sample(range(len(items)), count))]


class FaultCase(EvaldCase):
    """The suite is in `folder`. evald writes below `folder`/disk."""
    SUMS, CHOICE = 24, 12
    ENGINE = {"name": "emulated", "concurrency": 4}
    DIRECTORIES = {"cache_dir": "disk/cache", "state_dir": "disk/state", "output": {"dir": "disk/runs"}}

    def setUp(self):
        super().setUp()
        print(f"{self.id()}: seed {SEED}", flush=True)
        self.rng = random.Random(f"{SEED} {self.id()}")
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        self.daemon = None
        self.addCleanup(self.end_daemon)
        self.make_suite(self.SUMS, self.CHOICE)

    # ---- runs in the foreground

    def config(self, **changes):
        return self.write_config(**{"engine": self.ENGINE, **self.DIRECTORIES, **changes})

    def native(self, **changes):
        """A run that stages a checkpoint and makes tokens."""
        return self.config(name="native.yaml", checkpoint=str(QUICKSTART / "checkpoints" / "step-00100"), engine={"name": "native"},
                           tasks=[{"task": "quickstart_choice", "limit": 8}, {"task": "quickstart_math", "limit": 4}],
                           task_dirs=[str(QUICKSTART / "tasks")], staging={"root": str(self.folder / "staging")}, **changes)

    def undisturbed(self, config=None):
        """Results and samples of a run without faults."""
        config = json.loads((config or self.config()).read_text())
        config.update(cache_dir="plain/cache", state_dir="plain/state", output={"dir": "plain/runs", "name": "p"})
        if "staging" in config:
            config["staging"] = {"root": str(self.folder / "plain-staging")}
        path = self.folder / "plain.yaml"
        path.write_text(json.dumps(config))
        self.run_done(path)
        return self.outcome(self.folder / "plain" / "runs" / "p")

    @staticmethod
    def outcome(run):
        """Samples and scores, which must be equal byte for byte, whatever happened to the run. If they are, each document
        occurs once."""
        files = {p.name: p.read_bytes() for p in sorted(run.glob("samples_*.jsonl"))}
        files["results"] = json.dumps(scores(json.loads((run / "results.json").read_text()))).encode()
        return files

    def runs(self):
        return [p for p in sorted((self.disk / "runs").glob("*")) if (p / "run.json").is_file() and not p.is_symlink()]

    def life(self, *arguments, env=None):
        """One life of `evald run`. Returns its exit status (negative: the signal) and its output. Afterwards all its
        processes have ended, so that they do not meet those of the next life."""
        process = self.start("run", *arguments, "--quiet", env=env, start_new_session=True)
        try:
            out, err = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            self.fail(f"evald run {arguments} hangs\n{out}\n{err}\n{self.logs()}")
        self.wait_until_gone(process.pid)
        return process.returncode, out + err

    def logs(self):
        text = ""
        for log in sorted(self.disk.glob("**/logs/*.log")):
            if log.stat().st_size:
                text += f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}\n"
        return text

    def resume(self, config, env=None):
        """The next life of a run that ended in any way. The run is resumed, or begun if it was not yet on disk."""
        status, said = self.life(config, "--resume", env=env)
        if status == 2 and "no unfinished run" in said:
            unfinished = [r for r in self.runs() if json.loads((r / "run.json").read_text())["state"] != "done"]
            self.assertEqual(unfinished, [], said)
            if not self.runs():
                status, said = self.life(config, env=env)
            else:
                status = 0  # it was killed after all work was done
        return status, said

    def finish(self, config, expected, what):
        """Resumes the run until it is done (without further faults, once is enough). Compares its results."""
        status, said = self.resume(config)
        self.assertEqual(status, 0, f"{what}: the next life failed:\n{said}\n{self.logs()}")
        done = [r for r in self.runs() if (r / "results.json").exists()]
        self.assertEqual(len(done), 1, f"{what}: {done}\n{said}")
        self.compare(done[0], expected, what)
        return said

    def compare(self, run, expected, what):
        found = self.outcome(run)
        self.assertEqual(sorted(found), sorted(expected), what)
        for name in expected:
            self.assertEqual(found[name], expected[name], f"{what}: {name} differs from an undisturbed run's")

    def clear(self):
        """A fresh disk for the next fault."""
        for path in sorted(self.folder.glob("disk*")) + [self.folder / "staging"]:
            subprocess.run(["chmod", "-R", "u+rwx", str(path)], stderr=subprocess.DEVNULL, check=False)
            subprocess.run(["rm", "-rf", str(path)], check=True)
        self.disk.mkdir()

    # ---- the service

    def clear_service(self):
        """A fresh disk, after all processes on the old one have ended."""
        self.end_daemon()
        self.end_agent()
        self.clear()
        (self.folder / "daemon.log").unlink(missing_ok=True)

    def serve(self, env=None, **changes):
        config = {"listen": "127.0.0.1:0", "state_dir": "disk/state", "cache_dir": "disk/cache", "output_dir": "disk/runs",
                  "workers": {"count": 2, "threads": 1}, "metrics": {"processes": 2},
                  "staging": {"root": str(self.folder / "staging")}, **changes}
        (self.folder / "serve.yaml").write_text(json.dumps(config))
        self.end_daemon()
        self.said = open(self.folder / "daemon.log", "a+")
        self.daemon = subprocess.Popen([str(BINARIES / "evald"), "serve", str(self.folder / "serve.yaml"), "--json"],
                                       stdout=subprocess.PIPE, stderr=self.said, text=True, env=env, start_new_session=True)
        line = self.daemon.stdout.readline()
        self.url = json.loads(line).get("url") if line else None  # an error is printed on standard output too
        if self.url is None:
            self.daemon.wait(timeout=PATIENCE_S)
        return self.url is not None

    def daemon_log(self):
        return (self.folder / "daemon.log").read_text() if (self.folder / "daemon.log").exists() else ""

    def agent(self):
        """Process id of the agent that holds the service's processes; None if there is none."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if words[1:2] == [b"agent"] and str(self.disk / "state").encode() in words:
                    return int(entry.name)
            except OSError:
                continue
        return None

    def end_agent(self):
        """Kills the agent and its processes. Their environment, with its faults, ends with them."""
        pid = self.agent()
        if pid is None:
            return
        try:
            session = os.getsid(pid)
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.wait_for("the agent and its processes to end", lambda: not processes_of(session))

    def end_daemon(self, sign=signal.SIGKILL, outlived=False):
        """Ends the service and returns its exit status. If allowed, the agent and its processes go on."""
        if self.daemon is None:
            return None
        daemon, self.daemon = self.daemon, None
        if daemon.poll() is None:
            daemon.send_signal(sign)
        daemon.wait(timeout=PATIENCE_S)
        daemon.stdout.close()
        self.said.close()
        self.wait_until_gone(daemon.pid)
        if not outlived:
            self.end_agent()
        return daemon.returncode

    def call(self, method, path, body=None, **headers):
        """The answer; None if the service is gone."""
        try:
            status, text = answer_to(self.url, method, path, body, PATIENCE_S, **headers)
            if status >= 400:
                self.fail(f"{method} {path}: {status} {text}\n{self.daemon_log()}")
            return json.loads(text)
        # the service was killed before or during its answer
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            return None

    def submit(self, key, **changes):
        body = {"config": json.loads(self.config(**changes).read_text()), "base": str(self.folder)}
        return self.call("POST", "/v1/runs", body, **{"Idempotency-Key": key})

    def run_over(self, run_id):
        """Waits for a run's end. Returns the Run resource, or None if the service is gone by then."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if self.daemon.poll() is not None:
                return None
            run = self.call("GET", f"/v1/runs/{run_id}")
            if run is None or run["state"] in OVER:
                return run
            time.sleep(0.02)
        self.fail(f"waited {PATIENCE_S} s for run {run_id}: {run}\n{self.daemon_log()}\n{self.logs()}")

    def check_done(self, run, expected, what):
        self.assertEqual(run["state"], "done", f"{what}: {run}\n{self.daemon_log()}")
        self.compare(pathlib.Path(run["directory"]), expected, what)
